//! Attacks on a served process, each with a size and a bound. `cargo xtask faults --only attacks` runs them at full
//! size and writes `docs/results/attacks.md`; the test command runs each for some seconds.

/// T24: all kinds of abuse at once, by strangers and by owners, while other owners work.
mod abuse_mix;
/// Those who abuse.
mod abusers;
/// A11: many connect in the same moment, and the kernel keeps them all until they are accepted.
mod connects;
/// A6: readers whose log is folded while they are behind.
mod folded_streams;
/// A2: follow-ups to tasks that are about to end.
mod follow_ups;
/// A9: tasks that grow.
#[cfg(target_os = "linux")]
mod growth;
/// How long others wait meanwhile.
mod latency;
/// A3: lists of tasks with large messages.
mod lists;
/// A5: frames and requests that would fill the log.
mod log_floods;
/// A8: two servers on one database, and a data folder that goes away.
mod one_file;
/// A11: programs when there is no file descriptor left.
mod out_of_files;
/// Who attacks, and who must not notice.
mod owners;
/// A4: large answers that nobody reads.
#[cfg(target_os = "linux")]
mod unread_answers;
