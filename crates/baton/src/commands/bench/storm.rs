//! A reconnect storm: many streams lose their connections at the same moment, and all come back at once, each asking for
//! what follows its last event.

use std::time::{Duration, Instant};

use baton_client::{Error, RawStream};
use baton_protocol::ErrorKind;
use baton_protocol::operation::{Call, SubscribeToTask};
use tokio::time::sleep;

use super::histogram::Latencies;
use super::load::Shared;
use super::trouble::Trouble;
use super::watched::Watched;

/// The wait after a try that failed; each further one is twice as long, up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What a storm did.
#[derive(Debug, Default)]
pub(super) struct Storm {
    /// Streams that were open when it came, and lost their connection.
    pub(super) cut: u64,
    pub(super) back: u64,
    /// From the cut until the agent had opened the stream again.
    pub(super) times: Latencies,
    /// Tries that had to be repeated.
    pub(super) repeated_tries: u64,
}

/// How one stream came back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Return {
    /// `None` if it did not.
    after: Option<Duration>,
    failed_tries: u64,
}

/// The end of an attempt to come back.
pub(super) struct Back {
    pub(super) result: Result<RawStream, Trouble>,
    at: Instant,
    failed_tries: u64,
}

impl Storm {
    pub(super) fn add(&mut self, returned: &Return) {
        self.cut += 1;
        self.repeated_tries += returned.failed_tries;
        if let Some(after) = returned.after {
            self.back += 1;
            self.times.record(after);
        }
    }
}

impl Return {
    pub(super) fn of(cut: Instant, back: &Back) -> Self {
        let after = back.result.is_ok().then(|| back.at - cut);
        Return { after, failed_tries: back.failed_tries }
    }
}

/// Subscribes to the task again, behind the last event that came; again and again while the agent cannot be reached or has
/// no room, until the timeout.
pub(super) async fn come_back(shared: &Shared, watched: &Watched, cut: Instant) -> Back {
    let deadline = cut + shared.workload.timeout;
    let mut failed_tries = 0;
    loop {
        let result = subscribe(shared, watched).await;
        let at = Instant::now();
        match result {
            Err(Trouble::Call(error)) if may_pass(&error) && at < deadline && !shared.stop.is_cancelled() => {
                sleep(FIRST_WAIT.saturating_mul(1 << failed_tries.min(8)).min(LONGEST_WAIT)).await;
                failed_tries += 1;
            }
            result => return Back { result, at, failed_tries },
        }
    }
}

async fn subscribe(shared: &Shared, watched: &Watched) -> Result<RawStream, Trouble> {
    let Some(task) = watched.task() else { return Err(Trouble::ClosedEarly) };
    let call = Call::SubscribeToTask(SubscribeToTask { id: task.id.clone() });
    Ok(shared.workload.client.stream_raw(call, watched.numbers.last()).await?)
}

/// Whether the next try may succeed.
fn may_pass(error: &Error) -> bool {
    use ErrorKind::{QuotaExceeded, ResourceExhausted, Unavailable};
    error.transport().is_some()
        || matches!(error.kind(), Some(Unavailable | QuotaExceeded | ResourceExhausted))
        || error.agent().is_some_and(|error| matches!(error.http_status(), Some(429 | 503)))
}
