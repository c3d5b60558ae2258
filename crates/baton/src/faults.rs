//! Faults that a test asks for, in dev builds alone: in a release build this file is not there and the variables mean
//! nothing.
//!
//! | variable | effect |
//! |---|---|
//! | `BATON_FAULT_POINT=name:n` | the process kills itself (SIGKILL) when it comes to that point for the n-th time |
//! | `BATON_FAULT_SYNC=off` | SQLite never syncs: the control that shows whether a test of durability can fail |

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_server::points::{self, Point};
use baton_server::store::sqlite::{Options, Synchronous};

use crate::exit::Failure;

const POINT: &str = "BATON_FAULT_POINT";
const SYNC: &str = "BATON_FAULT_SYNC";

/// Where the process dies, and how many visits there are still to come.
static DEATH: OnceLock<(Point, AtomicU64)> = OnceLock::new();

/// Arranges for what the environment asks.
pub(crate) fn install() -> Result<(), Failure> {
    let Ok(asked) = env::var(POINT) else { return Ok(()) };
    let found = asked.split_once(':').and_then(|(name, visit)| {
        let point = Point::ALL.iter().find(|point| point.name() == name)?;
        Some((*point, visit.parse().ok().filter(|visit| *visit > 0)?))
    });
    let Some((point, visit)) = found else {
        let names: Vec<_> = Point::ALL.iter().map(|point| point.name()).collect();
        let text = format!("{POINT}: expected POINT:N, not {asked:?}; the points are {}", names.join(", "));
        return Err(Failure::usage(text));
    };
    DEATH.get_or_init(|| (point, AtomicU64::new(visit)));
    points::hook(at);
    Ok(())
}

fn at(point: Point) {
    let Some((deadly, left)) = DEATH.get() else { return };
    if point == *deadly && left.fetch_sub(1, Ordering::Relaxed) == 1 {
        // Not an abort: that would run what the C library does at an abort, and dump a core.
        #[cfg(unix)]
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// The store's options as a test wants them.
pub(crate) fn store_options(mut options: Options) -> Options {
    if env::var(SYNC).is_ok_and(|how| how == "off") {
        tracing::warn!("{SYNC}=off: nothing is synced, and a power cut loses what was acknowledged");
        options.synchronous = Synchronous::Off;
    }
    options
}
