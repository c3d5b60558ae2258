//! The messages of gRPC, of both packages: what can be read must be written and read again as the same, and must be sayable in the
//! JSON of the same generation; otherwise the error must be short.

use std::fmt::Debug;

use bytes::Bytes;

use super::codecs::{nearly_too_deep, read_item, write_call, write_item, write_message};
use crate::domain::Message;
use crate::error::{Error, ErrorKind};
use crate::operation::{Call, FACTS, Operation, Reply};
use crate::wire::dialect::Dialect;
use crate::wire::pb::Package;
use crate::wire::{Decoded, StreamItem, v1};

/// Requests of every method.
pub(super) fn calls(bytes: &[u8]) {
    for (package, operation) in methods() {
        let read = |message: Bytes| package.decode_call(operation, message);
        let decoded = match read(Bytes::copy_from_slice(bytes)) {
            Ok(decoded) => decoded,
            Err(error) => {
                refused(&error, package);
                continue;
            }
        };
        assert_eq!(decoded.call.operation(), operation);
        let write = |decoded: &Decoded| package.write_call(decoded.tenant.as_deref(), &decoded.call);
        settles(package, &decoded, write, read);
        if let Call::SendMessage(send) | Call::SendStreamingMessage(send) = &decoded.call {
            stored(&send.message);
        }
        same_in_json(package, &decoded, |dialect| {
            let text = write_call(dialect, decoded.tenant.as_deref(), &decoded.call);
            (dialect.decode_call(operation, Some(&text)), text)
        });
    }
}

/// Answers, and items of streams.
pub(super) fn answers(bytes: &[u8]) {
    for package in Package::ALL {
        match package.read_stream_item(Bytes::copy_from_slice(bytes)) {
            Ok(item) => {
                let read = |message| package.read_stream_item(message).map(|read| read.value);
                settles(package, &item.value, |item| Ok(package.write_stream_update(item)), read);
                if let StreamItem::Message(message) = &item.value {
                    stored(message);
                }
                same_in_json(package, &item.value, |dialect| {
                    let text = write_item(dialect, &item.value);
                    (read_item(dialect, &text), text)
                });
            }
            Err(error) => refused(&error, package),
        }
    }
    for (package, operation) in methods().filter(|(_, operation)| !operation.facts().streams) {
        let read = |message| package.read_reply(operation, message).map(|read| read.value);
        match read(Bytes::copy_from_slice(bytes)) {
            Ok(reply) => settles(package, &reply, |reply: &Reply| package.write_reply(reply), read),
            Err(error) => refused(&error, package),
        }
    }
}

fn methods() -> impl Iterator<Item = (Package, Operation)> {
    let all = Package::ALL.into_iter().flat_map(|package| FACTS.map(|facts| (package, facts.operation)));
    all.filter(|(package, operation)| package.method(*operation).is_some())
}

fn refused(error: &Error, package: Package) {
    assert_ne!(error.kind(), ErrorKind::Internal, "{package:?}: {error}");
    let status = package.status(error);
    assert!(status.message.len() < 2000 && status.details.len() <= 4096, "an error as long as the message");
}

/// Something may be lost the first time (fields that are not known, a number that JSON has not), but nothing after that.
fn settles<T: Debug + PartialEq>(
    package: Package,
    first: &T,
    write: impl Fn(&T) -> Result<Vec<u8>, Error>,
    read: impl Fn(Bytes) -> Result<T, Error>,
) {
    let again = |value: &T| {
        let written = write(value).ok()?;
        match read(written.into()) {
            Ok(value) => Some(value),
            Err(error) => panic!("{package:?} wrote what it does not read: {error}: {value:?}"),
        }
    };
    let Some(second) = again(first) else { return };
    assert_eq!(again(&second).as_ref(), Some(&second), "{package:?}");
}

/// Both bindings of a generation say the same.
fn same_in_json<T: Debug + PartialEq>(
    package: Package,
    value: &T,
    through: impl FnOnce(Dialect) -> (Result<T, Error>, String),
) {
    let dialect = package.dialect();
    let (read, text) = through(dialect);
    match read {
        Ok(read) => assert_eq!(read, *value, "{dialect:?} {text}"),
        Err(_) if nearly_too_deep(dialect, &text) => {}
        Err(error) => panic!("{dialect:?} wrote what it does not read: {error}: {text}"),
    }
}

/// The log stores messages of every generation as 1.0 JSON.
fn stored(message: &Message) {
    let text = write_message(Dialect::V1, message);
    assert_eq!(v1::read_message(&text).as_ref().ok(), Some(message), "{text}");
}
