//! Faults, and what they must not cost. One journal of what clients were told, one checker that holds it against the
//! store, and a file for each kind of fault (`T1`… are the names of the plan; `docs/results/` has what came out).
//!
//! Here, in the test command, each takes seconds. `cargo xtask faults` runs the same tests at length
//! (`BATON_FAULTS_FULL`) and writes down the results. `BATON_SEED` repeats a run's random choices. Those that need the
//! faults of a dev build (`src/faults.rs`) are there in dev builds alone.

/// The rules, on a journal and a store.
pub(crate) mod checker;
/// Each rule of the checker can fail.
mod checker_tests;
/// A folder with a store, the agents on it, and their marks.
pub(crate) mod field;
/// What clients did and were told.
pub(crate) mod journal;
/// Clients that write a journal.
mod load;
/// Random choices that can be repeated, and where results go.
pub(crate) mod runs;
/// Many streams on one task, each a plain socket.
#[cfg(target_os = "linux")]
pub(crate) mod sockets;
/// What a store holds, as the product reads it.
pub(crate) mod stored;
/// System calls of the server, as strace tells them.
#[cfg(all(target_os = "linux", debug_assertions))]
mod trace;

/// The client, while its server is killed.
#[cfg(unix)]
mod client;
/// T7: a clock that jumps.
#[cfg(target_os = "linux")]
mod clock;
/// T5: damaged files.
mod damage;
/// T8: streams on which nothing happens.
#[cfg(target_os = "linux")]
mod idle_streams;
/// T1: `kill -9` at random moments.
mod kills;
/// T2: death at chosen points of the write path.
#[cfg(debug_assertions)]
mod points;
/// T4: a disk that forgets what was not synced.
#[cfg(all(target_os = "linux", debug_assertions))]
mod power_cuts;
/// T9: readers that stop reading.
#[cfg(target_os = "linux")]
mod slow_readers;
/// T19: stops in order, under load.
mod stop;
/// T10: everybody comes back at once.
#[cfg(target_os = "linux")]
mod storm;
/// T3: the sync comes before the answer.
#[cfg(all(target_os = "linux", debug_assertions))]
mod sync_order;
/// T12: `kill -9` while webhooks are called.
#[cfg(debug_assertions)]
mod webhooks;
