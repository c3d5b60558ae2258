//! What a guard leaves behind when it is killed itself.
//!
//! On Linux the server adopts it: the guards' children become the server's when a guard dies. They are told from other
//! children by a mark in their environment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::children::{self, Kin};

/// Names one run of one program, in the environment of all its processes.
pub(super) const MARK: &str = "BATON_RUN";

/// Only a process that hangs inside the kernel outlives this.
const KILLING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// A mark no other run of this server has, nor one of another server at the same time.
pub(super) fn fresh_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills what is left of a run. Blocks until it is gone.
pub(super) fn end(program: Option<Pid>, run: &str) {
    if !children::ADOPTS {
        if let Some(program) = program {
            let _ = kill_process_group(program, Signal::KILL);
        }
        return;
    }
    let since = Instant::now();
    while since.elapsed() < KILLING {
        let left: Vec<Kin> =
            children::of_this_process().into_iter().filter(|kin| is_of(kin, program, run)).collect();
        if left.is_empty() {
            return;
        }
        for kin in left {
            // Ours, and nobody has waited for it: the number is still its own.
            let _ = kill_process(kin.pid, Signal::KILL);
            bury(kin.pid);
        }
    }
}

fn is_of(kin: &Kin, program: Option<Pid>, run: &str) -> bool {
    (program.is_some() && (kin.group == program || Some(kin.pid) == program)) || is_marked(kin.pid, run)
}

fn is_marked(pid: Pid, run: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let mark = format!("{MARK}={run}");
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// Waits for a killed child, whose own children come to us before this returns.
fn bury(pid: Pid) {
    let since = Instant::now();
    while let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG) {
        if since.elapsed() > KILLING {
            return;
        }
        std::thread::sleep(LOOK);
    }
}
