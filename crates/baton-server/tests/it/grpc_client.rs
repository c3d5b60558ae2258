//! Calls over gRPC as others make them: a channel of tonic, and messages made from JSON by protobuf's own rules, without the
//! codec under test.

use std::sync::LazyLock;
use std::time::Duration;

use baton_protocol::wire::pb::{DESCRIPTORS, Package};
use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::{Value, json};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{MetadataKey, MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use crate::harness::{TEST_TIMEOUT, TestServer};

/// Messages as they are.
#[derive(Debug, Clone, Copy)]
struct AsItIs;

impl Codec for AsItIs {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = AsItIs;
    type Decoder = AsItIs;

    fn encoder(&mut self) -> Self {
        AsItIs
    }

    fn decoder(&mut self) -> Self {
        AsItIs
    }
}

impl Encoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

pub(crate) const PACKAGES: [Package; 2] = Package::ALL;

fn pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).unwrap());
    &POOL
}

fn method(package: Package, name: &str) -> MethodDescriptor {
    let service = pool().get_service_by_name(package.service()).unwrap();
    service
        .methods()
        .find(|method| method.name() == name)
        .unwrap_or_else(|| panic!("{package:?} has no {name}"))
}

/// The message that the JSON stands for, or why it stands for none.
pub(crate) fn message_of(package: Package, name: &str, params: &Value) -> Result<Bytes, String> {
    let message = DynamicMessage::deserialize(method(package, name).input(), params.clone());
    message.map(|message| message.encode_to_vec().into()).map_err(|error| error.to_string())
}

fn json_of(descriptor: MessageDescriptor, message: Bytes) -> Value {
    let is_page = descriptor.name() == "ListTasksResponse";
    let message = DynamicMessage::decode(descriptor, message).unwrap();
    let options = SerializeOptions::new().stringify_64_bit_integers(false);
    let mut json = message.serialize_with_options(serde_json::value::Serializer, &options).unwrap();
    whole_numbers(&mut json);
    if is_page {
        for (name, default) in [
            ("tasks", json!([])),
            ("nextPageToken", json!("")),
            ("pageSize", json!(0)),
            ("totalSize", json!(0)),
        ] {
            json.as_object_mut().unwrap().entry(name).or_insert(default);
        }
    }
    json
}

/// Numbers of free-form JSON are doubles, of which whole ones count as integers.
fn whole_numbers(json: &mut Value) {
    match json {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|it| number.is_f64() && it.fract() == 0.0 && it.abs() < 1e15);
            if let Some(whole) = whole {
                *json = json!(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// A client with a connection of its own.
pub(crate) struct Grpc {
    package: Package,
    client: tonic::client::Grpc<Channel>,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) timeout: Option<Duration>,
}

/// An answer: the message as JSON, and the metadata before it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) json: Value,
    pub(crate) metadata: MetadataMap,
}

/// A stream of messages.
pub(crate) struct Messages {
    pub(crate) metadata: MetadataMap,
    stream: Streaming<Bytes>,
    output: MessageDescriptor,
}

impl Grpc {
    /// Names the version, as clients of 1.0 do.
    pub(crate) async fn connect(server: &TestServer, package: Package) -> Self {
        Self::over(channel(&server.url).await, package)
    }

    pub(crate) fn over(channel: Channel, package: Package) -> Self {
        let client = tonic::client::Grpc::new(channel).max_decoding_message_size(64 << 20);
        let client = client.max_encoding_message_size(64 << 20);
        let version = (package == Package::V1).then(|| ("a2a-version".to_owned(), "1.0".to_owned()));
        Grpc { package, client, metadata: version.into_iter().collect(), timeout: None }
    }

    /// Sends this metadata with every call, instead of earlier values of the same name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.metadata.retain(|(known, _)| known != name);
        self.metadata.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.metadata.retain(|(known, _)| known != name);
        self
    }

    fn request(&self, message: Bytes) -> Request<Bytes> {
        let mut request = Request::new(message);
        for (name, value) in &self.metadata {
            let name: MetadataKey<_> = name.parse().unwrap();
            request.metadata_mut().append(name, MetadataValue::try_from(value.as_str()).unwrap());
        }
        if let Some(timeout) = self.timeout {
            request.set_timeout(timeout);
        }
        request
    }

    pub(crate) async fn call(&mut self, name: &str, params: Value) -> Result<Reply, Status> {
        let message =
            message_of(self.package, name, &params).unwrap_or_else(|error| panic!("{error}: {params}"));
        let output = method(self.package, name).output();
        let (metadata, message) = self.call_raw(&path(self.package, name), message).await?;
        Ok(Reply { json: json_of(output, message), metadata })
    }

    /// Calls any path with any bytes.
    pub(crate) async fn call_raw(
        &mut self,
        path: &str,
        message: Bytes,
    ) -> Result<(MetadataMap, Bytes), Status> {
        let request = self.request(message);
        self.client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let called = self.client.unary(request, PathAndQuery::try_from(path).unwrap(), AsItIs);
        let answer = tokio::time::timeout(TEST_TIMEOUT, called).await.expect("an answer came")?;
        let (metadata, message, _) = answer.into_parts();
        Ok((metadata, message))
    }

    pub(crate) async fn stream(&mut self, name: &str, params: Value) -> Result<Messages, Status> {
        let message =
            message_of(self.package, name, &params).unwrap_or_else(|error| panic!("{error}: {params}"));
        let request = self.request(message);
        self.client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let path = PathAndQuery::try_from(path(self.package, name)).unwrap();
        let called = self.client.server_streaming(request, path, AsItIs);
        let answer = tokio::time::timeout(TEST_TIMEOUT, called).await.expect("an answer came")?;
        let (metadata, stream, _) = answer.into_parts();
        Ok(Messages { metadata, stream, output: method(self.package, name).output() })
    }

    /// The id of a task that this message starts; the answer does not wait for it.
    pub(crate) async fn start(&mut self, text: &str) -> String {
        let params = message(self.package, text, false);
        let reply = self.call("SendMessage", params).await.unwrap();
        reply.json["task"]["id"].as_str().unwrap_or_else(|| panic!("no task: {}", reply.json)).to_owned()
    }

    pub(crate) async fn get(&mut self, id: &str) -> Value {
        self.call("GetTask", self.task(id)).await.unwrap().json
    }

    /// The request that names a task.
    pub(crate) fn task(&self, id: &str) -> Value {
        match self.package {
            Package::V1 => json!({"id": id}),
            Package::V0_3 => json!({"name": format!("tasks/{id}")}),
        }
    }

    pub(crate) async fn until(&mut self, id: &str, wanted: &str) -> Value {
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        loop {
            let task = self.get(id).await;
            if state(&task) == wanted {
                return task;
            }
            assert!(tokio::time::Instant::now() < give_up, "not {wanted}: {task}");
        }
    }
}

impl Messages {
    /// The next message as JSON, `None` once the stream has ended well.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, Status> {
        let next = tokio::time::timeout(TEST_TIMEOUT, self.stream.message()).await.expect("it goes on")?;
        Ok(next.map(|message| json_of(self.output.clone(), message)))
    }

    /// All up to the end.
    pub(crate) async fn rest(&mut self) -> Result<Vec<Value>, Status> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await? {
            all.push(message);
        }
        Ok(all)
    }
}

pub(crate) async fn channel(url: &str) -> Channel {
    Endpoint::from_shared(url.to_owned()).unwrap().connect().await.unwrap()
}

pub(crate) fn path(package: Package, method: &str) -> String {
    format!("/{}/{method}", package.service())
}

/// Params of a send with a fresh messageId.
pub(crate) fn message(package: Package, text: &str, wait: bool) -> Value {
    let id = crate::harness::message("")["message"]["messageId"].clone();
    let parts = json!([{"text": text}]);
    match package {
        Package::V1 => json!({
            "message": {"messageId": id, "role": "ROLE_USER", "parts": parts},
            "configuration": {"returnImmediately": !wait},
        }),
        Package::V0_3 => json!({
            "message": {"messageId": id, "role": "ROLE_USER", "content": parts},
            "configuration": {"blocking": wait},
        }),
    }
}

/// The state of a task, by its name in 1.0 without the prefix.
pub(crate) fn state(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("not a task: {task}"));
    match state.trim_start_matches("TASK_STATE_") {
        "CANCELLED" => "CANCELED",
        state => state,
    }
}

/// What a stream showed: `task`, `artifactUpdate`, `message`, or the state of a status update.
pub(crate) fn kinds(messages: &[Value]) -> Vec<String> {
    let kind = |message: &Value| match message.get("statusUpdate") {
        Some(update) => state(update).to_lowercase(),
        None => message.as_object().and_then(|it| it.keys().next().cloned()).unwrap_or_default(),
    };
    messages.iter().map(kind).collect()
}

#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<Violation>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Violation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    delay: Option<Seconds>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Seconds {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

/// The details of an error, in the JSON that the other bindings have.
pub(crate) fn details(status: &Status) -> Vec<Value> {
    if status.details().is_empty() {
        return Vec::new();
    }
    let whole = RpcStatus::decode(status.details()).unwrap();
    assert_eq!((whole.code, whole.message.as_str()), (status.code() as i32, status.message()), "said twice");
    let read = |detail: Any| match detail.type_url.rsplit('.').next().unwrap() {
        "ErrorInfo" => {
            let ErrorInfo { reason, domain, metadata } = ErrorInfo::decode(detail.value).unwrap();
            json!({"@type": detail.type_url, "reason": reason, "domain": domain, "metadata": metadata})
        }
        "BadRequest" => {
            let violations = BadRequest::decode(detail.value).unwrap().violations.into_iter();
            let violations = violations.map(|it| json!({"field": it.field, "description": it.description}));
            json!({"@type": detail.type_url, "fieldViolations": violations.collect::<Vec<_>>()})
        }
        "RetryInfo" => {
            let delay = RetryInfo::decode(detail.value).unwrap().delay.unwrap_or_default().seconds;
            json!({"@type": detail.type_url, "retryDelay": format!("{delay}s")})
        }
        other => panic!("no detail is known as {other}"),
    };
    whole.details.into_iter().map(read).collect()
}

/// Code and reason of an error.
#[track_caller]
pub(crate) fn told(status: &Status) -> (Code, String) {
    assert!(!status.message().is_empty());
    let reason = details(status).first().map(|info| info["reason"].as_str().unwrap_or_default().to_owned());
    (status.code(), reason.unwrap_or_default())
}
