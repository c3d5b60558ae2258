//! `grpc.reflection.v1`, and `v1alpha`, whose messages are the same: tells clients the descriptors of the services here.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

use self::messages::server_reflection_request::MessageRequest as Asked;
use self::messages::server_reflection_response::MessageResponse as Answer;
use self::messages::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};
use super::{DESCRIPTORS, decode};
use crate::error::{Error, GrpcCode};
use crate::wire::read::Subject;

#[allow(clippy::all, missing_docs, unnameable_types, unreachable_pub)]
mod messages {
    include!("generated/reflection.rs");
}

/// The full names of the service: its own versions.
pub const REFLECTION_SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// A `google.protobuf.FileDescriptorSet` of health and reflection themselves.
const OF_GRPC: &[u8] = include_bytes!("generated/grpc_descriptors.bin");

/// What can be asked of a server with certain services.
#[derive(Debug)]
pub struct Reflection {
    services: Vec<&'static str>,
    /// Those that the services need, by name.
    files: BTreeMap<String, File>,
    /// The file of each service, method, message and enum, by full name.
    symbols: BTreeMap<String, String>,
    messages: BTreeSet<String>,
}

#[derive(Debug)]
struct File {
    encoded: Bytes,
    imports: Vec<String>,
}

impl Reflection {
    /// `services` are full names. Those that are not described here are left out.
    pub fn new(services: &[&'static str]) -> Self {
        let mut described = BTreeMap::new();
        for set in [DESCRIPTORS, OF_GRPC] {
            let set = FileDescriptorSet::decode(set).expect("the generated descriptors can be read");
            described.extend(set.file.into_iter().map(|file| (file.name().to_owned(), file)));
        }
        let mut reflection = Reflection {
            services: Vec::new(),
            files: BTreeMap::new(),
            symbols: BTreeMap::new(),
            messages: BTreeSet::new(),
        };
        for service in services {
            let file = described.values().find(|file| services_of(file).any(|name| name == *service));
            if let Some(file) = file {
                reflection.services.push(service);
                reflection.add(&described, file.name());
            }
        }
        reflection
    }

    /// Adds a file and what it imports.
    fn add(&mut self, described: &BTreeMap<String, FileDescriptorProto>, name: &str) {
        let Some(file) = described.get(name).filter(|_| !self.files.contains_key(name)) else { return };
        let (encoded, imports) = (file.encode_to_vec().into(), file.dependency.clone());
        self.files.insert(name.to_owned(), File { encoded, imports });
        let mut symbols: Vec<String> = services_of(file).collect();
        for service in &file.service {
            let methods = service.method.iter();
            symbols
                .extend(methods.map(|method| full(file, &format!("{}.{}", service.name(), method.name()))));
        }
        symbols.extend(file.enum_type.iter().map(|it| full(file, it.name())));
        let mut messages = Vec::new();
        for message in &file.message_type {
            name_types(&full(file, ""), message, &mut messages, &mut symbols);
        }
        symbols.extend(messages.iter().cloned());
        self.messages.extend(messages);
        self.symbols.extend(symbols.into_iter().map(|symbol| (symbol, name.to_owned())));
        for import in &file.dependency {
            self.add(described, import);
        }
    }

    /// The answer to one message of a stream. What is not here is an answer, too, and the stream goes on.
    pub fn answer(&self, request: Bytes) -> Result<Vec<u8>, Error> {
        let request: ServerReflectionRequest = decode(request, Subject::PARAMS)?;
        let answer = match &request.message_request {
            Some(Asked::ListServices(_)) => {
                let service = |name: &&str| ServiceResponse { name: (*name).to_owned() };
                Answer::ListServicesResponse(ListServiceResponse {
                    service: self.services.iter().map(service).collect(),
                })
            }
            Some(Asked::FileByFilename(name)) => self.file(name, "file"),
            Some(Asked::FileContainingSymbol(symbol)) => {
                self.file(self.symbols.get(symbol).map_or("", String::as_str), "symbol")
            }
            Some(Asked::FileContainingExtension(_)) => refused(GrpcCode::NotFound, "no such extension here"),
            Some(Asked::AllExtensionNumbersOfType(name)) if self.messages.contains(name) => {
                Answer::AllExtensionNumbersResponse(ExtensionNumberResponse {
                    base_type_name: name.clone(),
                    extension_number: Vec::new(),
                })
            }
            Some(Asked::AllExtensionNumbersOfType(_)) => refused(GrpcCode::NotFound, "no such type here"),
            None => refused(GrpcCode::InvalidArgument, "the request asks nothing that is known here"),
        };
        let answer = ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(answer),
        };
        Ok(answer.encode_to_vec())
    }

    /// The file, and all that it needs.
    fn file(&self, name: &str, kind: &str) -> Answer {
        let mut names: Vec<&str> =
            self.files.get_key_value(name).map(|(name, _)| &**name).into_iter().collect();
        if names.is_empty() {
            return refused(GrpcCode::NotFound, &format!("no such {kind} here"));
        }
        let mut at = 0;
        while let Some(file) = names.get(at).and_then(|name| self.files.get(*name)) {
            for import in &file.imports {
                if !names.contains(&import.as_str()) {
                    names.push(import);
                }
            }
            at += 1;
        }
        let files = names.iter().filter_map(|name| self.files.get(*name));
        let file_descriptor_proto = files.map(|file| file.encoded.clone()).collect();
        Answer::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
    }
}

fn full(file: &FileDescriptorProto, name: &str) -> String {
    match file.package() {
        "" => name.to_owned(),
        package => format!("{package}.{name}"),
    }
}

fn services_of(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    file.service.iter().map(|service| full(file, service.name()))
}

/// `within` ends with a dot, if there is anything.
fn name_types(within: &str, message: &DescriptorProto, messages: &mut Vec<String>, enums: &mut Vec<String>) {
    let name = format!("{within}{}", message.name());
    enums.extend(message.enum_type.iter().map(|it| format!("{name}.{}", it.name())));
    for nested in &message.nested_type {
        name_types(&format!("{name}."), nested, messages, enums);
    }
    messages.push(name);
}

fn refused(code: GrpcCode, why: &str) -> Answer {
    Answer::ErrorResponse(ErrorResponse { error_code: code.number().into(), error_message: why.to_owned() })
}
