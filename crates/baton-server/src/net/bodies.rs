//! Bodies with somebody watching: a request's, which must not dawdle; an answer's, of which the end must be known.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::Body as Answer;
use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::options::Connections;
use super::patience::body_time;
use super::pulse::Pulse;
use super::refusal::Refusal;

/// A request under way on a connection, to the end of its answer.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Pulse>);

impl UnderWay {
    pub(super) fn new(pulse: &Arc<Pulse>) -> Self {
        pulse.begin();
        UnderWay(Arc::clone(pulse))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What is known of one request of an HTTP/2 connection. In HTTP/1 the connection's own pulse says it all.
#[derive(Debug)]
pub(super) struct Watch {
    epoch: Instant,
    /// Milliseconds, plus one, at which the reader was offered a part of the answer or last took a byte of it; 0 while
    /// there is nothing to take.
    offered_at: AtomicU64,
    /// Bytes of the answer that left.
    taken: AtomicU64,
    fault: AtomicU8,
    cut: AtomicBool,
    /// Of the stream's task, while its reader is stuck.
    waker: AtomicWaker,
}

impl Watch {
    pub(super) fn new() -> Self {
        Watch {
            epoch: Instant::now(),
            offered_at: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            fault: AtomicU8::new(0),
            cut: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Ends the stream: somebody else needs its room.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
        self.waker.wake();
    }

    /// Was it cut? If not, the waker is called when it is.
    pub(super) fn is_cut(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.cut.load(Relaxed)
    }

    /// Since when the reader has taken no byte of what is there for it.
    pub(super) fn stuck_since(&self) -> Option<Instant> {
        let at = self.offered_at.load(Relaxed).checked_sub(1)?;
        Some(self.epoch + Duration::from_millis(at))
    }

    pub(super) fn found_fault(&self) -> Option<Refusal> {
        Refusal::from_byte(self.fault.load(Relaxed))
    }

    pub(super) fn offered(&self) {
        self.offered_at.store(self.epoch.elapsed().as_millis() as u64 + 1, Relaxed);
    }

    fn nothing_offered(&self) {
        self.offered_at.store(0, Relaxed);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    pub(super) fn took(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Relaxed);
        // The last bytes of a part may leave when nothing more is there for the reader.
        if self.offered_at.load(Relaxed) > 0 {
            self.offered();
        }
    }
}

/// A part of an answer in hyper's hands. The h2 crate moves it on by as many bytes as the stream's window takes: that
/// is where a slow reader shows that it reads.
#[derive(Debug)]
pub(super) struct Parcel {
    bytes: Bytes,
    watch: Option<Arc<Watch>>,
}

impl Parcel {
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl Buf for Parcel {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(watch) = &self.watch {
            watch.took(count);
        }
    }
}

/// Largest part of an answer that hyper is given at once in HTTP/2. It asks for the next one when the window has room
/// for more than this.
const PIECE: usize = 16 * 1024;

/// hyper lets go of an HTTP/2 stream when it is given the end of the answer, whether that can be sent or not, and then
/// nobody can cut it. So the last byte of an answer is given by itself: hyper asks for it when the window has room for
/// it. What is smaller than this costs less than the stream itself, and is given whole.
const WHOLE: usize = 1024;

/// An answer on its way out.
#[derive(Debug)]
pub(super) struct Observed {
    body: Answer,
    watch: Option<Arc<Watch>>,
    /// HTTP/2 only: what hyper has yet to ask for.
    held: Bytes,
    _under_way: UnderWay,
}

impl Observed {
    pub(super) fn new(body: Answer, under_way: UnderWay, watch: Option<Arc<Watch>>) -> Self {
        // While the window is shut hyper does not even ask for the beginning.
        if let Some(watch) = watch.as_ref().filter(|_| !body.is_end_stream()) {
            watch.offered();
        }
        Observed { body, watch, held: Bytes::new(), _under_way: under_way }
    }

    /// The next piece of what is held.
    fn piece(&mut self) -> Parcel {
        let Some(watch) = &self.watch else { return Parcel::from(std::mem::take(&mut self.held)) };
        watch.offered();
        let last = self.body.is_end_stream() && self.held.len() > WHOLE;
        let most = self.held.len() - usize::from(last);
        Parcel { bytes: self.held.split_to(most.min(PIECE)), watch: Some(Arc::clone(watch)) }
    }
}

impl From<Bytes> for Parcel {
    fn from(bytes: Bytes) -> Self {
        Parcel { bytes, watch: None }
    }
}

impl Body for Observed {
    type Data = Parcel;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Parcel>, axum::Error>>> {
        let this = &mut *self;
        if this.held.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(cx);
            if let (Some(watch), Poll::Pending | Poll::Ready(None | Some(Err(_)))) = (&this.watch, &polled) {
                watch.nothing_offered();
            }
            let Some(frame) = ready!(polled) else { return Poll::Ready(None) };
            match frame?.into_data() {
                Ok(data) => this.held = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers.map_data(Parcel::from)))),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(this.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How much of requests' bodies is on its way, of all connections together.
#[derive(Debug)]
pub(super) struct BodyRoom {
    max: usize,
    taken: AtomicUsize,
}

impl BodyRoom {
    pub(super) fn new(max: usize) -> Self {
        BodyRoom { max, taken: AtomicUsize::new(0) }
    }

    /// Room for so many more bytes; they are taken in any case, until they are given back.
    fn take(&self, bytes: usize) -> bool {
        self.taken.fetch_add(bytes, Relaxed) + bytes <= self.max
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Relaxed);
    }
}

/// Whom to tell that a request's body is not as it should be.
#[derive(Debug)]
pub(super) enum Faults {
    /// HTTP/1: one request at a time, and the socket's own clock.
    Connection(Arc<Pulse>),
    /// HTTP/2: the body has a clock of its own.
    Stream(Arc<Watch>),
}

impl Faults {
    fn found(&self, refusal: Refusal) {
        match self {
            Faults::Connection(pulse) => pulse.fault(refusal),
            Faults::Stream(watch) => watch.fault.store(refusal.to_byte(), Relaxed),
        }
    }
}

/// A request's body, which takes room while it comes in, and in HTTP/2 must not take too long.
#[derive(Debug)]
pub(super) struct PatientBody {
    body: Incoming,
    faults: Faults,
    options: Arc<Connections>,
    room: Arc<BodyRoom>,
    /// Made when the body first has to be waited for.
    wait: Option<Box<Wait>>,
    bytes: usize,
}

#[derive(Debug)]
struct Wait {
    timer: Pin<Box<Sleep>>,
    since: Option<Instant>,
    before: Duration,
}

/// What the application is told; the client is told by the guard.
#[derive(Debug, thiserror::Error)]
#[error("the request's body was given up: {}", .0.text())]
pub(super) struct GivenUp(Refusal);

impl PatientBody {
    pub(super) fn new(
        body: Incoming,
        faults: Faults,
        options: &Arc<Connections>,
        room: &Arc<BodyRoom>,
    ) -> Self {
        let (options, room) = (Arc::clone(options), Arc::clone(room));
        PatientBody { body, faults, options, room, wait: None, bytes: 0 }
    }

    /// Nothing came. Ready when that has gone on for too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Faults::Connection(_) = self.faults {
            return Poll::Pending;
        }
        let now = Instant::now();
        let allowed = body_time(&self.options, self.bytes as u64);
        let wait = self.wait.get_or_insert_with(|| {
            Box::new(Wait { timer: Box::pin(sleep_until(now)), since: None, before: Duration::ZERO })
        });
        if wait.since.is_none() {
            wait.since = Some(now);
            wait.timer.as_mut().reset(now + allowed.saturating_sub(wait.before));
        }
        wait.timer.as_mut().poll(cx)
    }

    fn give_up(&self, refusal: Refusal) -> <Self as Body>::Error {
        self.faults.found(refusal);
        GivenUp(refusal).into()
    }
}

impl Drop for PatientBody {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

impl Body for PatientBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            return this.wait(cx).map(|()| Some(Err(this.give_up(Refusal::BodyTimeout))));
        };
        if let Some(wait) = &mut this.wait
            && let Some(since) = wait.since.take()
        {
            wait.before += since.elapsed();
        }
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        let bytes = data.map_or(0, Bytes::len);
        this.bytes += bytes;
        if !this.room.take(bytes) {
            return Poll::Ready(Some(Err(this.give_up(Refusal::NoRoom))));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
