//! Ends the processes that are left when a guard is killed.
//!
//! On Linux the server adopts them: a guard's children become the server's when the guard dies. A mark in their
//! environment distinguishes them from other children.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::children::{self, ChildProcess};

/// The environment variable that marks all processes of one run.
pub(super) const MARK: &str = "BATON_RUN";

/// Only a process that hangs in the kernel survives this.
const KILLING: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// A mark that is unique among all runs of all servers that run at the same time.
pub(super) fn fresh_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills the remaining processes of a run. Blocks until they are gone.
pub(super) fn end(program: Option<Pid>, run: &str) {
    if !children::ADOPTS {
        if let Some(program) = program {
            let _ = kill_process_group(program, Signal::KILL);
        }
        return;
    }
    let since = Instant::now();
    while since.elapsed() < KILLING {
        let left: Vec<ChildProcess> =
            children::of_this_process().into_iter().filter(|child| is_of(child, program, run)).collect();
        if left.is_empty() {
            return;
        }
        for child in left {
            // It is our child and was not waited for, so the process id is still its own.
            let _ = kill_process(child.pid, Signal::KILL);
            reap(child.pid);
        }
    }
}

fn is_of(child: &ChildProcess, program: Option<Pid>, run: &str) -> bool {
    (program.is_some() && (child.group == program || Some(child.pid) == program)) || is_marked(child.pid, run)
}

fn is_marked(pid: Pid, run: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let mark = format!("{MARK}={run}");
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// Waits for a killed child. When this returns, its children have become ours.
fn reap(pid: Pid) {
    let since = Instant::now();
    while let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG) {
        if since.elapsed() > KILLING {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}
