//! Wrapped bodies: a request's is limited in time and memory; an answer's tells when it ends and whether its reader reads.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum_core::body::Body as Answer;
use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::body_room::{BodyBytes, BodyRoom};
use super::customer::CustomerOfRequest;
use super::options::Connections;
use super::patience::body_time;
use super::pulse::Pulse;
use super::refusal::Refusal;

/// A request under way on a connection; dropped at the end of its answer.
#[derive(Debug)]
pub(super) struct UnderWay {
    pulse: Arc<Pulse>,
    /// Whom it is counted for.
    customer: Option<CustomerOfRequest>,
}

impl UnderWay {
    pub(super) fn new(pulse: &Arc<Pulse>) -> Self {
        pulse.begin();
        UnderWay { pulse: Arc::clone(pulse), customer: None }
    }

    pub(super) fn of(mut self, customer: CustomerOfRequest) -> Self {
        self.customer = Some(customer);
        self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.pulse.end();
    }
}

/// State of one HTTP/2 request that its parts share. In HTTP/1 this is in the connection's [`Pulse`].
#[derive(Debug)]
pub(super) struct Watch {
    epoch: Instant,
    /// When a part of the answer was last ready for the reader, or was last read: milliseconds plus one; 0 while there is
    /// nothing to read.
    offered_at: AtomicU64,
    /// Bytes of the answer that were sent.
    taken: AtomicU64,
    fault: AtomicU8,
    cut: AtomicBool,
    /// Wakes the stream's task while its reader is stuck.
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

    /// Ends the stream, to free its memory for other answers.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
        self.waker.wake();
    }

    /// Whether the stream was cut off. If not, the waker is called when it is.
    pub(super) fn is_cut(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.cut.load(Relaxed)
    }

    /// Since when the reader has read no byte although there is something to read.
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
        // The last bytes of a part may be sent while the next part is not there yet.
        if self.offered_at.load(Relaxed) > 0 {
            self.offered();
        }
    }
}

/// A part of an answer that hyper has. The h2 crate advances it by as many bytes as the stream's window takes, which shows
/// that a slow reader reads.
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

/// Largest part of an answer that hyper is given at once in HTTP/2. It hands a part to the h2 crate as soon as the window
/// takes one byte of it, and fetches the next one meanwhile: a reader that is stuck holds up to two parts in memory.
const PIECE: usize = 16 * 1024;

/// The future of an HTTP/2 stream ends when hyper gets the end of the answer, whether that can be sent or not; then the
/// stream cannot be cut off any more. So the last byte of an answer is given by itself: hyper keeps it until the window has
/// room for it. Answers up to this size cost less than the stream itself, and are given whole.
const WHOLE: usize = 1024;

/// The body of an answer, observed while hyper sends it.
#[derive(Debug)]
pub(super) struct ObservedBody {
    body: Answer,
    watch: Option<Arc<Watch>>,
    /// HTTP/2 only: the rest of the last frame, which hyper has not asked for yet.
    held: Bytes,
    _under_way: UnderWay,
}

impl ObservedBody {
    pub(super) fn new(body: Answer, under_way: UnderWay, watch: Option<Arc<Watch>>) -> Self {
        // From now on, and not from the first `poll_frame`: some versions of hyper poll only when the window is open.
        if let Some(watch) = watch.as_ref().filter(|_| !body.is_end_stream()) {
            watch.offered();
        }
        ObservedBody { body, watch, held: Bytes::new(), _under_way: under_way }
    }

    /// The next part of what is held.
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

impl Body for ObservedBody {
    type Data = Parcel;
    type Error = axum_core::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Parcel>, axum_core::Error>>> {
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

/// Where the reason is kept when a request's body is refused.
#[derive(Debug)]
pub(super) enum Faults {
    /// HTTP/1: there is one request at a time, and the connection's timer limits its body.
    Connection(Arc<Pulse>),
    /// HTTP/2: each body has a timer of its own.
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

/// A request's body: its bytes are counted while they are received, and in HTTP/2 it is limited in time.
#[derive(Debug)]
pub(super) struct PatientBody {
    body: Incoming,
    faults: Faults,
    options: Arc<Connections>,
    room: Arc<BodyRoom>,
    customer: CustomerOfRequest,
    /// Made with the first part that is not the last: a body that comes at once is never held.
    held: Option<BodyBytes>,
    /// Made when the body is first waited for.
    wait: Option<Box<Wait>>,
    bytes: usize,
}

#[derive(Debug)]
struct Wait {
    timer: Pin<Box<Sleep>>,
    since: Option<Instant>,
    before: Duration,
}

/// The error that the application gets; the client gets its answer from the guard.
#[derive(Debug, thiserror::Error)]
#[error("the request's body was given up: {}", .0.text())]
pub(super) struct GivenUp(Refusal);

impl PatientBody {
    pub(super) fn new(
        body: Incoming,
        faults: Faults,
        options: &Arc<Connections>,
        room: &Arc<BodyRoom>,
        customer: CustomerOfRequest,
    ) -> Self {
        let (options, room) = (Arc::clone(options), Arc::clone(room));
        PatientBody { body, faults, options, room, customer, held: None, wait: None, bytes: 0 }
    }

    /// Counts a part after which more is to come. False if the body is given up.
    fn hold(&mut self, part: usize) -> bool {
        let held = self.held.get_or_insert_with(|| BodyBytes::new(&self.room, self.customer.get()));
        held.add(part)
    }

    /// Nothing was received. Ready when that has lasted too long.
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

impl Body for PatientBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if this.held.as_ref().is_some_and(|held| held.gives_way(cx.waker())) {
            return Poll::Ready(Some(Err(this.give_up(Refusal::GivesWay))));
        }
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
        if bytes > 0 && !this.body.is_end_stream() && !this.hold(bytes) {
            return Poll::Ready(Some(Err(this.give_up(Refusal::GivesWay))));
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
