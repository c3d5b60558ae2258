//! One run of a task at a time, also over the death of a server.
//!
//! When a server is killed, its guards end their programs, which may take the grace that programs are given. The next
//! server may be there sooner and run the task again. So a guard holds the task by a name that only one process can have,
//! and another guard waits for that name before it starts its program.
//!
//! On Linux the name is a socket's in the abstract namespace: it goes with the process, however that ends, and leaves no
//! file behind. Elsewhere there is no such thing, and a re-run may begin while the last moments of the run before pass.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Who has been waited for this long hangs inside the kernel, or is no guard of ours.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries, of which the first few come quicker.
const LOOK: Duration = Duration::from_millis(10);

/// Held as long as the run lasts.
pub(super) struct Held {
    #[cfg(target_os = "linux")]
    _name: Option<std::os::unix::net::UnixListener>,
}

/// What came of waiting for a task.
pub(super) enum Taken {
    /// It is ours.
    Ours(Held),
    /// The server went away first: nobody wants the program any more.
    Unwanted,
}

/// Takes the task for this run, once nobody else has it.
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
        if since.elapsed() > PATIENCE {
            return Err(io::Error::from(io::ErrorKind::ResourceBusy));
        }
        // The server says nothing more over the lifeline; what can be read is its end.
        lifeline.set_read_timeout(Some(LOOK))?;
        match (&mut &*lifeline).read(&mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return Ok(Taken::Unwanted),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn take(_: Option<&str>, _: &UnixStream) -> io::Result<Taken> {
    let _ = (PATIENCE, LOOK);
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
            "another task is another matter"
        );
        assert!(matches!(take(None, &guard), Ok(Taken::Ours(_))), "a message skill has none");
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.join().unwrap(), "who waited has it now");
        let Ok(Taken::Ours(_second)) = take(Some(&task), &guard) else { panic!("free again") };
        drop(server);
        assert!(matches!(take(Some(&task), &guard), Ok(Taken::Unwanted)), "nobody is left to wait for");
    }
}
