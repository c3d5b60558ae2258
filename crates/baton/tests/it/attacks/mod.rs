//! Attacks on a served process, each with a size and a bound. `cargo xtask faults --only attacks` runs them at full
//! size and writes `docs/results/attacks.md`; the test command runs each for some seconds.

/// A11: programs when there is no file descriptor left.
mod out_of_files;
