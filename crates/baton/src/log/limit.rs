//! Limits the log: each log statement in the code may write a number of lines per period. At the end of the period one
//! line says how many were left out.
//!
//! Of security events, each kind has a number of lines of its own, and of these no address gets more than a quarter: a
//! flood of wrong tokens hides neither a wrong password nor a wrong token from elsewhere.
//!
//! If a client can provoke a line, it can provoke it a million times, and the log may be on the same disk as the store.
//! The limit applies to every log statement, also in other crates, without extra code.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::mem;
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baton_server::one_customer;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines of one log statement…
const LINES: u64 = 20;
/// …of security events of one kind, of which each one may matter…
const AUDIT_LINES: u64 = 200;
/// …of which so many may be from one address…
const ADDRESS_LINES: u64 = AUDIT_LINES / 4;
/// …in one period.
const PERIOD: Duration = Duration::from_secs(10);

/// Most kinds of security events. A kind is made of texts in the code and names in the configuration, so there are far
/// fewer.
const KINDS: usize = 1000;

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

/// Counters per log statement and kind; their number is bounded.
struct Counts {
    places: Mutex<Option<Places>>,
    some_left_out: Condvar,
}

type Places = HashMap<(Identifier, Kind), Place>;

/// What is counted together.
struct Place {
    target: String,
    since: Instant,
    said: u64,
    left_out: u64,
    /// How many lines each address has said; at most as many addresses as lines. Empty if it is not a security event.
    by_address: HashMap<IpAddr, u64>,
    /// The message of the first line that was left out.
    message: String,
}

/// The kind of a security event: its texts that a caller cannot choose. Empty for all other lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Kind {
    event: String,
    scheme: String,
    reason: String,
}

/// The lines of one place that were left out.
#[derive(Debug, PartialEq)]
struct LeftOut {
    target: String,
    kind: Kind,
    message: String,
    lines: u64,
}

impl Counts {
    fn lets_through(&self, event: &Event<'_>, now: Instant) -> bool {
        let metadata = event.metadata();
        let is_audit = metadata.target() == super::audit::TARGET;
        let mut audit = AuditFields::default();
        if is_audit {
            event.record(&mut audit);
        }
        let AuditFields { mut kind, address } = audit;
        let mut places = self.places();
        let places = places.get_or_insert_default();
        if places.len() >= KINDS && !places.contains_key(&(metadata.callsite(), kind.clone())) {
            kind = Kind::default();
        }
        let place = places.entry((metadata.callsite(), kind)).or_insert_with(|| Place {
            target: metadata.target().to_owned(),
            since: now,
            said: 0,
            left_out: 0,
            by_address: HashMap::new(),
            message: String::new(),
        });
        if now.duration_since(place.since) >= PERIOD && place.left_out == 0 {
            place.begin(now);
        }
        if place.said < if is_audit { AUDIT_LINES } else { LINES } && place.address_may_speak(address) {
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
        for ((_, kind), place) in self.places().iter_mut().flatten().filter(|(_, place)| place.left_out > 0) {
            if now.duration_since(place.since) < PERIOD {
                go_on = true;
                continue;
            }
            place.begin(now);
            all.push(LeftOut {
                target: place.target.clone(),
                kind: kind.clone(),
                message: mem::take(&mut place.message),
                lines: mem::take(&mut place.left_out),
            });
        }
        (all, go_on)
    }

    fn places(&self) -> MutexGuard<'_, Option<Places>> {
        // The counters stay usable after a panic.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_some(&self) {
        let none = |places: &mut Option<Places>| {
            !places.iter().flat_map(HashMap::values).any(|place| place.left_out > 0)
        };
        let waited = self.some_left_out.wait_while(self.places(), none);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Place {
    /// A new period begins.
    fn begin(&mut self, now: Instant) {
        (self.since, self.said) = (now, 0);
        self.by_address.clear();
    }

    /// Counts a line of this address, unless it has said its share. Lines without an address share nothing.
    fn address_may_speak(&mut self, address: Option<IpAddr>) -> bool {
        let Some(address) = address else { return true };
        let said = self.by_address.entry(one_customer(address)).or_default();
        *said += 1;
        *said <= ADDRESS_LINES
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
    for LeftOut { target, kind, message, lines } in left_out {
        if target == super::audit::TARGET {
            let Kind { event, scheme, reason } = kind;
            // Where the others are. The same kind of event once in a period at most.
            tracing::warn!(
                target: "audit",
                event = "events left out",
                lines,
                of = event,
                scheme,
                reason,
                "too many security events of the same kind, or from one address"
            );
            continue;
        }
        tracing::warn!(
            lines,
            from = target,
            like = message,
            "lines were left out of the log: too many of the same kind"
        );
    }
}

/// The kind of a security event, and the address of its caller.
#[derive(Debug, Default)]
struct AuditFields {
    kind: Kind,
    address: Option<IpAddr>,
}

impl Visit for AuditFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let text = match field.name() {
            "event" => &mut self.kind.event,
            "scheme" => &mut self.kind.scheme,
            "reason" => &mut self.kind.reason,
            _ => return,
        };
        value.clone_into(text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "address" {
            self.address = format!("{value:?}").parse().ok();
        }
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
        let expected = LeftOut {
            target: module_path!().to_owned(),
            kind: Kind::default(),
            message: "too much of it".to_owned(),
            lines: 980,
        };
        assert_eq!((left_out, go_on), (vec![expected], false));
    }

    #[test]
    fn p05_a_flood_of_one_security_event_hides_no_other_kind_and_no_other_address() {
        let refused = |scheme: &str, reason: &str, address: &str| {
            let address: IpAddr = address.parse().unwrap();
            let address = Some(tracing::field::display(address));
            tracing::info!(target: "audit", event = "credential refused", scheme, credential = "x", reason, address);
        };
        let lines = through(|| (0..1000).for_each(|_| refused("bearer", "unknown token", "192.0.2.1")));
        assert_eq!(lines, ADDRESS_LINES);
        assert_eq!(through(|| refused("bearer", "unknown token", "192.0.2.2")), 1, "another address");
        assert_eq!(through(|| refused("bearer", "expired", "192.0.2.1")), 1, "another reason");
        assert_eq!(through(|| refused("basic", "unknown token", "192.0.2.1")), 1, "another scheme");
        let from_everywhere = || {
            for n in 0..1000 {
                refused("bearer", "unknown token", &format!("2001:db8:0:{n:x}::1"));
            }
        };
        assert_eq!(through(from_everywhere), AUDIT_LINES - ADDRESS_LINES - 1);
        assert_eq!(through(|| refused("bearer", "expired", "192.0.2.1")), 1, "still another reason");
        let one_network = || (0..1000).for_each(|n| refused("digest", "x", &format!("2001:db8::{n:x}")));
        assert_eq!(through(one_network), ADDRESS_LINES);

        let (left_out, _) = COUNTS.take(Instant::now() + PERIOD);
        let of = |scheme: &str| left_out.iter().find(|left_out| left_out.kind.scheme == scheme).unwrap();
        assert_eq!((of("bearer").lines, &*of("bearer").kind.reason), (950 + 851, "unknown token"));
        assert_eq!((of("digest").lines, &*of("digest").kind.event), (950, "credential refused"));
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
