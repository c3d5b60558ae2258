//! This process's children, adopted ones included.

use rustix::process::Pid;

/// Whether orphans below this process become its children.
pub(super) const ADOPTS: bool = cfg!(target_os = "linux");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kin {
    pub(super) pid: Pid,
    /// `None` when it is gone meanwhile.
    pub(super) group: Option<Pid>,
}

/// From now on, whoever loses its parent below this process becomes this process's child.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() -> std::io::Result<()> {
    // Any number but 0 means yes.
    Ok(rustix::process::set_child_subreaper(Some(Pid::INIT))?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() -> std::io::Result<()> {
    Ok(())
}

/// Nobody is adopted here, and a program's own children are its own business.
#[cfg(not(target_os = "linux"))]
pub(super) fn of_this_process() -> Vec<Kin> {
    Vec::new()
}

/// A child that ends while we read may hide another one: look again until none is left.
#[cfg(target_os = "linux")]
pub(super) fn of_this_process() -> Vec<Kin> {
    let pids = linux::listed().unwrap_or_else(linux::scanned);
    pids.into_iter().map(|pid| Kin { pid, group: rustix::process::getpgid(Some(pid)).ok() }).collect()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::{Pid, getpid};

    /// As the kernel lists them, if it was built to do so.
    pub(super) fn listed() -> Option<Vec<Pid>> {
        let mut pids = Vec::new();
        for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
            match fs::read_to_string(thread.path().join("children")) {
                Ok(line) => pids.extend(line.split_whitespace().filter_map(number)),
                // A thread that is gone has no children any more; one that is there and has no file cannot tell.
                Err(_) if thread.path().exists() => return None,
                Err(_) => {}
            }
        }
        Some(pids)
    }

    /// By asking every process for its parent.
    pub(super) fn scanned() -> Vec<Pid> {
        let me = getpid().as_raw_nonzero().get();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| number(entry.file_name().to_str()?));
        pids.filter(|pid| parent(*pid) == Some(me)).collect()
    }

    fn parent(pid: Pid) -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `pid (name) state parent …`; a name may hold anything, parentheses included.
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
        // Not every kernel keeps the list.
        assert!(linux::listed().is_none_or(|listed| listed.contains(&pid)));
        let ours = rustix::process::getpgid(None).unwrap();
        assert!(of_this_process().contains(&Kin { pid, group: Some(ours) }));
        drop(cat.stdin.take());
        cat.wait().unwrap();
        assert!(!linux::scanned().contains(&pid));
    }
}
