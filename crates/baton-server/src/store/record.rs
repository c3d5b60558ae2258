//! The stored form of events, snapshots and replies. Every record starts with its format version; golden files of each
//! format are kept for ever.
//!
//! An event is a header line and its 1.0 JSON: `1 S2 1763200000000\n{"statusUpdate":…}`. From the header a reader knows
//! whether to skip the event or to stop, without decoding the JSON; a 1.0 stream copies the JSON into its frames unchanged.
//!
//! | letter | kind | JSON |
//! |---|---|---|
//! | `U` | user message | the message |
//! | `A` | attempt started | `{"attempt":k}` or `{"attempt":k,"skill":…}` |
//! | `C` | cancel requested | `{}` or `{"metadata":…}` |
//! | `S` + state number | status | `{"statusUpdate":…}` |
//! | `P` + ordinal | artifact | `{"artifactUpdate":…}` |
//!
//! The header of a user message continues with its trace context, if it has one: ` <traceparent>` and, after one more space,
//! the `tracestate`. The header of an artifact continues with ` join` if its first part is text that continues the
//! artifact's last part. Older versions ignore both.
//!
//! A user message that was sent with request details has format 2: between the header and the JSON is a line with the
//! details, `{"acceptedOutputModes":[…],"metadata":{…}}`. Members that were not sent are left out.
//!
//! A snapshot is three lines: `1 <version> <attempts>`, data of the log that is not part of the task, the task.
//!
//! Credentials are in `credential`, webhooks in `webhook`, the details in `details`.

mod credential;
mod details;
mod webhook;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use baton_protocol::domain::{
    ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, EventKind, JsonObject, Message, SendDetails,
    TaskId, TaskState, Timestamp, TraceContext, Transition,
};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::wire::{StreamItem, stored};
use bytes::Bytes;
use memchr::memchr;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::StoreError;

pub use credential::{IssuedKey, StoredCredential};
pub use webhook::WebhookRecord;

use details::{read_details, write_details};

const FORMAT: &str = "1";

/// Marks an artifact update whose first part continues the artifact's last text part.
const JOIN: &str = "join";

/// Format of a user message with details.
const DETAILED: &str = "2";

/// An event as stored: cheap to clone, and sent to a 1.0 stream without decoding.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Position in the log.
    pub number: u64,
    /// What happened; from the header, so that readers can skip the event without decoding it.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    ordinal: u32,
    record: Bytes,
    /// Where the JSON starts in `record`.
    json_at: usize,
}

impl fmt::Debug for StoredEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.number, String::from_utf8_lossy(&self.record))
    }
}

impl StoredEvent {
    /// Encodes one event of a task, into a buffer of its own.
    pub fn encode(task: &TaskId, context: &ContextId, event: &Event) -> Self {
        let mut batch = EventBatch::with_room_for(1);
        batch.push(task, context, event);
        batch.finish().pop().expect("one was encoded")
    }

    /// Reads the header of a record; the JSON is not parsed.
    pub fn from_record(number: u64, record: Bytes) -> Result<Self, StoreError> {
        let damaged = |what: &str| StoreError::damaged(format!("event {number}: {what}"));
        let (header, json_at) = first_line(&record).ok_or_else(|| damaged("no header"))?;
        let mut fields = header.split(' ');
        let (format, kind, at) = (fields.next(), fields.next(), fields.next());
        let detailed = format == Some(DETAILED) && kind == Some("U");
        if format != Some(FORMAT) && !detailed {
            return Err(damaged("a format this version does not know; was it written by a newer Baton?"));
        }
        let at: i64 = at.and_then(|at| at.parse().ok()).ok_or_else(|| damaged("bad time"))?;
        let (kind, ordinal) = kind.and_then(read_kind).ok_or_else(|| damaged("bad kind"))?;
        let json_at = match detailed {
            true => json_at + 1 + memchr(b'\n', &record[json_at..]).ok_or_else(|| damaged("no details"))?,
            false => json_at,
        };
        Ok(StoredEvent { number, kind, at: Timestamp::from_millis(at), ordinal, record, json_at })
    }

    /// The bytes to store.
    pub fn record(&self) -> &Bytes {
        &self.record
    }

    /// The 1.0 JSON, without line breaks, so that it fits an SSE frame.
    pub fn json(&self) -> Bytes {
        self.record.slice(self.json_at..)
    }

    /// The same event with another number: a request's event gets its number when it enters the log.
    pub fn renumbered(&self, number: u64) -> Self {
        StoredEvent { number, ..self.clone() }
    }

    /// The same event in a buffer that it shares with no other.
    pub fn by_itself(&self) -> Self {
        StoredEvent { record: Bytes::copy_from_slice(&self.record), ..self.clone() }
    }

    /// The field of the header after the time.
    fn fourth_field(&self) -> Option<&str> {
        first_line(&self.record)?.0.split(' ').nth(3)
    }

    fn trace(&self) -> Option<TraceContext> {
        let (header, _) = first_line(&self.record)?;
        let mut fields = header.splitn(5, ' ').skip(3);
        TraceContext::parse(fields.next()?, fields.next())
    }

    /// The line between the header and the JSON, if there is one.
    fn details(&self) -> Result<SendDetails, String> {
        let (_, at) = first_line(&self.record).ok_or("no header")?;
        match self.record[at..self.json_at].split_last() {
            Some((_, line)) => read_details(std::str::from_utf8(line).map_err(|error| error.to_string())?),
            None => Ok(SendDetails::default()),
        }
    }

    /// The status or artifact update, as a stream item with task and context id.
    pub fn item(&self) -> Result<StreamItem, StoreError> {
        let damaged = |what: &dyn fmt::Display| StoreError::damaged(format!("event {}: {what}", self.number));
        let text = std::str::from_utf8(&self.record[self.json_at..]).map_err(|e| damaged(&e))?;
        let mut item = stored::read_stream_item(text).map_err(|e| damaged(&e))?;
        if let StreamItem::Artifact { update, .. } = &mut item {
            update.ordinal = self.ordinal;
            update.joins = update.append && self.fourth_field() == Some(JOIN);
        }
        Ok(item)
    }

    /// Decodes the record.
    pub fn decode(&self) -> Result<Event, StoreError> {
        let damaged = |what: &dyn fmt::Display| StoreError::damaged(format!("event {}: {what}", self.number));
        let text = std::str::from_utf8(&self.record[self.json_at..]).map_err(|e| damaged(&e))?;
        let body = match self.kind {
            EventKind::UserMessage => {
                let message = stored::read_message(text).map_err(|e| damaged(&e))?;
                let details = self.details().map_err(|e| damaged(&e))?;
                EventBody::UserMessage { message, trace: self.trace(), details }
            }
            EventKind::AttemptStarted => {
                let started: AttemptJson<'_> = serde_json::from_str(text).map_err(|e| damaged(&e))?;
                EventBody::AttemptStarted { attempt: started.attempt, skill: started.skill.map(Arc::from) }
            }
            EventKind::CancelRequested => {
                let asked: CancelJson<'_> = serde_json::from_str(text).map_err(|e| damaged(&e))?;
                let metadata = asked.metadata.map(|raw| JsonObject::parse(raw.get())).transpose();
                EventBody::CancelRequested { metadata: metadata.map_err(|e| damaged(&e))? }
            }
            EventKind::Status(_) | EventKind::Artifact => match self.item()? {
                StreamItem::Status { update, .. } => EventBody::Status(update),
                StreamItem::Artifact { update, .. } => EventBody::Artifact(update),
                StreamItem::Task(_) | StreamItem::Message(_) => return Err(damaged(&"not an update")),
            },
        };
        Ok(Event { number: self.number, at: self.at, body })
    }
}

/// Encodes the events of one append into one shared buffer. A large event gets a buffer of its own, so that a small event
/// in memory does not keep the large one's bytes alive.
#[derive(Debug, Default)]
pub(crate) struct EventBatch {
    out: Vec<u8>,
    written: Vec<Written>,
}

/// An encoded event and where its bytes are.
#[derive(Debug)]
struct Written {
    number: u64,
    kind: EventKind,
    at: Timestamp,
    ordinal: u32,
    bytes: RecordBytes,
    /// Where the JSON starts in the record.
    json_at: usize,
}

#[derive(Debug)]
enum RecordBytes {
    Shared(Range<usize>),
    Own(Bytes),
}

/// Buffers above this size are shrunk to their content: the copy is cheaper than keeping unused capacity.
const LARGE: usize = 4 * 1024;

impl EventBatch {
    /// Reserves capacity for this many small events.
    pub(crate) fn with_room_for(events: usize) -> Self {
        EventBatch { out: Vec::with_capacity(256 * events), written: Vec::with_capacity(events) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Encodes an event of a task.
    pub(crate) fn push(&mut self, task: &TaskId, context: &ContextId, event: &Event) {
        let starts = self.out.len();
        let json = write_record(&mut self.out, task, context, event);
        let ordinal = match &event.body {
            EventBody::Artifact(update) => update.ordinal,
            _ => 0,
        };
        let Event { number, at, body } = event;
        let json_at = json - starts;
        let bytes = if self.out.len() - starts > LARGE {
            let mut own =
                if starts == 0 { std::mem::take(&mut self.out) } else { self.out.split_off(starts) };
            // A store may keep the buffer for long, so unused capacity is freed.
            own.shrink_to_fit();
            RecordBytes::Own(Bytes::from(own))
        } else {
            RecordBytes::Shared(starts..self.out.len())
        };
        self.written.push(Written { number: *number, kind: body.kind(), at: *at, ordinal, bytes, json_at });
    }

    /// The events, in the order they were pushed.
    pub(crate) fn finish(mut self) -> Vec<StoredEvent> {
        // A store may keep the buffer for long, so unused capacity is freed.
        if self.out.len() > LARGE {
            self.out.shrink_to_fit();
        }
        let all = Bytes::from(self.out);
        let event = |written: Written| {
            let Written { number, kind, at, ordinal, bytes, json_at } = written;
            let record = match bytes {
                RecordBytes::Shared(range) => all.slice(range),
                RecordBytes::Own(record) => record,
            };
            StoredEvent { number, kind, at, ordinal, record, json_at }
        };
        self.written.into_iter().map(event).collect()
    }
}

/// Writes header line and JSON of an event; answers where the JSON starts in `out`.
fn write_record(out: &mut Vec<u8>, task: &TaskId, context: &ContextId, event: &Event) -> usize {
    let details = match &event.body {
        EventBody::UserMessage { details, .. } if !details.is_empty() => Some(details),
        _ => None,
    };
    out.extend_from_slice(if details.is_some() { DETAILED } else { FORMAT }.as_bytes());
    out.push(b' ');
    match &event.body {
        EventBody::UserMessage { .. } => out.push(b'U'),
        EventBody::AttemptStarted { .. } => out.push(b'A'),
        EventBody::CancelRequested { .. } => out.push(b'C'),
        EventBody::Status(update) => {
            out.push(b'S');
            push_json(out, update.state.number());
        }
        EventBody::Artifact(update) => {
            out.push(b'P');
            push_json(out, update.ordinal);
        }
    }
    out.push(b' ');
    push_json(out, event.at.as_millis());
    if let EventBody::UserMessage { trace: Some(trace), .. } = &event.body {
        for text in std::iter::once(trace.parent()).chain(trace.state()) {
            out.push(b' ');
            out.extend_from_slice(text.as_bytes());
        }
    }
    if let EventBody::Artifact(ArtifactUpdate { joins: true, .. }) = &event.body {
        out.push(b' ');
        out.extend_from_slice(JOIN.as_bytes());
    }
    out.push(b'\n');
    if let Some(details) = details {
        write_details(out, details);
        out.push(b'\n');
    }
    let json = out.len();
    match &event.body {
        EventBody::UserMessage { message, .. } => stored::write_message(out, message),
        EventBody::AttemptStarted { attempt, skill } => {
            let started = AttemptJson { attempt: *attempt, skill: skill.as_deref().map(Cow::Borrowed) };
            serde_json::to_writer(&mut *out, &started).expect("a number and a text into memory cannot fail");
        }
        EventBody::CancelRequested { metadata: None } => out.extend_from_slice(b"{}"),
        EventBody::CancelRequested { metadata: Some(metadata) } => {
            out.extend_from_slice(b"{\"metadata\":");
            out.extend_from_slice(metadata.as_str().as_bytes());
            out.push(b'}');
        }
        EventBody::Status(update) => stored::write_stream_status(out, task, context, event.at, update),
        EventBody::Artifact(update) => stored::write_stream_artifact(out, task, context, update),
    }
    json
}

#[derive(Serialize, Deserialize)]
struct AttemptJson<'a> {
    attempt: u32,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    skill: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CancelJson<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

fn read_kind(text: &str) -> Option<(EventKind, u32)> {
    let (letter, rest) = text.split_at_checked(1)?;
    Some(match (letter, rest) {
        ("U", "") => (EventKind::UserMessage, 0),
        ("A", "") => (EventKind::AttemptStarted, 0),
        ("C", "") => (EventKind::CancelRequested, 0),
        ("S", state) => (EventKind::Status(TaskState::from_number(state.parse().ok()?)?), 0),
        ("P", ordinal) => (EventKind::Artifact, ordinal.parse().ok()?),
        _ => return None,
    })
}

/// A snapshot as stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    version: u64,
    record: Bytes,
    /// Where the task's JSON starts; `None` when the record is cut short.
    task_at: Option<usize>,
}

impl fmt::Debug for StoredSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.record))
    }
}

/// The second line of a snapshot, as [`write_extra`] writes it.
#[derive(Deserialize)]
struct SnapshotExtra<'a> {
    /// State number and time.
    transitions: Vec<(u8, i64)>,
    #[serde(default)]
    sealed: Vec<Cow<'a, str>>,
    skill: Option<Cow<'a, str>>,
    /// `traceparent`, and `tracestate` if there was one.
    trace: Option<(Cow<'a, str>, Option<Cow<'a, str>>)>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

impl StoredSnapshot {
    /// Encodes a folded task.
    pub fn encode(snapshot: &Snapshot) -> Self {
        let Snapshot { task, version, attempts, .. } = snapshot;
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(FORMAT.as_bytes());
        for number in [*version, u64::from(*attempts)] {
            out.push(b' ');
            push_json(&mut out, number);
        }
        out.push(b'\n');
        write_extra(&mut out, snapshot);
        out.push(b'\n');
        let task_at = Some(out.len());
        stored::write_task(&mut out, task);
        if out.len() > LARGE {
            out.shrink_to_fit();
        }
        StoredSnapshot { version: *version, record: Bytes::from(out), task_at }
    }

    /// Reads the header of a record; the rest is not parsed.
    pub fn from_record(record: Bytes) -> Result<Self, StoreError> {
        let (version, _, extra_at) = Self::header(&record)?;
        let task_at = memchr(b'\n', &record[extra_at..]).map(|end| extra_at + end + 1);
        Ok(StoredSnapshot { version, record, task_at })
    }

    /// Number of the last event that the snapshot covers.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The bytes to store.
    pub fn record(&self) -> &Bytes {
        &self.record
    }

    /// The task's 1.0 JSON, not parsed. `None` when the record is cut short.
    pub fn task_json(&self) -> Option<Bytes> {
        self.task_at.map(|task_at| self.record.slice(task_at..))
    }

    /// Decodes the record.
    pub fn decode(&self) -> Result<Snapshot, StoreError> {
        let damaged = |what: &dyn fmt::Display| StoreError::damaged(format!("snapshot: {what}"));
        let (version, attempts, rest) = Self::header(&self.record)?;
        let rest = &self.record[rest..];
        let (extra, task_at) = first_line(rest).ok_or_else(|| damaged(&"cut short"))?;
        let extra: SnapshotExtra<'_> = serde_json::from_str(extra).map_err(|e| damaged(&e))?;
        let task = std::str::from_utf8(&rest[task_at..]).map_err(|e| damaged(&e))?;
        let mut task = stored::read_task(task).map_err(|e| damaged(&e))?;
        let transition = |(state, at)| {
            let state = TaskState::from_number(state)?;
            Some(Transition { state, at: Timestamp::from_millis(at) })
        };
        let transitions: Option<Vec<_>> = extra.transitions.into_iter().map(transition).collect();
        task.transitions = transitions.ok_or_else(|| damaged(&"unknown state"))?;
        let sealed: Result<Vec<_>, _> = extra.sealed.iter().map(|id| ArtifactId::parse(id)).collect();
        let trace = extra.trace.and_then(|(parent, state)| TraceContext::parse(&parent, state.as_deref()));
        let sealed = sealed.map_err(|e| damaged(&e))?;
        let details = extra.details.map(|raw| read_details(raw.get())).transpose();
        let details = details.map_err(|e| damaged(&e))?.unwrap_or_default();
        Ok(Snapshot::restore(task, version, attempts, &sealed, extra.skill.map(Arc::from), trace, details))
    }

    /// Version, attempts, and where the second line starts.
    fn header(record: &Bytes) -> Result<(u64, u32, usize), StoreError> {
        let read = || {
            let end = memchr(b'\n', record)?;
            let mut fields = record[..end].split(|byte| *byte == b' ');
            let known = fields.next()? == FORMAT.as_bytes();
            let (version, attempts) = (number(fields.next()?)?, number(fields.next()?)?);
            known.then_some((version, u32::try_from(attempts).ok()?, end + 1))
        };
        read().ok_or_else(|| StoreError::damaged("snapshot: bad header"))
    }
}

/// Writes data of the log that is not part of the task. Hand-written: encoded once per turn, on the hot path.
fn write_extra(out: &mut Vec<u8>, snapshot: &Snapshot) {
    let mut before = b'[';
    out.extend_from_slice(b"{\"transitions\":");
    for Transition { state, at } in &snapshot.task.transitions {
        out.extend_from_slice(&[before, b'[']);
        push_json(out, state.number());
        out.push(b',');
        push_json(out, at.as_millis());
        out.push(b']');
        before = b',';
    }
    out.extend_from_slice(if before == b'[' { b"[]" } else { b"]" });
    let sealed: Vec<_> = snapshot.sealed().map(ArtifactId::as_str).collect();
    if !sealed.is_empty() {
        out.extend_from_slice(b",\"sealed\":");
        push_json(out, sealed);
    }
    if let Some(skill) = &snapshot.skill {
        out.extend_from_slice(b",\"skill\":");
        push_json(out, &**skill);
    }
    if let Some(trace) = &snapshot.trace {
        out.extend_from_slice(b",\"trace\":");
        push_json(out, (trace.parent(), trace.state()));
    }
    if !snapshot.details.is_empty() {
        out.extend_from_slice(b",\"details\":");
        write_details(out, &snapshot.details);
    }
    out.push(b'}');
}

/// Encodes a message skill's reply for its message record.
pub(crate) fn write_reply(reply: &Message) -> Bytes {
    let mut out = format!("{FORMAT}\n").into_bytes();
    stored::write_message(&mut out, reply);
    Bytes::from(out)
}

/// The message in the `reply` of a [`MessageRecord`](super::MessageRecord).
pub fn read_reply(record: &[u8]) -> Result<Message, StoreError> {
    let damaged = |what: &dyn fmt::Display| StoreError::damaged(format!("reply: {what}"));
    match first_line(record) {
        Some((FORMAT, at)) => {
            let text = std::str::from_utf8(&record[at..]).map_err(|e| damaged(&e))?;
            stored::read_message(text).map_err(|e| damaged(&e))
        }
        _ => Err(damaged(&"bad header")),
    }
}

/// The text before the first newline, and the offset after that newline.
fn first_line(record: &[u8]) -> Option<(&str, usize)> {
    let end = memchr(b'\n', record)?;
    Some((std::str::from_utf8(&record[..end]).ok()?, end + 1))
}

/// A number in decimal digits, as [`push_json`] wrote it.
fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn push_json(out: &mut Vec<u8>, value: impl Serialize) {
    serde_json::to_writer(out, &value).expect("numbers and strings into memory cannot fail");
}

/// Applies a loaded task's events to its snapshot.
pub fn fold(loaded: &super::Loaded) -> Result<Snapshot, StoreError> {
    let mut snapshot = match &loaded.snapshot {
        Some(stored) => stored.decode()?,
        None => {
            let head = &loaded.head;
            Snapshot::begin(loaded.id.clone(), head.context_id.clone(), head.created_at)
        }
    };
    for stored in &loaded.tail {
        let event = stored.decode()?;
        snapshot
            .apply(event)
            .map_err(|refused| StoreError::damaged(format!("task {}: {refused}", loaded.id)))?;
    }
    if snapshot.version != loaded.head.version {
        let (at, head) = (snapshot.version, loaded.head.version);
        return Err(StoreError::damaged(format!(
            "task {}: the log ends at version {at}, the head has version {head}",
            loaded.id
        )));
    }
    Ok(snapshot)
}

#[cfg(test)]
mod tests;
