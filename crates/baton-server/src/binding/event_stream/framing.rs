//! What the bytes of a stream look like. The rest is the same for all bindings: [`Writer`](super::Writer).

use baton_protocol::Error;
use baton_protocol::domain::{EventKind, Message, Task, TaskState};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::time::Instant;

use crate::engine::EventStream;
use crate::store::StoredEvent;

/// What is known of a frame beside its payload.
#[derive(Debug, Clone, Copy)]
pub(in crate::binding) struct Label {
    pub(in crate::binding) number: Option<u64>,
    /// `None` for the task or message that opens a stream.
    pub(in crate::binding) kind: Option<EventKind>,
}

/// How frames are encoded and written.
pub(in crate::binding) trait Framing: Send + Unpin + 'static {
    /// Whether nothing may follow an error.
    const ERROR_ENDS: bool;

    /// About how many bytes a frame has beside its payload.
    fn overhead(&self) -> usize;

    /// Whether a stream on which more follows may begin with a task in this state.
    fn opens_with(&self, state: TaskState) -> bool;

    fn task(&self, number: u64, task: &Task) -> Vec<u8>;

    fn message(&self, message: &Message) -> Vec<u8>;

    fn event(&self, stream: &EventStream, event: &StoredEvent) -> Result<Bytes, Error>;

    /// Whether a large payload can be sent as it is, between [`begin`](Self::begin) and [`end`](Self::end).
    fn sends_as_it_is(&self, payload: &Bytes) -> bool;

    /// Writes a whole frame.
    fn put(&self, out: &mut BytesMut, label: Label, payload: &Bytes);

    /// Writes what precedes a payload of this length.
    fn begin(&self, out: &mut BytesMut, label: Label, length: usize);

    /// Writes what follows a payload.
    fn end(&self, out: &mut BytesMut);

    /// Nothing was written for a while.
    fn quiet(&self, out: &mut BytesMut);

    /// The server is stopping, and nothing follows.
    fn stopping(&mut self, out: &mut BytesMut);

    /// The last that is said of a stream that breaks.
    fn error(&mut self, out: &mut BytesMut, error: &Error);

    /// When the stream has to be over.
    fn deadline(&self) -> Option<Instant>;

    /// What follows the last byte.
    fn trailers(&mut self) -> Option<HeaderMap>;
}
