//! A stream of one task's events. It begins with the task, or resumes after the last event that the client has, and then
//! follows the log.

use std::sync::Arc;

use baton_protocol::domain::{EventKind, Message, Scope, TaskId, TaskState};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::operation::{HistoryLength, Operation};
use baton_protocol::{Error, ErrorKind, Name};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::hub::Bell;
use super::reader::{LogReader, Read};
use super::send::TurnRef;
use super::stream_slots::StreamSlot;
use super::{Engine, Inner, from_store, no_room, not_found, size};
use crate::encoding::Encoding;
use crate::net::{Asker, Share};
use crate::store::{Head, StoredEvent};

/// One frame of a stream. Numbers rise; they skip internal events.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub(crate) enum Frame {
    /// The task as of that number.
    Task {
        /// The number of its last event.
        number: u64,
        /// The task as of that number.
        snapshot: Arc<Snapshot>,
    },
    /// An event of the log.
    Event(StoredEvent),
    /// A message skill's reply: the only frame of its stream.
    Message(Message),
}

/// When a stream closes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum CloseAt {
    /// On a terminal state and on any interruption.
    Rest,
    /// On a terminal state and on input-required, but not on auth-required.
    TurnEnd,
    /// On a terminal state only: a 1.0 subscription.
    TaskEnd,
}

impl CloseAt {
    fn closes(self, state: TaskState) -> bool {
        state.is_terminal()
            || match self {
                Self::Rest => state.is_interrupted(),
                Self::TurnEnd => state == TaskState::InputRequired,
                Self::TaskEnd => false,
            }
    }
}

/// A stream whose message waits for a busy task.
#[derive(Debug)]
struct Waiting {
    engine: Engine,
    turn: TurnRef,
    /// Runs in a tokio task of its own: the stream's future is dropped for each keep-alive, and would otherwise lose its place
    /// in the line for room.
    starting: Option<AbortOnDropHandle<Result<EventStream, Error>>>,
}

/// The events of a task, in the stored form.
#[derive(Debug)]
pub(crate) struct EventStream {
    /// `Some` while the message waits for a busy task and is not in the log: the stream is open and has no events yet.
    waiting: Option<Box<Waiting>>,
    history_length: HistoryLength,
    first: Option<Frame>,
    reader: Option<LogReader>,
    /// Kept after the last event, because encodings of events are shared through it.
    bell: Option<Arc<Bell>>,
    close: CloseAt,
    closing: CancellationToken,
    /// It was ended by the server's shutdown, not by the task.
    stopped: bool,
    /// Reserves room (memory) for large frames.
    asker: Option<Asker>,
    /// The share of the next frame.
    share: Option<Share>,
    /// Counts the stream for its owner until it is dropped.
    slot: Option<StreamSlot>,
}

impl EventStream {
    fn new(first: Option<Frame>, reader: LogReader, close: CloseAt, closing: &CancellationToken) -> Self {
        let bell = Some(Arc::clone(&reader.bell));
        let closing = closing.clone();
        EventStream {
            waiting: None,
            history_length: HistoryLength::All,
            first,
            reader: Some(reader),
            bell,
            close,
            closing,
            stopped: false,
            asker: None,
            share: None,
            slot: None,
        }
    }

    fn of_waiting(engine: &Engine, turn: TurnRef, close: CloseAt) -> Self {
        let waiting = Some(Box::new(Waiting { engine: engine.clone(), turn, starting: None }));
        let closing = engine.inner.closing.clone();
        let history_length = HistoryLength::All;
        EventStream {
            waiting,
            history_length,
            first: None,
            reader: None,
            bell: None,
            close,
            closing,
            stopped: false,
            asker: None,
            share: None,
            slot: None,
        }
    }

    /// A stream of one message: the reply of a message skill.
    pub(crate) fn of_message(message: Message) -> Self {
        EventStream {
            waiting: None,
            history_length: HistoryLength::All,
            first: Some(Frame::Message(message)),
            reader: None,
            bell: None,
            close: CloseAt::TurnEnd,
            closing: CancellationToken::new(),
            stopped: false,
            asker: None,
            share: None,
            slot: None,
        }
    }

    /// An event in another encoding than the stored form; encoded once for all readers of the task.
    pub(crate) fn encoded(
        &self,
        number: u64,
        encoding: Encoding,
        make: impl FnOnce() -> Result<Bytes, Error>,
    ) -> Result<Bytes, Error> {
        match &self.bell {
            Some(bell) => bell.encoded(number, encoding, make),
            None => make(),
        }
    }

    /// Trims the history of the task shown first.
    pub(crate) fn with_history(mut self, length: HistoryLength) -> Self {
        self.history_length = length;
        if let (HistoryLength::Last(_), Some(Frame::Task { snapshot, .. })) = (length, &mut self.first) {
            length.trim(&mut Arc::make_mut(snapshot).task.history);
        }
        self
    }

    /// The next frame; `None` when the stream is over. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Result<Frame, Error>> {
        if let Some(waiting) = &mut self.waiting {
            let Waiting { engine, turn, starting } = &mut **waiting;
            let starting = starting.get_or_insert_with(|| {
                let (engine, turn, close) = (engine.clone(), turn.clone(), self.close);
                let asker = self.asker.clone();
                let begin = async move { engine.stream_in_log(&turn, None, close, asker.as_ref()).await };
                AbortOnDropHandle::new(tokio::spawn(begin.in_current_span()))
            });
            let begun =
                starting.await.unwrap_or_else(|error| Err(Error::of(ErrorKind::Internal).with_log(error)));
            self.waiting = None;
            match begun {
                Ok(stream) => {
                    let (slot, asker) = (self.slot.take(), self.asker.take());
                    *self = stream.with_history(self.history_length);
                    (self.slot, self.asker) = (slot, asker);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        loop {
            let reader = self.reader.as_mut()?;
            let read = tokio::select! {
                // Events that are committed are sent before a shutdown ends the stream.
                biased;
                read = reader.next() => read,
                () = self.closing.cancelled() => {
                    self.reader = None;
                    self.stopped = true;
                    return None;
                }
            };
            match read {
                Ok(Read::Event(event)) => {
                    if let Some(frame) = self.frame_of(event) {
                        return Some(Ok(frame));
                    }
                }
                Ok(Read::Nothing) => {}
                Ok(Read::Gone) => return Some(self.continue_from_task().await),
                Err(error) => {
                    self.reader = None;
                    return Some(Err(from_store(error)));
                }
            }
        }
    }

    /// The next frame if it is available without waiting, so that many small events can be sent in one write.
    pub(crate) fn next_ready(&mut self) -> Option<Frame> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let event = self.reader.as_mut()?.next_ready()?;
            if let Some(frame) = self.frame_of(event) {
                return Some(frame);
            }
        }
    }

    /// How many frames are known to be available without waiting, and about how many bytes they have.
    pub(crate) fn ahead(&mut self) -> (usize, usize) {
        self.reader.as_mut().map_or((0, 0), LogReader::ahead)
    }

    /// Keeps the slot until the stream is dropped.
    pub(crate) fn with_slot(mut self, slot: StreamSlot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Makes large frames wait for room, and gives each its share of it.
    pub(crate) fn with_asker(mut self, asker: Option<&Asker>) -> Self {
        self.reader = self.reader.map(|reader| reader.with_asker(asker.cloned()));
        self.asker = asker.cloned();
        self
    }

    /// The share of the first frame.
    pub(crate) fn with_share(mut self, share: Option<Share>) -> Self {
        self.share = join_shares(self.share, share);
        self
    }

    /// Attaches the shares of the last frames to the bytes they were encoded to.
    pub(crate) fn attach_share(&mut self, bytes: Bytes) -> Bytes {
        let of_log = self.reader.as_mut().and_then(LogReader::take_share);
        match join_shares(self.share.take(), of_log) {
            Some(share) => share.holding(bytes),
            None => bytes,
        }
    }

    /// Whether the server's shutdown ended it. Then the client can resume it after the restart.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether all frames have been returned.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting.is_none() && self.first.is_none() && self.reader.is_none()
    }

    /// The next events are no longer in the log: continues with the task itself.
    async fn continue_from_task(&mut self) -> Result<Frame, Error> {
        let reader = self.reader.as_mut().ok_or_else(|| Error::of(ErrorKind::Internal))?;
        let found = match reader.skip_to_now().await {
            Ok(view) => view.snapshot(),
            Err(error) => Err(error),
        };
        self.share = reader.take_share();
        if found.as_ref().map_or(true, |snapshot| self.close.closes(snapshot.state())) {
            self.reader = None;
        }
        let mut snapshot = found?;
        if let HistoryLength::Last(_) = self.history_length {
            self.history_length.trim(&mut Arc::make_mut(&mut snapshot).task.history);
        }
        Ok(Frame::Task { number: snapshot.version, snapshot })
    }

    fn frame_of(&mut self, event: StoredEvent) -> Option<Frame> {
        if let EventKind::Status(state) = event.kind
            && self.close.closes(state)
        {
            let share = self.reader.as_mut().and_then(LogReader::take_share);
            self.share = join_shares(self.share.take(), share);
            self.reader = None;
        }
        (!event.kind.is_internal()).then_some(Frame::Event(event))
    }
}

impl Engine {
    /// The stream of a turn: it begins with the task, or resumes after `last_seen`.
    pub(crate) async fn stream_turn(
        &self,
        turn: &TurnRef,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        match (turn.event, last_seen) {
            (None, None) => Ok(EventStream::of_waiting(self, turn.clone(), close).with_asker(asker)),
            _ => {
                let stream = self.stream_in_log(turn, last_seen, close, asker).await?;
                if turn.start.is_some() {
                    self.inner.stream_starts.begin().await;
                }
                Ok(stream)
            }
        }
    }

    /// Waits until the turn's message is in the log.
    async fn stream_in_log(
        &self,
        turn: &TurnRef,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        let stream = self.open_stream(turn, last_seen, close, asker).await?;
        Ok(stream.with_asker(asker))
    }

    async fn open_stream(
        &self,
        turn: &TurnRef,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        let inner = &self.inner;
        let Some(event) = inner.event_of(turn).await? else {
            // The task ended before it took the message: only its end can be shown.
            let head = inner.head(&turn.scope, &turn.id).await?;
            return inner.stream_from_now(&turn.scope, &turn.id, &head, close, asker).await;
        };
        if let (None, Some(start)) = (last_seen, &turn.start) {
            let first = Frame::Task { number: event, snapshot: Arc::clone(start) };
            return Ok(inner.stream(turn, event, Some(first), close));
        }
        let head = inner.head(&turn.scope, &turn.id).await?;
        if let Some(seen) = last_seen {
            check_seen(seen, &head)?;
            // Decided by the head, because the log of an ended task may have been folded.
            if head.current.state.is_terminal() && seen >= head.version {
                return Err(nothing_left(&turn.id));
            }
        }
        let after = last_seen.unwrap_or(event).max(event);
        if after < head.folded_through {
            return inner.stream_from_now(&turn.scope, &turn.id, &head, close, asker).await;
        }
        if last_seen.is_none() {
            let mut snapshot = inner.as_of(&turn.scope, &turn.id, &head, event).await?;
            let bytes = snapshot.as_ref().map_or(0, |snapshot| size::of_task(&snapshot.task));
            let mut share = None;
            if let Some(asker) = asker {
                share = asker.try_enter(bytes);
                if share.is_none() {
                    drop(snapshot);
                    share = Some(asker.enter(bytes).await.map_err(no_room)?);
                    snapshot = inner.as_of(&turn.scope, &turn.id, &head, event).await?;
                }
            }
            let Some(snapshot) = snapshot else {
                drop(share);
                return inner.stream_from_now(&turn.scope, &turn.id, &head, close, asker).await;
            };
            let first = Frame::Task { number: event, snapshot: Arc::new(snapshot) };
            return Ok(inner.stream(turn, event, Some(first), close).with_share(share));
        }
        if inner.turn_is_over(turn, event, after, close).await? {
            return Err(nothing_left(&turn.id));
        }
        Ok(inner.stream(turn, after, None, close))
    }

    /// A subscription: it begins with the task, or resumes after `last_seen`.
    pub(crate) async fn subscribe(
        &self,
        scope: &Scope,
        id: &TaskId,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        let inner = &self.inner;
        let head = inner.store.head(scope, id).await.map_err(from_store)?.ok_or_else(|| not_found(id))?;
        let ended = head.current.state.is_terminal();
        let Some(seen) = last_seen else {
            if ended {
                let get = Name::Method(Operation::GetTask);
                let message = format!("The task has ended: read it with {get}, or resume with Last-Event-ID");
                return Err(
                    Error::new(ErrorKind::UnsupportedOperation, message).with_info("taskId", id.as_str())
                );
            }
            return Ok(inner.stream_from_now(scope, id, &head, close, asker).await?.with_asker(asker));
        };
        check_seen(seen, &head)?;
        if ended && seen >= head.version {
            return Err(nothing_left(id));
        }
        if seen < head.folded_through {
            return Ok(inner.stream_from_now(scope, id, &head, close, asker).await?.with_asker(asker));
        }
        let reader = inner.reader(scope, id, &head, seen);
        Ok(EventStream::new(None, reader, close, &inner.closing).with_asker(asker))
    }
}

impl Inner {
    pub(super) async fn head(&self, scope: &Scope, id: &TaskId) -> Result<Head, Error> {
        self.store.head(scope, id).await.map_err(from_store)?.ok_or_else(|| not_found(id))
    }

    fn reader(&self, scope: &Scope, id: &TaskId, head: &Head, after: u64) -> LogReader {
        LogReader::new(self.store.clone(), self.hub.bell(head.key), scope.clone(), id.clone(), after)
    }

    fn stream(&self, turn: &TurnRef, after: u64, first: Option<Frame>, close: CloseAt) -> EventStream {
        let (store, bell) = (self.store.clone(), Arc::clone(&turn.bell));
        let reader = LogReader::new(store, bell, turn.scope.clone(), turn.id.clone(), after);
        EventStream::new(first, reader, close, &self.closing)
    }

    /// A stream that begins with the task as it is now.
    async fn stream_from_now(
        &self,
        scope: &Scope,
        id: &TaskId,
        head: &Head,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        // The reader gets the bell before the task is read, so that no commit in between is missed.
        let mut reader = self.reader(scope, id, head, 0);
        let (view, share) = self.view_with_room(scope, id, asker).await?;
        let snapshot = view.snapshot()?;
        reader.after = snapshot.version;
        let over = close.closes(snapshot.state());
        let first = Frame::Task { number: snapshot.version, snapshot };
        let mut stream = EventStream::new(Some(first), reader, close, &self.closing).with_share(share);
        if over {
            stream.reader = None;
        }
        Ok(stream)
    }

    /// The task as it was at an earlier number, folded from the log. `None`: the log is no longer complete.
    async fn as_of(
        &self,
        scope: &Scope,
        id: &TaskId,
        head: &Head,
        number: u64,
    ) -> Result<Option<Snapshot>, Error> {
        let mut snapshot = Snapshot::begin(id.clone(), head.context_id.clone(), head.created_at);
        while snapshot.version < number {
            let left = (number - snapshot.version).min(256) as u32;
            let events = self.store.events(scope, id, snapshot.version, left).await.map_err(from_store)?;
            if events.first().is_none_or(|first| first.number != snapshot.version + 1) {
                return Ok(None);
            }
            for event in events {
                let event = event.decode().map_err(from_store)?;
                snapshot.apply(event).map_err(|refused| Error::of(ErrorKind::Internal).with_log(refused))?;
            }
        }
        Ok(Some(snapshot))
    }

    /// Whether the turn that began at `event` ended at `after` or before.
    async fn turn_is_over(
        &self,
        turn: &TurnRef,
        event: u64,
        after: u64,
        close: CloseAt,
    ) -> Result<bool, Error> {
        let mut at = event;
        while at < after {
            let left = (after - at).min(256) as u32;
            let events = self.store.events(&turn.scope, &turn.id, at, left).await.map_err(from_store)?;
            // The log was folded meanwhile; the stream will notice, and continue with the task.
            let Some(last) = events.last() else { return Ok(false) };
            at = last.number;
            let closes = |event: &StoredEvent| match event.kind {
                EventKind::Status(state) => close.closes(state),
                _ => false,
            };
            if events.iter().any(closes) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Joins the shares of frames that are sent together.
fn join_shares(one: Option<Share>, other: Option<Share>) -> Option<Share> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.joined(other)),
        (one, other) => one.or(other),
    }
}

fn check_seen(seen: u64, head: &Head) -> Result<(), Error> {
    if seen > head.version {
        return Err(Error::invalid(
            "Last-Event-ID",
            format!("is {seen}, but the log ends at {}", head.version),
        ));
    }
    Ok(())
}

fn nothing_left(id: &TaskId) -> Error {
    Error::new(
        ErrorKind::UnsupportedOperation,
        "Nothing is left to stream: every event up to the end has been shown",
    )
    .with_info("taskId", id.as_str())
}
