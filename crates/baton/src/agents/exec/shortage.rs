//! No file descriptor or process to spare at the moment: the program waits for one.
//!
//! Such a shortage passes when others are done, so it is no reason to fail a task for good. The server waits before it
//! starts a guard, and a guard before it starts its program. How long, the turn's own limits say: whoever leaves the turn
//! drops the waiting.

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
/// All who wait, wait for the same thing: that is not news every time.
const NEWS: Duration = Duration::from_secs(60);

/// When the log was last told.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<Option<Instant>>);

impl Told {
    fn tell(&self, error: &io::Error) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= NEWS) {
            *last = Some(Instant::now());
            tracing::warn!(
                target: "exec",
                %error,
                "programs wait to be started: raise the limit on open files or processes (`ulimit -n`, LimitNOFILE=, \
                 TasksMax=), or let fewer run"
            );
        }
    }
}

/// Starts a program as soon as the system lets us. May be dropped while it waits.
pub(super) async fn start(
    options: &ExecOptions,
    environment: &[(OsString, OsString)],
    told: &Told,
) -> io::Result<Process> {
    let mut wait = FIRST_WAIT;
    loop {
        match Process::start(options, environment) {
            Err(error) if is_shortage(&error) => told.tell(&error),
            started => return started,
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// The same for a guard, which has no runtime. `None` when the server hung up meanwhile.
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

/// It passes: of this process (descriptors), of this user (processes), or of the whole machine.
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
