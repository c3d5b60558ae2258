//! No cause may fill the log: of the lines that one place in the program writes, so many are let through in a while. How
//! many were left out is told at the end of that while.
//!
//! A line that a client can provoke is a line that it can provoke a million times, and the disk may be the one that
//! tasks are stored on. The limit holds for every place, also in other crates, so that nobody has to think of it.

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

/// So many lines of one place…
const LINES: u64 = 20;
/// …in so much time.
const WHILE: Duration = Duration::from_secs(10);

/// Of a message that stands for those that were left out.
const MESSAGE_CHARS: usize = 200;

static COUNTS: Counts = Counts { places: Mutex::new(None), some_left_out: Condvar::new() };
static TELLING: Once = Once::new();

/// Gives a layer the lines that are not too many. For the whole process, as the log is.
///
/// A layer rather than a filter: a filter that decides by the event, and not by its place alone, confuses those of other
/// layers (tracing-subscriber 0.3 asserts against it).
#[derive(Debug)]
pub(super) struct Limited<L>(pub(super) L);

impl<S: Subscriber, L: Layer<S>> Layer<S> for Limited<L> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_wanted_whole(event.metadata()) || COUNTS.lets_through(event, Instant::now()) {
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

/// What somebody has asked for line by line: details, a line per request, and what programs print, which has a limit of
/// its own.
fn is_wanted_whole(metadata: &Metadata<'_>) -> bool {
    let is_info = *metadata.level() == Level::INFO;
    *metadata.level() > Level::INFO
        || (is_info && metadata.name() == "request")
        || (is_info && metadata.target() == "exec")
}

/// Lines by the places they come from: as many as the program has.
struct Counts {
    places: Mutex<Option<HashMap<Identifier, Callsite>>>,
    some_left_out: Condvar,
}

struct Callsite {
    target: String,
    since: Instant,
    said: u64,
    left_out: u64,
    /// Of the first line that was left out.
    message: String,
}

/// What one place has written too much.
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
        if now.duration_since(place.since) >= WHILE && place.left_out == 0 {
            (place.since, place.said) = (now, 0);
        }
        if place.said < LINES {
            place.said += 1;
            return true;
        }
        if place.left_out == 0 {
            place.message.clear();
            event.record(&mut Message(&mut place.message));
            self.some_left_out.notify_one();
            TELLING.call_once(tell);
        }
        place.left_out += 1;
        false
    }

    /// What was left out of a while that is over; they begin anew. Says also whether any go on.
    fn take(&self, now: Instant) -> (Vec<LeftOut>, bool) {
        let (mut all, mut go_on) = (Vec::new(), false);
        for place in self.places().iter_mut().flat_map(HashMap::values_mut).filter(|place| place.left_out > 0)
        {
            if now.duration_since(place.since) < WHILE {
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
        // Each number says something by itself.
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

/// Tells, from a thread of its own: while one line is written, no other can be.
fn tell() {
    let started = thread::Builder::new().name("log-limit".to_owned()).spawn(|| {
        loop {
            COUNTS.wait_for_some();
            thread::sleep(WHILE);
            say(COUNTS.take(Instant::now()).0);
        }
    });
    // Without a thread for it, nobody learns how many they were; the limit holds all the same.
    drop(started);
}

/// The counts that nobody has been told of, at the end of the process.
pub(super) fn close() {
    say(COUNTS.take(Instant::now() + WHILE).0);
}

fn say(left_out: Vec<LeftOut>) {
    for LeftOut { target, message, lines } in left_out {
        tracing::warn!(
            lines,
            from = target,
            like = message,
            "lines were left out of the log: too many alike"
        );
    }
}

/// The message of a line, cut off where it is long.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let mut text = String::new();
            // A string takes whatever is written.
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
        let (left_out, go_on) = COUNTS.take(now + WHILE);
        let expected =
            LeftOut { target: module_path!().to_owned(), message: "too much of it".to_owned(), lines: 980 };
        assert_eq!((left_out, go_on), (vec![expected], false));
    }

    #[test]
    fn after_a_while_a_place_has_its_lines_again() {
        let log = |times: u64| (0..times).for_each(|n| tracing::error!(n, "again"));
        assert_eq!(through(|| log(LINES)), LINES);
        assert_eq!(through(|| log(5)), 0);
        COUNTS.take(Instant::now() + WHILE);
        assert_eq!(through(|| log(LINES)), LINES);
    }
}
