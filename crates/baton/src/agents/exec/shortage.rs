//! Waits if the system has no file descriptor or process to spare.
//!
//! Such a shortage passes when others have finished, so it should not fail a task. The server waits before it starts a
//! guard, and a guard before it starts its program. The turn's own limits bound the wait: when the turn ends, the
//! future that waits is dropped.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::ExecOptions;
use super::process::Process;

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The shortage is logged at most once in this time, since all programs wait for the same thing.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// When the shortage was last logged.
#[derive(Debug, Default)]
pub(super) struct LogTimer(Mutex<Option<Instant>>);

impl LogTimer {
    fn log(&self, error: &io::Error) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL) {
            *last = Some(Instant::now());
            tracing::warn!(
                target: "exec",
                %error,
                "programs wait to be started: raise the limit on open files or processes (`ulimit -n`, LimitNOFILE=, \
                 TasksMax=), or lower `limits.max_running`"
            );
        }
    }
}

/// Starts a program as soon as the system allows it. Cancel safe.
pub(super) async fn start(
    options: &ExecOptions,
    environment: &[(OsString, OsString)],
    logged: &LogTimer,
) -> io::Result<Process> {
    let mut wait = FIRST_WAIT;
    loop {
        match Process::start(options, environment) {
            Err(error) if is_shortage(&error) => logged.log(&error),
            started => return started,
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// The same for a guard, which has no async runtime. `None` if the server is gone.
pub(super) fn spawn<T>(
    mut start: impl FnMut() -> io::Result<T>,
    lifeline: &UnixStream,
) -> io::Result<Option<T>> {
    let mut wait = FIRST_WAIT;
    loop {
        match start() {
            Err(error) if is_shortage(&error) => {}
            spawned => {
                lifeline.set_read_timeout(None)?;
                return spawned.map(Some);
            }
        }
        // The server says nothing more over the lifeline; what can be read is its end.
        lifeline.set_read_timeout(Some(wait))?;
        match (&mut &*lifeline).read(&mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return Ok(None),
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// True for errors that pass: a limit of this process (descriptors), of this user (processes), or of the machine.
fn is_shortage(error: &io::Error) -> bool {
    let passing = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_passes_and_a_mistake_does_not() {
        for (error, passes) in
            [(Errno::MFILE, true), (Errno::AGAIN, true), (Errno::NOENT, false), (Errno::ACCESS, false)]
        {
            assert_eq!(is_shortage(&error.into()), passes, "{error}");
        }
        assert!(!is_shortage(&io::Error::other("something else")));
    }

    #[test]
    fn a_guard_that_is_hung_up_on_does_not_start_its_program() {
        let (server, guard) = UnixStream::pair().unwrap();
        let missing = || -> io::Result<()> { Err(Errno::NOENT.into()) };
        assert_eq!(spawn(missing, &guard).unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut tries = 0;
        let third = || {
            tries += 1;
            if tries < 3 { Err(Errno::AGAIN.into()) } else { Ok("started") }
        };
        assert_eq!(
            spawn(third, &guard).unwrap(),
            Some("started"),
            "while the server is there it tries again"
        );
        drop(server);
        let never = || -> io::Result<()> { Err(Errno::AGAIN.into()) };
        assert_eq!(spawn(never, &guard).unwrap(), None);
    }
}
