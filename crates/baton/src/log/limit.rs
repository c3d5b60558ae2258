//! Limits the log: each log statement in the code may write a number of lines per period. At the end of the period one
//! line says how many were left out.
//!
//! If a client can provoke a line, it can provoke it a million times, and the log may be on the same disk as the store.
//! The limit applies to every log statement, also in other crates, without extra code.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines of one log statement…
const LINES: u64 = 20;
/// …of security events, of which each one may matter…
const AUDIT_LINES: u64 = 200;
/// …in one period.
const PERIOD: Duration = Duration::from_secs(10);

/// Longest excerpt of a message that was left out.
const MESSAGE_CHARS: usize = 200;

static COUNTS: Counts = Counts { places: Mutex::new(None), some_left_out: Condvar::new() };
static REPORTER: Once = Once::new();

/// Passes the lines within the limit on to a layer. The counters are global, as the log is.
///
/// A layer rather than a filter: a filter that decides per event, and not per call site, breaks the filters of other
/// layers (tracing-subscriber 0.3 asserts against it).
#[derive(Debug)]
pub(super) struct Limited<L>(pub(super) L);

impl<S: Subscriber, L: Layer<S>> Layer<S> for Limited<L> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_unlimited(event.metadata()) || COUNTS.lets_through(event, Instant::now()) {
            self.0.on_event(event, context);
        }
    }

    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        self.0.on_register_dispatch(dispatch);
    }

    fn on_layer(&mut self, subscriber: &mut S) {
        self.0.on_layer(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.0.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        self.0.enabled(metadata, context)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.0.on_new_span(attributes, id, context);
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.0.on_record(span, values, context);
    }

    fn on_follows_from(&self, span: &Id, follows: &Id, context: Context<'_, S>) {
        self.0.on_follows_from(span, follows, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.0.on_enter(id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.0.on_exit(id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.0.on_close(id, context);
    }

    fn on_id_change(&self, old: &Id, new: &Id, context: Context<'_, S>) {
        self.0.on_id_change(old, new, context);
    }
}

/// Lines without a limit: debug and trace lines, the line per request, and the output of programs, which has its own
/// limit.
fn is_unlimited(metadata: &Metadata<'_>) -> bool {
    let is_info = *metadata.level() == Level::INFO;
    *metadata.level() > Level::INFO
        || (is_info && metadata.name() == "request")
        || (is_info && metadata.target() == "exec")
}

fn most(metadata: &Metadata<'_>) -> u64 {
    if metadata.target() == super::audit::TARGET { AUDIT_LINES } else { LINES }
}

/// Counters per log statement; their number is bounded by the code.
struct Counts {
    places: Mutex<Option<HashMap<Identifier, Callsite>>>,
    some_left_out: Condvar,
}

struct Callsite {
    target: String,
    since: Instant,
    said: u64,
    left_out: u64,
    /// The message of the first line that was left out.
    message: String,
}

/// The lines of one log statement that were left out.
#[derive(Debug, PartialEq)]
struct LeftOut {
    target: String,
    message: String,
    lines: u64,
}

impl Counts {
    fn lets_through(&self, event: &Event<'_>, now: Instant) -> bool {
        let metadata = event.metadata();
        let mut places = self.places();
        let place = places.get_or_insert_default().entry(metadata.callsite()).or_insert_with(|| Callsite {
            target: metadata.target().to_owned(),
            since: now,
            said: 0,
            left_out: 0,
            message: String::new(),
        });
        if now.duration_since(place.since) >= PERIOD && place.left_out == 0 {
            (place.since, place.said) = (now, 0);
        }
        if place.said < most(metadata) {
            place.said += 1;
            return true;
        }
        if place.left_out == 0 {
            place.message.clear();
            event.record(&mut Message(&mut place.message));
            self.some_left_out.notify_one();
            REPORTER.call_once(start_reporter);
        }
        place.left_out += 1;
        false
    }

    /// Takes the counts of periods that are over and resets them. The flag says whether other periods still run.
    fn take(&self, now: Instant) -> (Vec<LeftOut>, bool) {
        let (mut all, mut go_on) = (Vec::new(), false);
        for place in self.places().iter_mut().flat_map(HashMap::values_mut).filter(|place| place.left_out > 0)
        {
            if now.duration_since(place.since) < PERIOD {
                go_on = true;
                continue;
            }
            (place.since, place.said) = (now, 0);
            all.push(LeftOut {
                target: place.target.clone(),
                message: mem::take(&mut place.message),
                lines: mem::take(&mut place.left_out),
            });
        }
        (all, go_on)
    }

    fn places(&self) -> MutexGuard<'_, Option<HashMap<Identifier, Callsite>>> {
        // The counters stay usable after a panic.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_some(&self) {
        let none = |places: &mut Option<HashMap<Identifier, Callsite>>| {
            !places.iter().flat_map(HashMap::values).any(|place| place.left_out > 0)
        };
        let waited = self.some_left_out.wait_while(self.places(), none);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Logs the counts from a separate thread, because a line cannot be logged while another is being written.
fn start_reporter() {
    let started = thread::Builder::new().name("log-limit".to_owned()).spawn(|| {
        loop {
            COUNTS.wait_for_some();
            thread::sleep(PERIOD);
            report(COUNTS.take(Instant::now()).0);
        }
    });
    // Without the thread the counts are not logged; the limit still applies.
    drop(started);
}

/// Logs the remaining counts at the end of the process.
pub(super) fn close() {
    report(COUNTS.take(Instant::now() + PERIOD).0);
}

fn report(left_out: Vec<LeftOut>) {
    for LeftOut { target, message, lines } in left_out {
        tracing::warn!(
            lines,
            from = target,
            like = message,
            "lines were left out of the log: too many of the same kind"
        );
    }
}

/// The message of a line, shortened if it is long.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let mut text = String::new();
            // Writing to a string cannot fail.
            let _ = write!(text, "{value:?}");
            self.0.extend(text.chars().take(MESSAGE_CHARS));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Counts the lines that come through.
    struct Lines(Arc<AtomicU64>);

    impl<S: Subscriber> Layer<S> for Lines {
        fn on_event(&self, _event: &Event<'_>, _context: Context<'_, S>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn through(log: impl FnOnce()) -> u64 {
        let lines = Arc::new(AtomicU64::new(0));
        let layer = Limited(Lines(Arc::clone(&lines)));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        lines.load(Relaxed)
    }

    #[test]
    fn a_place_has_its_lines_and_the_rest_is_counted() {
        let through = through(|| {
            for n in 0..1000 {
                tracing::warn!(n, "too much of it");
                tracing::info!(name: "request", n, "request");
                tracing::info!(target: "exec", n, "stderr");
            }
            tracing::warn!("another");
        });
        assert_eq!(through, LINES + 1000 + 1000 + 1);
        let now = Instant::now();
        assert_eq!(COUNTS.take(now), (vec![], true), "it goes on");
        let (left_out, go_on) = COUNTS.take(now + PERIOD);
        let expected =
            LeftOut { target: module_path!().to_owned(), message: "too much of it".to_owned(), lines: 980 };
        assert_eq!((left_out, go_on), (vec![expected], false));
    }

    #[test]
    fn after_a_while_a_place_has_its_lines_again() {
        let log = |times: u64| (0..times).for_each(|n| tracing::error!(n, "again"));
        assert_eq!(through(|| log(LINES)), LINES);
        assert_eq!(through(|| log(5)), 0);
        COUNTS.take(Instant::now() + PERIOD);
        assert_eq!(through(|| log(LINES)), LINES);
    }
}
