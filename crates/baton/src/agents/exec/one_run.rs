//! Ensures that a task has only one run at a time, even if a server was killed.
//!
//! When a server is killed, its guards end their programs, which may take up to `kill_grace`. The next server may start
//! sooner and run the task again. So a guard holds a lock with the task's name, and another guard waits for that lock
//! before it starts its program.
//!
//! On Linux the lock is a socket in the abstract namespace: the kernel removes it with the process, and there is no
//! file. Other systems have no such lock, and a re-run may start while the earlier run is still being ended.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// After this time the holder hangs in the kernel, or is not one of our guards.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Between two tries; the first few tries come sooner.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock; held as long as the run lasts.
pub(super) struct Held {
    #[cfg(target_os = "linux")]
    _name: Option<std::os::unix::net::UnixListener>,
}

/// The result of waiting for the lock.
pub(super) enum Taken {
    /// We have the lock.
    Ours(Held),
    /// The server is gone, so the program is not needed any more.
    ServerGone,
}

/// Waits for the lock of a task and takes it.
#[cfg(target_os = "linux")]
pub(super) fn take(task: Option<&str>, lifeline: &UnixStream) -> io::Result<Taken> {
    use std::io::Read as _;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use std::time::Instant;

    let Some(task) = task else { return Ok(Taken::Ours(Held { _name: None })) };
    let name = SocketAddr::from_abstract_name(format!("baton-run-{task}"))?;
    let since = Instant::now();
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(listener) => {
                lifeline.set_read_timeout(None)?;
                return Ok(Taken::Ours(Held { _name: Some(listener) }));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
        if since.elapsed() > MAX_WAIT {
            return Err(io::Error::from(io::ErrorKind::ResourceBusy));
        }
        // The server says nothing more over the lifeline; what can be read is its end.
        lifeline.set_read_timeout(Some(PAUSE))?;
        match (&mut &*lifeline).read(&mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return Ok(Taken::ServerGone),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn take(_: Option<&str>, _: &UnixStream) -> io::Result<Taken> {
    let _ = (MAX_WAIT, PAUSE);
    Ok(Taken::Ours(Held {}))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn s06_a_task_is_held_by_one_run_and_goes_with_it() {
        let task = format!("test-{}", std::process::id());
        let (server, guard) = UnixStream::pair().unwrap();
        let Ok(Taken::Ours(first)) = take(Some(&task), &guard) else { panic!("nobody else has it") };
        let waiting = std::thread::spawn({
            let task = task.clone();
            let guard = guard.try_clone().unwrap();
            move || matches!(take(Some(&task), &guard), Ok(Taken::Ours(_)))
        });
        assert!(
            matches!(take(Some("test-other"), &guard), Ok(Taken::Ours(_))),
            "another task has another lock"
        );
        assert!(matches!(take(None, &guard), Ok(Taken::Ours(_))), "a message skill has no task and no lock");
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.join().unwrap(), "the waiting thread has the lock now");
        let Ok(Taken::Ours(_second)) = take(Some(&task), &guard) else { panic!("free again") };
        drop(server);
        assert!(matches!(take(Some(&task), &guard), Ok(Taken::ServerGone)), "the server is gone");
    }
}
