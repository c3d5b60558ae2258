//! How long a client may take, and for what. One timer per connection: it is set for the first thing that could run
//! out, and set anew only when it rings or when something earlier comes up, not for every read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::options::Connections;
use super::preface::Protocol;
use super::pulse::{Phase, Pulse};

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RanOut {
    /// The first byte of the connection.
    FirstByte,
    Head,
    Body,
    /// The next request.
    Idle,
    /// The reader of an answer.
    Reader,
    /// The client's part in closing the connection.
    Goodbye,
}

/// How long a client of HTTP/2 has to confirm that it heard of the end.
const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Clock {
    timer: Pin<Box<Sleep>>,
    /// When it rings next, in the pulse's time.
    set_for: Option<u64>,
    protocol: Protocol,
    leaving_since: Option<u64>,
}

impl Clock {
    pub(super) fn new() -> Self {
        let timer = Box::pin(sleep_until(Instant::now()));
        Clock { timer, set_for: None, protocol: Protocol::Http1, leaving_since: None }
    }

    pub(super) fn speaks(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.protocol == Protocol::Http2
    }

    /// The connection is being closed. In HTTP/2 the client has a part in that, and does not always play it.
    pub(super) fn leaving(&mut self, pulse: &Pulse) {
        let is_spare = pulse.is_spare() || pulse.half_close.is_over_late();
        if self.protocol == Protocol::Http2 && is_spare {
            self.leaving_since.get_or_insert_with(|| pulse.now());
        } else {
            self.leaving_since = None;
        }
    }

    /// Ready when something has run out. To be called after everything else had its turn.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        pulse: &Pulse,
        options: &Connections,
    ) -> Poll<RanOut> {
        loop {
            let Some((due, what)) = self.due(pulse, options) else { return Poll::Pending };
            // As a rule the timer rings no later than that, and the time need not be asked for.
            if self.set_for.is_none_or(|set_for| due < set_for) {
                if pulse.now() >= due {
                    return Poll::Ready(what);
                }
                self.timer.as_mut().reset(pulse.moment(due));
                self.set_for = Some(due);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.set_for = None;
        }
    }

    fn due(&self, pulse: &Pulse, options: &Connections) -> Option<(u64, RanOut)> {
        let reader =
            pulse.blocked_since().map(|since| (since + micros(options.reader_stall), RanOut::Reader));
        // As long as an answer flows it is not interrupted.
        let leaving = self.leaving_since.map(|since| since.max(pulse.quiet_since()));
        let goodbye = leaving.map(|since| (since + micros(GOODBYE), RanOut::Goodbye));
        let client = match pulse.phase() {
            Phase::Silent => Some((pulse.phase_since() + micros(options.first_byte), RanOut::FirstByte)),
            Phase::Head => {
                let since = match self.protocol {
                    // What comes in during an answer is not read before its end.
                    Protocol::Http1 if pulse.is_busy() => None,
                    Protocol::Http1 => Some(pulse.phase_since().max(pulse.quiet_since())),
                    Protocol::Http2 => Some(pulse.phase_since()),
                };
                since.map(|since| (since + micros(options.head), RanOut::Head))
            }
            Phase::Body => pulse.body_wait().map(|(since, waited, bytes)| {
                let allowed = micros(body_time(options, bytes)).saturating_sub(waited);
                (since + allowed, RanOut::Body)
            }),
            Phase::Between if pulse.is_spare() && goodbye.is_none() => {
                Some((pulse.quiet_since() + micros(options.idle), RanOut::Idle))
            }
            Phase::Between => None,
        };
        [reader, goodbye, client].into_iter().flatten().min_by_key(|(due, _)| *due)
    }
}

/// How long a body may have been waited for by the time it has brought so many bytes.
pub(super) fn body_time(options: &Connections, bytes: u64) -> Duration {
    let by_rate = bytes.saturating_mul(1000).checked_div(options.body_rate);
    let by_rate = by_rate.map_or(options.body_total, Duration::from_millis);
    by_rate.max(options.body_grace).min(options.body_total)
}

/// In the pulse's time; what is meant to be for ever is a few thousand years.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(1 << 56)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn a_body_must_come_at_its_rate_after_the_grace_and_within_its_time() {
        let options = Connections::default();
        for (bytes, millis) in [(0, 5000), (5 * 1024, 5000), (10 * 1024, 10_000), (1 << 30, 30_000)] {
            assert_eq!(body_time(&options, bytes).as_millis(), millis, "{bytes}");
        }
        let options_total = options.body_total;
        let any_rate = Connections { body_rate: 0, ..options };
        assert_eq!(body_time(&any_rate, 0), options_total);
    }

    /// Waits for whatever runs out first.
    async fn rings(clock: &mut Clock, pulse: &Pulse) -> (RanOut, u64) {
        let options = Connections::default();
        let what = poll_fn(|cx| clock.poll(cx, pulse, &options)).await;
        (what, pulse.now() / 1_000_000)
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_rings_for_what_is_waited_for_now() {
        let pulse = Pulse::new(Instant::now());
        let mut clock = Clock::new();
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::FirstByte, 5));
        pulse.enter(Phase::Head);
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Head, 15));
        pulse.begin();
        pulse.enter(Phase::Body);
        pulse.body_awaited();
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Body, 20));
        // What came pays for some of the time.
        pulse.body_came(10 * 1024);
        pulse.body_awaited();
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Body, 25));
        pulse.enter(Phase::Between);
        pulse.end();
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Idle, 100));
        pulse.begin();
        pulse.write_blocked();
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Reader, 400));
        pulse.wrote();
        pulse.end();
        clock.speaks(Protocol::Http2);
        clock.leaving(&pulse);
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Goodbye, 401));
    }

    /// A timer that was set for later must not keep something earlier waiting.
    #[tokio::test(start_paused = true)]
    async fn what_comes_up_earlier_is_not_missed() {
        let (pulse, mut clock, options) = (Pulse::new(Instant::now()), Clock::new(), Connections::default());
        pulse.enter(Phase::Between);
        poll_fn(|cx| {
            assert!(clock.poll(cx, &pulse, &options).is_pending());
            Poll::Ready(())
        })
        .await;
        tokio::time::advance(Duration::from_secs(1)).await;
        pulse.enter(Phase::Head);
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Head, 11));
    }

    /// Time in which nobody reads is not the client's.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_asks_for_does_not_run_out() {
        let (pulse, mut clock) = (Pulse::new(Instant::now()), Clock::new());
        pulse.begin();
        pulse.enter(Phase::Body);
        let never = tokio::time::timeout(Duration::from_secs(3600), rings(&mut clock, &pulse));
        assert!(never.await.is_err());
        pulse.body_awaited();
        assert_eq!(rings(&mut clock, &pulse).await, (RanOut::Body, 3605));
    }
}
