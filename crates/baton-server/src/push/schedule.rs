//! What follows an attempt to deliver a webhook: a pure function of the attempts so far, the answer and a random number.
//!
//! The waits are those that the Standard Webhooks specification suggests: ten attempts over 75 hours.

use std::time::Duration;

use http::StatusCode;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Seconds from one attempt to the next; together 75 h 35 min 5 s.
const WAITS: [u64; 9] =
    [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
/// The legacy protocol has at most three retries, further apart each time.
const LEGACY_WAITS: [u64; 3] = [5, 25, 125];
/// Waits are this much shorter or longer at most, so that endpoints that failed together are not tried together again.
const JITTER: f64 = 0.05;

/// After so long since the first attempt, no `Retry-After` is granted any more. The log is kept for this long.
pub(crate) const WINDOW: Duration = Duration::from_secs(80 * HOUR);
/// Longest wait that a `Retry-After` is granted.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * HOUR);
/// No wait is longer: the longest that is granted, with its jitter.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(25 * HOUR + 20 * MINUTE);
/// An endpoint under load is left alone for at least this long.
const THROTTLED: Duration = Duration::from_secs(30);
/// Longest time that one answer keeps other tasks' deliveries from an endpoint. Its `Retry-After` may be meant for one
/// subscriber of many behind the same host, and must not silence the others.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(MINUTE);
/// So many attempts at one event have to fail before newer events may take its place.
const FAILURES_BEFORE_SKIP: u32 = 3;

/// Which rules a configuration follows: those of the generation that it was created in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// 0.3 and 1.0: ten attempts; then the event is set aside and can be replayed.
    Standard,
    /// 0.1: four attempts; then the subscription is removed.
    Legacy,
}

impl Policy {
    /// So many attempts at one event have to fail for good.
    pub(crate) fn most_attempts(self) -> u32 {
        self.waits().len() as u32 + 1
    }

    fn waits(self) -> &'static [u64] {
        match self {
            Self::Standard => &WAITS,
            Self::Legacy => &LEGACY_WAITS,
        }
    }
}

/// How an attempt ended, as far as the schedule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 2xx.
    Accepted,
    /// 410: the receiver wants no more.
    Gone,
    /// 429, 502, 504: the receiver, or what is in front of it, is under load.
    Overloaded { retry_after: Option<Duration> },
    /// Anything else: other answers, redirects among them, and no answer at all.
    Failed { retry_after: Option<Duration> },
}

impl Answer {
    pub(crate) fn of_status(status: StatusCode, retry_after: Option<Duration>) -> Self {
        match status {
            status if status.is_success() => Self::Accepted,
            StatusCode::GONE => Self::Gone,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
                Self::Overloaded { retry_after }
            }
            _ => Self::Failed { retry_after },
        }
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Accepted | Self::Gone => None,
            Self::Overloaded { retry_after } | Self::Failed { retry_after } => retry_after,
        }
    }
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// On to the next event.
    Advance,
    /// The same event again.
    Retry {
        /// From now.
        wait: Duration,
        /// The next attempt may send the newest state of the task instead, and leave out the events up to it.
        may_skip_to_newest: bool,
        /// No delivery to this endpoint, of whatever task, should begin sooner.
        pause_endpoint: Option<Duration>,
    },
    /// The event goes to those that failed for good.
    SetAside,
    /// The configuration is switched off: the receiver said that it wants no more.
    Disable,
    /// The configuration is deleted.
    Remove,
}

/// Decides after attempt number `attempt` (the first is 1) at an event, `elapsed` after its first attempt. `jitter` is a
/// random number from 0 to 1.
pub(crate) fn next(policy: Policy, attempt: u32, elapsed: Duration, answer: Answer, jitter: f64) -> Next {
    let retry_after = match answer {
        Answer::Accepted => return Next::Advance,
        Answer::Gone => return Next::Disable,
        Answer::Overloaded { .. } | Answer::Failed { .. } => {
            answer.retry_after().map(|asked| asked.min(MAX_RETRY_AFTER))
        }
    };
    let position = attempt.saturating_sub(1) as usize;
    // The attempts decide and not the time: the clock may have jumped, and the server may have been off.
    let Some(seconds) = policy.waits().get(position) else {
        return match policy {
            Policy::Standard => Next::SetAside,
            Policy::Legacy => Next::Remove,
        };
    };
    let is_overloaded = matches!(answer, Answer::Overloaded { .. });
    let least = if is_overloaded { THROTTLED } else { Duration::ZERO };
    let scheduled = spread(Duration::from_secs(*seconds).max(least), jitter);
    // Never sooner than asked: the jitter of a `Retry-After` only adds.
    let asked = retry_after.map(|asked| asked + asked.mul_f64(JITTER * unit(jitter)));
    let asked = asked.unwrap_or_default().min(WINDOW.saturating_sub(elapsed));
    Next::Retry {
        wait: scheduled.max(asked),
        // The legacy protocol shows no whole task: what was left out would be lost.
        may_skip_to_newest: policy == Policy::Standard && attempt >= FAILURES_BEFORE_SKIP,
        pause_endpoint: is_overloaded
            .then(|| retry_after.unwrap_or(THROTTLED).clamp(Duration::from_secs(1), MAX_PAUSE)),
    }
}

/// Shorter or longer by up to [`JITTER`].
fn spread(wait: Duration, jitter: f64) -> Duration {
    wait.mul_f64(1.0 - JITTER + 2.0 * JITTER * unit(jitter))
}

fn unit(jitter: f64) -> f64 {
    if jitter.is_nan() { 0.5 } else { jitter.clamp(0.0, 1.0) }
}

/// Reads a `Retry-After` header: seconds, or a date. `now` is in seconds since 1970.
pub(crate) fn read_retry_after(value: &[u8], now: u64) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        // Digits without end are a long time, too.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)).min(MAX_RETRY_AFTER));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let at = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(Duration::from_secs(now)).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: f64 = 0.5;
    const FAILED: Answer = Answer::Failed { retry_after: None };
    const OVERLOADED: Answer = Answer::Overloaded { retry_after: None };

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn wait(next: Next) -> Duration {
        match next {
            Next::Retry { wait, .. } => wait,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_are_told_apart_by_their_status() {
        let after = seconds(7);
        for status in 100..1000 {
            let expected = match status {
                200..=299 => Answer::Accepted,
                410 => Answer::Gone,
                429 | 502 | 504 => Answer::Overloaded { retry_after: after },
                _ => Answer::Failed { retry_after: after },
            };
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Answer::of_status(status, after), expected, "{status}");
        }
    }

    /// Ten attempts, at the times of the specification's example.
    #[test]
    fn ten_attempts_in_75_hours() {
        let times = [
            "0:00:05", "0:05:05", "0:35:05", "2:35:05", "7:35:05", "17:35:05", "31:35:05", "51:35:05",
            "75:35:05",
        ];
        let mut elapsed = Duration::ZERO;
        for (attempt, time) in (1..).zip(times) {
            let next = next(Policy::Standard, attempt, elapsed, FAILED, MIDDLE);
            elapsed += wait(next);
            let shown = elapsed.as_secs();
            assert_eq!(format!("{}:{:02}:{:02}", shown / 3600, shown / 60 % 60, shown % 60), time);
            let Next::Retry { may_skip_to_newest, pause_endpoint, .. } = next else { unreachable!() };
            assert_eq!(may_skip_to_newest, attempt >= 3, "after attempt {attempt}");
            assert_eq!(pause_endpoint, None);
        }
        assert_eq!(next(Policy::Standard, 10, elapsed, FAILED, MIDDLE), Next::SetAside);
        assert_eq!(next(Policy::Standard, 11, elapsed, FAILED, MIDDLE), Next::SetAside);
    }

    #[test]
    fn legacy_subscriptions_have_three_retries_and_are_removed() {
        let next = |attempt, answer| next(Policy::Legacy, attempt, Duration::ZERO, answer, MIDDLE);
        let waits: Vec<u64> = (1..=3).map(|attempt| wait(next(attempt, FAILED)).as_secs()).collect();
        assert_eq!(waits, [5, 25, 125]);
        assert!(matches!(next(3, FAILED), Next::Retry { may_skip_to_newest: false, .. }));
        assert_eq!(next(4, FAILED), Next::Remove);
        assert_eq!(next(4, OVERLOADED), Next::Remove);
        assert_eq!(next(2, Answer::Accepted), Next::Advance);
        assert_eq!(next(1, Answer::Gone), Next::Disable);
    }

    #[test]
    fn success_and_gone_need_no_retry() {
        for attempt in 1..=10 {
            let next = |answer| next(Policy::Standard, attempt, WINDOW, answer, MIDDLE);
            assert_eq!(next(Answer::Accepted), Next::Advance);
            assert_eq!(next(Answer::Gone), Next::Disable);
        }
    }

    #[test]
    fn an_endpoint_under_load_is_tried_later_and_paused() {
        let after = |answer| next(Policy::Standard, 1, Duration::ZERO, answer, MIDDLE);
        for (retry_after, waited, paused) in [
            (None, 30, 30),
            (seconds(0), 30, 1),
            (seconds(10), 30, 10),
            (seconds(600), 615, 60),
            (seconds(u64::MAX), 88_560, 60),
        ] {
            let Next::Retry { wait, pause_endpoint, .. } = after(Answer::Overloaded { retry_after }) else {
                panic!("{retry_after:?}")
            };
            assert_eq!((wait.as_secs(), pause_endpoint), (waited, seconds(paused)), "{retry_after:?}");
        }
        // A later attempt is late enough as it is.
        assert_eq!(wait(next(Policy::Standard, 2, Duration::ZERO, OVERLOADED, MIDDLE)).as_secs(), 300);
    }

    #[test]
    fn retry_after_is_kept_to_within_bounds() {
        for (attempt, retry_after, elapsed, waited) in [
            (1, 3, 0, 5.0),
            (1, 60, 0, 61.5),
            (4, 60, 0, 7200.0),
            (1, 10 * 24 * HOUR, 0, 24.6 * 3600.0),
            // The window ends before the time asked for.
            (5, 24 * HOUR, 73 * HOUR, 7.0 * 3600.0),
            (5, 24 * HOUR, 79 * HOUR, 5.0 * 3600.0),
        ] {
            let answer = Answer::Failed { retry_after: seconds(retry_after) };
            let next = next(Policy::Standard, attempt, Duration::from_secs(elapsed), answer, MIDDLE);
            assert_eq!(wait(next).as_secs_f64(), waited, "{attempt} {retry_after}");
        }
    }

    /// After a clock that jumped, or a server that was off for a week, there are as many attempts as ever.
    #[test]
    fn s14_attempts_are_counted_and_not_the_time() {
        let asked = Answer::Failed { retry_after: seconds(24 * HOUR) };
        for elapsed in [WINDOW, 1000 * WINDOW, Duration::MAX] {
            for (attempt, scheduled) in (1..).zip(WAITS) {
                for answer in [FAILED, asked] {
                    let next = next(Policy::Standard, attempt, elapsed, answer, MIDDLE);
                    assert_eq!(wait(next).as_secs(), scheduled, "{attempt}");
                }
            }
            assert_eq!(next(Policy::Standard, 10, elapsed, FAILED, MIDDLE), Next::SetAside);
            assert_eq!(next(Policy::Legacy, 4, elapsed, FAILED, MIDDLE), Next::Remove);
        }
    }

    /// For every random number: within a twentieth of the schedule, never before a `Retry-After`, all within the window.
    #[test]
    fn jitter_stays_within_its_bounds() {
        for jitter in [0.0, 0.25, 0.5, 0.75, 1.0, -1.0, 7.0, f64::NAN, f64::INFINITY] {
            let mut elapsed = Duration::ZERO;
            for (attempt, scheduled) in (1..).zip(WAITS) {
                let wait = wait(next(Policy::Standard, attempt, elapsed, FAILED, jitter));
                let share = wait.as_secs_f64() / scheduled as f64;
                assert!((0.9499..=1.0501).contains(&share), "{jitter} {attempt}: {share}");
                elapsed += wait;
            }
            assert!(elapsed < WINDOW, "{jitter}: {elapsed:?}");
            let longest = Answer::Failed { retry_after: seconds(u64::MAX) };
            let longest = super::next(Policy::Standard, 1, Duration::ZERO, longest, jitter);
            assert!(matches!(longest, Next::Retry { wait, .. } if wait <= LONGEST_WAIT), "{longest:?}");
            let asked = Answer::Failed { retry_after: seconds(100) };
            let wait = wait(next(Policy::Standard, 1, Duration::ZERO, asked, jitter));
            assert!((100.0..=105.0).contains(&wait.as_secs_f64()), "{jitter}: {wait:?}");
        }
        let spread = |jitter| wait(next(Policy::Standard, 2, Duration::ZERO, FAILED, jitter));
        assert!(spread(0.0) < spread(0.5) && spread(0.5) < spread(1.0));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = 784_111_777;
        for (text, expected) in [
            ("0", seconds(0)),
            ("120", seconds(120)),
            (" 120 ", seconds(120)),
            ("99999999999999999999999", seconds(24 * HOUR)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", seconds(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", seconds(0)),
            ("Tue, 06 Nov 1984 08:49:37 GMT", seconds(0)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", seconds(24 * HOUR)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("12 34", None),
        ] {
            assert_eq!(read_retry_after(text.as_bytes(), now), expected, "{text}");
        }
        assert_eq!(read_retry_after(b"\xff", now), None);
    }
}
