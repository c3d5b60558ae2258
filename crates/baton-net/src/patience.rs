//! Time limits of a connection. There is one timer per connection: it is set for the earliest limit, and set anew only when
//! it fires or when an earlier limit comes up, not for every read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::options::Connections;
use super::preface::Protocol;
use super::pulse::{Phase, Pulse};

/// Which time limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RanOut {
    /// The first byte of the connection.
    FirstByte,
    /// The TLS handshake.
    Handshake,
    Head,
    Body,
    /// The next request.
    Idle,
    /// The reader of an answer.
    Reader,
    /// The client's confirmation that the connection closes (HTTP/2).
    Goodbye,
}

/// How long an HTTP/2 client has to acknowledge the GOAWAY.
const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct ConnectionTimer {
    sleep: Pin<Box<Sleep>>,
    /// When it fires next, in the pulse's time.
    set_for: Option<u64>,
    protocol: Protocol,
    leaving_since: Option<u64>,
}

impl ConnectionTimer {
    pub(super) fn new() -> Self {
        let sleep = Box::pin(sleep_until(Instant::now()));
        ConnectionTimer { sleep, set_for: None, protocol: Protocol::Http1, leaving_since: None }
    }

    pub(super) fn speaks(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.protocol == Protocol::Http2
    }

    /// The connection is being closed. An HTTP/2 client has to acknowledge that, and not every client does.
    pub(super) fn leaving(&mut self, pulse: &Pulse) {
        let is_spare = pulse.is_spare() || pulse.half_close.is_over_late();
        if self.protocol == Protocol::Http2 && is_spare {
            self.leaving_since.get_or_insert_with(|| pulse.now());
        } else {
            self.leaving_since = None;
        }
    }

    /// Ready when a limit has run out. Call it after everything else has been polled.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        pulse: &Pulse,
        options: &Connections,
    ) -> Poll<RanOut> {
        loop {
            let Some((due, what)) = self.due(pulse, options) else { return Poll::Pending };
            // Usually the timer is set for no later than that, and the clock need not be read.
            if self.set_for.is_none_or(|set_for| due < set_for) {
                if pulse.now() >= due {
                    return Poll::Ready(what);
                }
                self.sleep.as_mut().reset(pulse.moment(due));
                self.set_for = Some(due);
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.set_for = None;
        }
    }

    fn due(&self, pulse: &Pulse, options: &Connections) -> Option<(u64, RanOut)> {
        let reader =
            pulse.blocked_since().map(|since| (since + micros(options.reader_stall), RanOut::Reader));
        // An answer that is being sent is not interrupted.
        let leaving = self.leaving_since.map(|since| since.max(pulse.quiet_since()));
        let goodbye = leaving.map(|since| (since + micros(GOODBYE), RanOut::Goodbye));
        let client = match pulse.phase() {
            Phase::Silent => Some((pulse.phase_since() + micros(options.first_byte), RanOut::FirstByte)),
            Phase::Handshake => Some((pulse.phase_since() + micros(options.handshake), RanOut::Handshake)),
            Phase::Head => {
                let since = match self.protocol {
                    // What a client sends during an answer is not read before its end.
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

/// How long the server may have waited for a body of which this many bytes have arrived.
pub(super) fn body_time(options: &Connections, bytes: u64) -> Duration {
    let by_rate = bytes.saturating_mul(1000).checked_div(options.body_rate);
    let by_rate = by_rate.map_or(options.body_total, Duration::from_millis);
    by_rate.max(options.body_grace).min(options.body_total)
}

/// In the pulse's time; capped at 2,000 years, so that sums do not overflow.
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
    async fn fires(timer: &mut ConnectionTimer, pulse: &Pulse) -> (RanOut, u64) {
        let options = Connections::default();
        let what = poll_fn(|cx| timer.poll(cx, pulse, &options)).await;
        (what, pulse.now() / 1_000_000)
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_rings_for_what_is_waited_for_now() {
        let pulse = Pulse::new(Instant::now());
        let mut timer = ConnectionTimer::new();
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::FirstByte, 5));
        pulse.enter(Phase::Head);
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Head, 15));
        pulse.begin();
        pulse.enter(Phase::Body);
        pulse.body_awaited();
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Body, 20));
        // What came pays for some of the time.
        pulse.body_came(10 * 1024);
        pulse.body_awaited();
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Body, 25));
        pulse.enter(Phase::Between);
        pulse.end();
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Idle, 100));
        pulse.begin();
        pulse.write_blocked();
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Reader, 400));
        pulse.wrote();
        pulse.end();
        timer.speaks(Protocol::Http2);
        timer.leaving(&pulse);
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Goodbye, 401));
    }

    /// A timer that was set for later must not keep something earlier waiting.
    #[tokio::test(start_paused = true)]
    async fn what_comes_up_earlier_is_not_missed() {
        let (pulse, mut timer, options) =
            (Pulse::new(Instant::now()), ConnectionTimer::new(), Connections::default());
        pulse.enter(Phase::Between);
        poll_fn(|cx| {
            assert!(timer.poll(cx, &pulse, &options).is_pending());
            Poll::Ready(())
        })
        .await;
        tokio::time::advance(Duration::from_secs(1)).await;
        pulse.enter(Phase::Head);
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Head, 11));
    }

    /// Time in which nobody reads is not the client's.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_asks_for_does_not_run_out() {
        let (pulse, mut timer) = (Pulse::new(Instant::now()), ConnectionTimer::new());
        pulse.begin();
        pulse.enter(Phase::Body);
        let never = tokio::time::timeout(Duration::from_secs(3600), fires(&mut timer, &pulse));
        assert!(never.await.is_err());
        pulse.body_awaited();
        assert_eq!(fires(&mut timer, &pulse).await, (RanOut::Body, 3605));
    }
}
