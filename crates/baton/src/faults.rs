//! Faults for tests, in dev builds only: release builds do not contain this file and ignore the variables.
//!
//! | variable | effect |
//! |---|---|
//! | `BATON_FAULT_POINT=name:n` | the process kills itself (SIGKILL) when it reaches that point for the n-th time |
//! | `BATON_FAULT_PANIC=name:text` | the thread that reaches that point first panics with this text |
//! | `BATON_FAULT_PUSH_PACE=0.00001` | multiplies the waits between the calls of a webhook, which are hours otherwise |
//! | `BATON_FAULT_SYNC=off` | SQLite never syncs; shows that a test of durability can fail |

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use baton_server::PushOptions;
use baton_server::points::{self, Point};
use baton_server::store::sqlite::{Options, Synchronous};

use crate::exit::Failure;

const POINT: &str = "BATON_FAULT_POINT";
const PANIC: &str = "BATON_FAULT_PANIC";
const PACE: &str = "BATON_FAULT_PUSH_PACE";
const SYNC: &str = "BATON_FAULT_SYNC";

/// The point at which the process kills itself, and after how many more visits.
static DEATH: OnceLock<(Point, AtomicU64)> = OnceLock::new();

/// The point at which a thread panics once, and the text of the panic.
static PANIC_AT: OnceLock<(Point, String, AtomicBool)> = OnceLock::new();

/// Installs the faults that the environment asks for.
pub(crate) fn install() -> Result<(), Failure> {
    if let Ok(asked) = env::var(POINT) {
        let (point, visit) =
            parse(POINT, "POINT:N", &asked, |visit| visit.parse().ok().filter(|visit: &u64| *visit > 0))?;
        DEATH.get_or_init(|| (point, AtomicU64::new(visit)));
        points::hook(at);
    }
    if let Ok(asked) = env::var(PANIC) {
        let (point, text) = parse(PANIC, "POINT:TEXT", &asked, |text| Some(text.to_owned()))?;
        PANIC_AT.get_or_init(|| (point, text, AtomicBool::new(false)));
        points::hook(at);
    }
    Ok(())
}

fn parse<T>(
    variable: &str,
    form: &str,
    asked: &str,
    value: impl Fn(&str) -> Option<T>,
) -> Result<(Point, T), Failure> {
    let found = asked.split_once(':').and_then(|(name, rest)| {
        let point = Point::ALL.iter().find(|point| point.name() == name)?;
        Some((*point, value(rest)?))
    });
    found.ok_or_else(|| {
        let names: Vec<_> = Point::ALL.iter().map(|point| point.name()).collect();
        Failure::usage(format!(
            "{variable}: expected {form}, not {asked:?}; the points are {}",
            names.join(", ")
        ))
    })
}

#[allow(clippy::panic, reason = "the fault that was asked for")]
fn at(point: Point) {
    if let Some((fatal, text, done)) = PANIC_AT.get()
        && point == *fatal
        && !done.swap(true, Ordering::Relaxed)
    {
        panic!("{text}");
    }
    let Some((deadly, left)) = DEATH.get() else { return };
    if point == *deadly && left.fetch_sub(1, Ordering::Relaxed) == 1 {
        // SIGKILL instead of an abort, which would run handlers and dump a core.
        #[cfg(unix)]
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// The store's options with the faults applied.
pub(crate) fn store_options(mut options: Options) -> Options {
    if env::var(SYNC).is_ok_and(|how| how == "off") {
        tracing::warn!("{SYNC}=off: nothing is synced, and a power cut loses what was acknowledged");
        options.synchronous = Synchronous::Off;
    }
    options
}

/// The options of webhooks with the faults applied.
pub(crate) fn push_options(mut options: PushOptions) -> Result<PushOptions, Failure> {
    if let Ok(asked) = env::var(PACE) {
        let pace = asked.parse().ok().filter(|pace| (0.0..=1.0).contains(pace));
        options.pace =
            pace.ok_or_else(|| Failure::usage(format!("{PACE}: expected 0 to 1, not {asked:?}")))?;
        tracing::warn!("{PACE}={asked}: webhooks that fail are called again sooner than they should be");
    }
    Ok(options)
}
