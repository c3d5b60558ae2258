//! The load: requests are sent when they are due, and counted when they are answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_lab::fault::draw::Draw;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::plan::{Load, Pace};
use super::schedule::{Schedule, keep_time};
use super::tally::Tally;
use super::workload::{Operation, Workload};

/// In addition to the timeouts.
const BACKSTOP: Duration = Duration::from_secs(20);

/// What all requests of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) workload: Workload,
    /// How many requests may be under way at once, and the room for them.
    pub(super) concurrency: usize,
    pub(super) places: Arc<Semaphore>,
    pub(super) tally: Mutex<Tally>,
    /// The user wants to stop.
    pub(super) stop: CancellationToken,
}

impl Shared {
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.workload.timeout
    }

    /// When everything that is under way now is over for certain. Each request ends by its own timeout, which begins when
    /// its task first runs, and a stream is given time to close, so that this must be later; it is only there in case that
    /// one of them hangs.
    pub(super) fn backstop(&self) -> Instant {
        Instant::now() + self.workload.timeout * 2 + BACKSTOP
    }
}

/// Runs the load, and waits for the last answer. Returns how long it took.
pub(super) async fn run(shared: &Arc<Shared>, load: &Load, seed: u64) -> std::io::Result<Duration> {
    let start = Instant::now();
    let mut sender = Sender { shared, load, draw: Draw::of(seed, 1), end: start + load.duration };
    match load.pace {
        Pace::Open { per_second, arrivals } => {
            let most = usize::try_from(load.most).unwrap_or(usize::MAX);
            // Room for all of them, so that the schedule never waits.
            let (announce, due) = mpsc::channel(most.clamp(1, Semaphore::MAX_PERMITS));
            let duration = load.duration;
            let times = Schedule::new(per_second, arrivals, seed);
            keep_time(times.take(most).take_while(move |time| *time < duration), start, announce)?;
            sender.open(due).await;
        }
        Pace::Max => sender.closed().await,
    }
    // Everybody's place is free again when the last answer has come.
    let all = u32::try_from(shared.concurrency).unwrap_or(u32::MAX);
    tokio::select! {
        _ = timeout_at(shared.backstop().into(), shared.places.acquire_many(all)) => {}
        () = shared.stop.cancelled() => {}
    }
    Ok(start.elapsed())
}

struct Sender<'a> {
    shared: &'a Arc<Shared>,
    load: &'a Load,
    draw: Draw,
    end: Instant,
}

impl Sender<'_> {
    /// Sends each request when it is due. If as many as allowed are under way, it waits for a place, and its time counts
    /// from when it was due; what has no place before the end is not sent.
    async fn open(&mut self, mut due: mpsc::Receiver<Instant>) {
        loop {
            let next = tokio::select! {
                next = due.recv() => next,
                () = self.shared.stop.cancelled() => None,
            };
            let Some(when) = next else { return };
            let place = match Arc::clone(&self.shared.places).try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) => {
                    self.shared.tally().waited += 1;
                    self.place().await
                }
            };
            let Some(place) = place else {
                let mut unsent = 1;
                if self.shared.stop.is_cancelled() {
                    due.close();
                }
                // The schedule ends now, too, so that this is all that was due.
                while due.recv().await.is_some() {
                    unsent += 1;
                }
                let mut tally = self.shared.tally();
                tally.unsent = unsent;
                // That one never got its place.
                tally.waited -= 1;
                return;
            };
            self.send(when, place);
        }
    }

    /// Sends the next request as soon as there is a place.
    async fn closed(&mut self) {
        for _ in 0..self.load.most {
            let Some(place) = self.place().await else { return };
            self.send(Instant::now(), place);
        }
    }

    /// A place for a request; `None` at the end.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            place = timeout_at(self.end.into(), Arc::clone(&self.shared.places).acquire_owned()) => place.ok()?.ok(),
            () = self.shared.stop.cancelled() => None,
        }
    }

    fn send(&mut self, due: Instant, place: OwnedSemaphorePermit) {
        let operation = self.load.mix.pick(&mut self.draw);
        let shared = Arc::clone(self.shared);
        shared.tally().sent += 1;
        tokio::spawn(async move {
            request(&shared, operation, due).await;
            drop(place);
        });
    }
}

async fn request(shared: &Shared, operation: Operation, due: Instant) {
    let sent = Instant::now();
    shared.tally().send_delay.record(sent.saturating_duration_since(due));
    let performed = shared.workload.perform(operation, due).await;
    shared.tally().note(operation, due, sent, performed);
}
