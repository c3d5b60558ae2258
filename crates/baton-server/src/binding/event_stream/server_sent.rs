//! Frames as server-sent events, for JSON-RPC and HTTP+JSON.

use baton_protocol::Error;
use baton_protocol::domain::{Message, Task, TaskState};
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::{http_json, jsonrpc, sse};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::time::Instant;

use super::FIRST_BYTES;
use super::framing::{Framing, Label};
use crate::binding::answer::Envelope;
use crate::encoding::Encoding;
use crate::engine::{EventStream, from_store};
use crate::store::StoredEvent;

/// About how many bytes a frame has in addition to its JSON and its prefix.
const FRAMING: usize = "id: 12345\ndata: }\n\n".len();

/// Ends the `data` line and the event.
const EVENT_END: &[u8] = b"\n\n";

/// When the server stops and closes a stream: after how many milliseconds the client should resume it.
const RETRY_MILLIS: u64 = 1000;

pub(super) struct ServerSent {
    dialect: Dialect,
    facts: AnswerFacts,
    envelope: Envelope,
    /// Precedes the JSON of every frame.
    prefix: Vec<u8>,
}

impl ServerSent {
    pub(super) fn new(dialect: Dialect, facts: AnswerFacts, envelope: Envelope) -> Self {
        let mut prefix = Vec::with_capacity(64);
        envelope.begin(&mut prefix);
        ServerSent { dialect, facts, envelope, prefix }
    }

    fn name(&self, label: Label) -> Option<&'static str> {
        label.kind.map_or_else(|| self.dialect.opening_name(), |kind| self.dialect.event_name(kind))
    }
}

impl Framing for ServerSent {
    const ERROR_ENDS: bool = false;

    fn overhead(&self) -> usize {
        FRAMING + self.prefix.len()
    }

    fn opens_with(&self, state: TaskState) -> bool {
        self.dialect.opens_with(state)
    }

    fn task(&self, _number: u64, task: &Task) -> Vec<u8> {
        let mut json = Vec::with_capacity(FIRST_BYTES);
        self.dialect.write_stream_task(&mut json, task);
        json
    }

    fn message(&self, message: &Message) -> Vec<u8> {
        let mut json = Vec::new();
        self.dialect.write_stream_message(&mut json, message, &self.facts);
        json
    }

    /// The stored bytes if the caller's dialect is the stored form, else encoded once for all readers of the task.
    fn event(&self, stream: &EventStream, event: &StoredEvent) -> Result<Bytes, Error> {
        let dialect = self.dialect;
        if dialect.is_stored_form() {
            return Ok(event.json());
        }
        stream.encoded(event.number, Encoding::Json(dialect), || {
            let mut json = Vec::with_capacity(256);
            dialect.write_stream_update(&mut json, &event.item().map_err(from_store)?);
            Ok(json.into())
        })
    }

    fn sends_as_it_is(&self, payload: &Bytes) -> bool {
        !sse::breaks_line(payload)
    }

    fn put(&self, out: &mut BytesMut, label: Label, payload: &Bytes) {
        let parts = [&self.prefix, &payload[..], self.envelope.end()];
        sse::write_event(out, label.number, self.name(label), &parts);
    }

    fn begin(&self, out: &mut BytesMut, label: Label, _length: usize) {
        sse::write_event(out, label.number, self.name(label), &[&self.prefix]);
        out.truncate(out.len() - EVENT_END.len());
    }

    fn end(&self, out: &mut BytesMut) {
        out.extend_from_slice(self.envelope.end());
        out.extend_from_slice(EVENT_END);
    }

    fn quiet(&self, out: &mut BytesMut) {
        sse::write_comment(out, "keep-alive");
    }

    fn stopping(&mut self, out: &mut BytesMut) {
        sse::write_comment(out, "the server is stopping; resume with Last-Event-ID");
        sse::write_retry(out, RETRY_MILLIS);
    }

    fn error(&mut self, out: &mut BytesMut, error: &Error) {
        let mut json = Vec::new();
        let generation = self.dialect.generation();
        match &self.envelope {
            Envelope::Rpc(id) => {
                jsonrpc::write_error(&mut json, Some(id), generation, error);
                sse::write_event(out, None, None, &[&json]);
            }
            Envelope::Bare => {
                http_json::write_error(&mut json, generation, error);
                sse::write_event(out, None, Some("error"), &[&json]);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        None
    }
}
