//! The child processes of this process, including adopted ones.

use rustix::process::Pid;

/// Whether orphans below this process become its children.
pub(super) const ADOPTS: bool = cfg!(target_os = "linux");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChildProcess {
    pub(super) pid: Pid,
    /// `None` if it has exited meanwhile.
    pub(super) group: Option<Pid>,
}

/// From now on, a descendant whose parent exits becomes a child of this process.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() -> std::io::Result<()> {
    // Any process id switches it on; the value does not matter.
    Ok(rustix::process::set_child_subreaper(Some(Pid::INIT))?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() -> std::io::Result<()> {
    Ok(())
}

/// Orphans are not adopted on this system, so there is nothing to list.
#[cfg(not(target_os = "linux"))]
pub(super) fn of_this_process() -> Vec<ChildProcess> {
    Vec::new()
}

/// A child that exits while the list is read may hide another one: callers repeat this until it is empty.
#[cfg(target_os = "linux")]
pub(super) fn of_this_process() -> Vec<ChildProcess> {
    let pids = linux::listed().unwrap_or_else(linux::scanned);
    pids.into_iter()
        .map(|pid| ChildProcess { pid, group: rustix::process::getpgid(Some(pid)).ok() })
        .collect()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::{Pid, getpid};

    /// The kernel's own list, if it was built with it.
    pub(super) fn listed() -> Option<Vec<Pid>> {
        let mut pids = Vec::new();
        for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
            match fs::read_to_string(thread.path().join("children")) {
                Ok(line) => pids.extend(line.split_whitespace().filter_map(number)),
                // A thread that has exited has no children any more. A thread that exists without this file: the kernel
                // has no list.
                Err(_) if thread.path().exists() => return None,
                Err(_) => {}
            }
        }
        Some(pids)
    }

    /// By reading the parent of every process.
    pub(super) fn scanned() -> Vec<Pid> {
        let me = getpid().as_raw_nonzero().get();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| number(entry.file_name().to_str()?));
        pids.filter(|pid| parent(*pid) == Some(me)).collect()
    }

    fn parent(pid: Pid) -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `pid (name) state parent …`; a name may contain any characters, also parentheses.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    }

    fn number(text: &str) -> Option<Pid> {
        Pid::from_raw(text.parse().ok()?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_ways_of_looking_find_a_child_and_its_group() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&cat);
        assert!(linux::scanned().contains(&pid));
        // Not every kernel has the list.
        assert!(linux::listed().is_none_or(|listed| listed.contains(&pid)));
        let ours = rustix::process::getpgid(None).unwrap();
        assert!(of_this_process().contains(&ChildProcess { pid, group: Some(ours) }));
        drop(cat.stdin.take());
        cat.wait().unwrap();
        assert!(!linux::scanned().contains(&pid));
    }
}
