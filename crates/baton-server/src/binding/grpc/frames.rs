//! The events of a stream as messages.

use baton_protocol::Error;
use baton_protocol::ErrorKind;
use baton_protocol::domain::{Message, Task, TaskState};
use baton_protocol::wire::pb::Package;
use baton_protocol::wire::pb::framing::{PREFIX, prefix};
use baton_protocol::wire::pb::resume::{set_number, with_number};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::time::Instant;

use super::status::{self, Ending};
use crate::binding::event_stream::{Framing, Label};
use crate::encoding::Encoding;
use crate::engine::{EventStream, from_store};
use crate::store::StoredEvent;

pub(super) struct Frames {
    package: Package,
    /// Whether events carry their numbers, for callers who activated `resume::RESUME`.
    numbered: bool,
    deadline: Option<Instant>,
    failed: Option<Ending>,
}

impl Frames {
    pub(super) fn new(package: Package, numbered: bool, deadline: Option<Instant>) -> Self {
        Frames { package, numbered, deadline, failed: None }
    }
}

impl Framing for Frames {
    const ERROR_ENDS: bool = true;

    fn overhead(&self) -> usize {
        PREFIX
    }

    fn opens_with(&self, _state: TaskState) -> bool {
        true
    }

    fn task(&self, number: u64, task: &Task) -> Vec<u8> {
        if !self.numbered {
            return self.package.write_stream_task(task);
        }
        let metadata = Some(with_number(task.metadata.as_ref(), number));
        self.package.write_stream_task(&Task { metadata, ..task.clone() })
    }

    fn message(&self, message: &Message) -> Vec<u8> {
        self.package.write_stream_message(message)
    }

    /// Encoded once for all readers of the task that number events, and once for those that do not.
    fn event(&self, stream: &EventStream, event: &StoredEvent) -> Result<Bytes, Error> {
        let Frames { package, numbered, .. } = *self;
        stream.encoded(event.number, Encoding::Protobuf { package, numbered }, || {
            let mut item = event.item().map_err(from_store)?;
            if numbered {
                set_number(&mut item, event.number);
            }
            Ok(package.write_stream_update(&item).into())
        })
    }

    fn sends_as_it_is(&self, _payload: &Bytes) -> bool {
        true
    }

    fn put(&self, out: &mut BytesMut, _label: Label, payload: &Bytes) {
        out.extend_from_slice(&prefix(payload.len()));
        out.extend_from_slice(payload);
    }

    fn begin(&self, out: &mut BytesMut, _label: Label, length: usize) {
        out.extend_from_slice(&prefix(length));
    }

    fn end(&self, _out: &mut BytesMut) {}

    /// HTTP/2 has pings for this.
    fn quiet(&self, _out: &mut BytesMut) {}

    fn stopping(&mut self, _out: &mut BytesMut) {
        let error = Error::new(ErrorKind::Unavailable, "The server is stopping; subscribe to the task again");
        self.failed = Some(Ending::of(self.package, &error));
    }

    fn error(&mut self, _out: &mut BytesMut, error: &Error) {
        self.failed = Some(Ending::of(self.package, error));
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        Some(self.failed.take().map_or_else(status::ok, |failed| failed.trailers()))
    }
}
