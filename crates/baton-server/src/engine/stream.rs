//! A stream of one task's events: first the task, or where a reader left off, then the log as it grows.

use std::sync::Arc;

use baton_protocol::domain::{EventKind, Message, Scope, TaskId, TaskState};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::operation::{HistoryLength, Operation};
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::{Error, ErrorKind, Name};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::hub::Bell;
use super::reader::{LogReader, Read};
use super::send::TurnRef;
use super::stream_places::StreamPlace;
use super::{Engine, Inner, from_store, no_room, not_found, size};
use crate::net::{Asker, Share};
use crate::store::{Head, StoredEvent};

/// One thing to be shown. Numbers rise; holes are internal events.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Frame {
    /// The task as of that number.
    Task {
        /// Of the last event in it.
        number: u64,
        /// The task as of that number.
        snapshot: Arc<Snapshot>,
    },
    /// What the log has.
    Event(StoredEvent),
    /// A message skill's answer: the only frame of its stream.
    Message(Message),
}

/// When a stream closes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseAt {
    /// As soon as the task rests: where every interruption looks like input-required.
    Rest,
    /// With the turn: on a terminal state and on input-required.
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

#[derive(Debug)]
struct Waiting {
    engine: Engine,
    turn: TurnRef,
    /// Goes on by itself, so that a stream that says in between that it is alive keeps its place in line.
    begins: Option<AbortOnDropHandle<Result<EventStream, Error>>>,
}

/// The events of a task, as they are stored.
#[derive(Debug)]
pub struct EventStream {
    /// A message that waits for a busy task has no place in the log yet: the stream is open, and quiet.
    waiting: Option<Box<Waiting>>,
    history_length: HistoryLength,
    first: Option<Frame>,
    rest: Option<LogReader>,
    /// Kept beyond the last event: forms of events are shared through it.
    bell: Option<Arc<Bell>>,
    close: CloseAt,
    closing: CancellationToken,
    /// The server ended it, not the task.
    stopped: bool,
    /// Who asks for room for large frames, and the room that the next one has.
    asker: Option<Asker>,
    share: Option<Share>,
    /// Counted among the streams of its owner for as long as it is there.
    place: Option<StreamPlace>,
}

impl EventStream {
    fn new(first: Option<Frame>, reader: LogReader, close: CloseAt, closing: &CancellationToken) -> Self {
        let bell = Some(Arc::clone(&reader.bell));
        let closing = closing.clone();
        EventStream {
            waiting: None,
            history_length: HistoryLength::All,
            first,
            rest: Some(reader),
            bell,
            close,
            closing,
            stopped: false,
            asker: None,
            share: None,
            place: None,
        }
    }

    fn of_waiting(engine: &Engine, turn: TurnRef, close: CloseAt) -> Self {
        let waiting = Some(Box::new(Waiting { engine: engine.clone(), turn, begins: None }));
        let closing = engine.inner.closing.token().clone();
        let history_length = HistoryLength::All;
        EventStream {
            waiting,
            history_length,
            first: None,
            rest: None,
            bell: None,
            close,
            closing,
            stopped: false,
            asker: None,
            share: None,
            place: None,
        }
    }

    /// A stream of one message: the answer of a message skill.
    pub fn of_message(message: Message) -> Self {
        EventStream {
            waiting: None,
            history_length: HistoryLength::All,
            first: Some(Frame::Message(message)),
            rest: None,
            bell: None,
            close: CloseAt::TurnEnd,
            closing: CancellationToken::new(),
            stopped: false,
            asker: None,
            share: None,
            place: None,
        }
    }

    /// An event in a dialect's spelling: the stored bytes in 1.0, made once for all watchers in the others.
    pub fn spelled(&self, event: &StoredEvent, dialect: Dialect) -> Result<Bytes, Error> {
        if dialect == Dialect::V1 {
            return Ok(event.json());
        }
        let make = || {
            let mut json = Vec::with_capacity(256);
            dialect.write_stream_update(&mut json, &event.item().map_err(from_store)?);
            Ok(Bytes::from(json))
        };
        match &self.bell {
            Some(bell) => bell.form(event.number, dialect, make),
            None => make(),
        }
    }

    /// Trims the history of the task shown first.
    pub fn with_history(mut self, length: HistoryLength) -> Self {
        self.history_length = length;
        if let (HistoryLength::Last(_), Some(Frame::Task { snapshot, .. })) = (length, &mut self.first) {
            length.trim(&mut Arc::make_mut(snapshot).task.history);
        }
        self
    }

    /// The next frame; `None` when the stream is over. Safe to drop between two frames.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        if let Some(waiting) = &mut self.waiting {
            let Waiting { engine, turn, begins } = &mut **waiting;
            let begins = begins.get_or_insert_with(|| {
                let (engine, turn, close) = (engine.clone(), turn.clone(), self.close);
                let asker = self.asker.clone();
                let begin = async move { engine.stream_placed(&turn, None, close, asker.as_ref()).await };
                AbortOnDropHandle::new(tokio::spawn(begin.in_current_span()))
            });
            let begun =
                begins.await.unwrap_or_else(|error| Err(Error::of(ErrorKind::Internal).with_log(error)));
            self.waiting = None;
            match begun {
                Ok(stream) => {
                    let (place, asker) = (self.place.take(), self.asker.take());
                    *self = stream.with_history(self.history_length);
                    (self.place, self.asker) = (place, asker);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        loop {
            let reader = self.rest.as_mut()?;
            let read = tokio::select! {
                // What is committed is shown before a closing server ends the stream.
                biased;
                read = reader.next() => read,
                () = self.closing.cancelled() => {
                    self.rest = None;
                    self.stopped = true;
                    return None;
                }
            };
            match read {
                Ok(Read::Event(event)) => {
                    if let Some(frame) = self.show(event) {
                        return Some(Ok(frame));
                    }
                }
                Ok(Read::Nothing) => {}
                Ok(Read::Gone) => return Some(self.go_on_from_task().await),
                Err(error) => {
                    self.rest = None;
                    return Some(Err(from_store(error)));
                }
            }
        }
    }

    /// The next frame if it is at hand, so that many small events can leave in one write.
    pub fn at_hand(&mut self) -> Option<Frame> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let event = self.rest.as_mut()?.at_hand()?;
            if let Some(frame) = self.show(event) {
                return Some(frame);
            }
        }
    }

    /// How many frames come next without waiting, as far as is known, and about how many bytes they have.
    pub(crate) fn ahead(&mut self) -> (usize, usize) {
        self.rest.as_mut().map_or((0, 0), LogReader::ahead)
    }

    /// Keeps its owner's place until the stream is dropped.
    pub(crate) fn with_place(mut self, place: StreamPlace) -> Self {
        self.place = Some(place);
        self
    }

    /// Large frames wait for room, and take a share of it along.
    pub(crate) fn with_asker(mut self, asker: Option<&Asker>) -> Self {
        self.rest = self.rest.map(|reader| reader.with_asker(asker.cloned()));
        self.asker = asker.cloned();
        self
    }

    /// The frame shown first has its room.
    pub(crate) fn with_share(mut self, share: Option<Share>) -> Self {
        self.share = both(self.share, share);
        self
    }

    /// What was made of the frames shown last, with their room.
    pub(crate) fn held(&mut self, bytes: Bytes) -> Bytes {
        let of_log = self.rest.as_mut().and_then(LogReader::take_share);
        match both(self.share.take(), of_log) {
            Some(share) => share.holding(bytes),
            None => bytes,
        }
    }

    /// Did it end because the server stops? Then there is more to come elsewhere.
    pub fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Will nothing more come?
    pub fn is_over(&self) -> bool {
        self.waiting.is_none() && self.first.is_none() && self.rest.is_none()
    }

    /// The events this stream has not shown are no longer in the log: the task itself is shown instead.
    async fn go_on_from_task(&mut self) -> Result<Frame, Error> {
        let reader = self.rest.as_mut().ok_or_else(|| Error::of(ErrorKind::Internal))?;
        let found = match reader.skip_to_now().await {
            Ok(view) => view.snapshot(),
            Err(error) => Err(error),
        };
        self.share = reader.take_share();
        if found.as_ref().map_or(true, |snapshot| self.close.closes(snapshot.state())) {
            self.rest = None;
        }
        let mut snapshot = found?;
        if let HistoryLength::Last(_) = self.history_length {
            self.history_length.trim(&mut Arc::make_mut(&mut snapshot).task.history);
        }
        Ok(Frame::Task { number: snapshot.version, snapshot })
    }

    fn show(&mut self, event: StoredEvent) -> Option<Frame> {
        if let EventKind::Status(state) = event.kind
            && self.close.closes(state)
        {
            let share = self.rest.as_mut().and_then(LogReader::take_share);
            self.share = both(self.share.take(), share);
            self.rest = None;
        }
        (!event.kind.is_internal()).then_some(Frame::Event(event))
    }
}

impl Engine {
    /// The stream of a turn: from its task, or from where the reader left off.
    pub async fn stream_turn(
        &self,
        turn: &TurnRef,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        match (turn.event, last_seen) {
            (None, None) => Ok(EventStream::of_waiting(self, turn.clone(), close).with_asker(asker)),
            _ => {
                let stream = self.stream_placed(turn, last_seen, close, asker).await?;
                if turn.start.is_some() {
                    self.inner.stream_starts.begin().await;
                }
                Ok(stream)
            }
        }
    }

    /// Waits until the turn's message has its place in the log.
    async fn stream_placed(
        &self,
        turn: &TurnRef,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        let stream = self.stream_unroomed(turn, last_seen, close, asker).await?;
        Ok(stream.with_asker(asker))
    }

    async fn stream_unroomed(
        &self,
        turn: &TurnRef,
        last_seen: Option<u64>,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        let inner = &self.inner;
        let Some(event) = inner.event_of(turn).await? else {
            // The task ended before it took the message: its end is all there is to show.
            let head = inner.head(&turn.scope, &turn.id).await?;
            return inner.fresh(&turn.scope, &turn.id, &head, close, asker).await;
        };
        if let (None, Some(start)) = (last_seen, &turn.start) {
            let first = Frame::Task { number: event, snapshot: Arc::clone(start) };
            return Ok(inner.stream(turn, event, Some(first), close));
        }
        let head = inner.head(&turn.scope, &turn.id).await?;
        if let Some(seen) = last_seen {
            check_seen(seen, &head)?;
            // Asked of the head: the log of an ended task may be folded.
            if head.current.state.is_terminal() && seen >= head.version {
                return Err(nothing_left(&turn.id));
            }
        }
        let after = last_seen.unwrap_or(event).max(event);
        if after < head.folded_through {
            return inner.fresh(&turn.scope, &turn.id, &head, close, asker).await;
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
                return inner.fresh(&turn.scope, &turn.id, &head, close, asker).await;
            };
            let first = Frame::Task { number: event, snapshot: Arc::new(snapshot) };
            return Ok(inner.stream(turn, event, Some(first), close).with_share(share));
        }
        if inner.turn_is_over(turn, event, after, close).await? {
            return Err(nothing_left(&turn.id));
        }
        Ok(inner.stream(turn, after, None, close))
    }

    /// A subscription: the task first, or where the reader left off.
    pub async fn subscribe(
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
            return Ok(inner.fresh(scope, id, &head, close, asker).await?.with_asker(asker));
        };
        check_seen(seen, &head)?;
        if ended && seen >= head.version {
            return Err(nothing_left(id));
        }
        if seen < head.folded_through {
            return Ok(inner.fresh(scope, id, &head, close, asker).await?.with_asker(asker));
        }
        let reader = inner.reader(scope, id, &head, seen);
        Ok(EventStream::new(None, reader, close, inner.closing.token()).with_asker(asker))
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
        EventStream::new(first, reader, close, self.closing.token())
    }

    /// The task as it is now, then what follows.
    async fn fresh(
        &self,
        scope: &Scope,
        id: &TaskId,
        head: &Head,
        close: CloseAt,
        asker: Option<&Asker>,
    ) -> Result<EventStream, Error> {
        // Hung before the task is read, so that nothing committed in between is missed.
        let mut reader = self.reader(scope, id, head, 0);
        let (view, share) = self.view_with_room(scope, id, asker).await?;
        let snapshot = view.snapshot()?;
        reader.after = snapshot.version;
        let over = close.closes(snapshot.state());
        let first = Frame::Task { number: snapshot.version, snapshot };
        let mut stream = EventStream::new(Some(first), reader, close, self.closing.token()).with_share(share);
        if over {
            stream.rest = None;
        }
        Ok(stream)
    }

    /// The task as it was at an earlier number, folded from the log. `None`: the log is not whole any more.
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

    /// Has the turn that began at `event` been shown to its end by the time of `after`?
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
            // Folded meanwhile: the stream itself will find out, and show the task.
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

/// Frames that leave together keep the room of each.
fn both(one: Option<Share>, other: Option<Share>) -> Option<Share> {
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
