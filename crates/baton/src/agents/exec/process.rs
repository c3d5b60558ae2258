//! One running program, seen from the server: its guard, its pipes, and how it ended.
//!
//! A [`Process`] holds the lifeline. Dropping it ends the program: the engine may drop a turn at any point; the guard,
//! and the tokio task that watches the guard, do the rest.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::report::Report;
use super::{ExecOptions, guard, orphans};

/// How long a guard may take to exit after its lifeline was closed, beyond the time it gives its program.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(i32),
    Signaled(i32),
    CannotStart(i32),
    /// Its guard was killed, so the server killed the program.
    Unguarded,
}

pub(super) struct Process {
    pub(super) stdout: ChildStdout,
    /// Taken by the code that logs it.
    pub(super) stderr: Option<ChildStderr>,
    /// Taken by the code that writes to it.
    pub(super) stdin: Option<pipe::Sender>,
    lifeline: Option<(OwnedWriteHalf, DropGuard)>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Process {
    /// Starts the guard, which starts the program. If the program cannot be started, [`ended`](Self::ended) says so.
    pub(super) fn start(options: &ExecOptions, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let run = orphans::fresh_mark();
        let (mine, its) = std::os::unix::net::UnixStream::pair()?;
        let (read, write) = io::pipe()?;
        hand_over(&mine, read.into())?;
        let mut command = Command::new(guard_binary()?);
        command.arg0("baton").arg(guard::SUBCOMMAND).arg(options.kill_grace.as_millis().to_string());
        command.args(&options.command).env_clear().envs(environment.iter().cloned()).env(orphans::MARK, &run);
        if let Some(directory) = &options.directory {
            command.current_dir(directory);
        }
        // Its own process group, so that a terminal's Ctrl-C reaches the server only.
        command.process_group(0).stdin(OwnedFd::from(its)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn()?;
        // The guard must have the only copy, or the server would never see it closed.
        drop(command);
        let (Some(stdout), Some(stderr)) = (guard.stdout.take(), guard.stderr.take()) else {
            return Err(io::Error::other("the program has no pipes"));
        };
        mine.set_nonblocking(true)?;
        let (reports, lifeline) = UnixStream::from_std(mine)?.into_split();
        let (tell, ended) = watch::channel(None);
        let hung_up = CancellationToken::new();
        let watching =
            Watching { guard, hung_up: hung_up.clone(), patience: options.kill_grace + PATIENCE, run };
        tokio::spawn(async move {
            let _ = tell.send(Some(watching.until_gone(reports).await));
        });
        Ok(Process {
            stdout,
            stderr: Some(stderr),
            stdin: Some(pipe::Sender::from_owned_fd(write.into())?),
            lifeline: Some((lifeline, hung_up.drop_guard())),
            ended,
        })
    }

    /// For waiting while `self` is borrowed.
    pub(super) fn ending(&self) -> Ending {
        Ending(self.ended.clone())
    }

    /// Resolves when the program and all processes it started are gone.
    pub(super) async fn ended(&self) -> Ended {
        self.ending().wait().await
    }

    /// Ends the program: SIGTERM, and SIGKILL after `kill_grace`.
    pub(super) async fn end(&mut self) -> Ended {
        self.lifeline = None;
        self.ended().await
    }
}

pub(super) struct Ending(watch::Receiver<Option<Ended>>);

impl Ending {
    pub(super) async fn wait(&mut self) -> Ended {
        match self.0.wait_for(Option::is_some).await {
            Ok(ended) => ended.unwrap_or(Ended::Unguarded),
            // The runtime is shutting down.
            Err(_) => Ended::Unguarded,
        }
    }
}

/// The running binary, even if its file was replaced by a newer one.
fn guard_binary() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Sends the read end of the program's stdin over the socket. The socket's buffer is empty, so this never blocks.
fn hand_over(socket: &std::os::unix::net::UnixStream, fd: OwnedFd) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    if !buffer.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for a file descriptor"));
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut buffer, SendFlags::empty())?;
    Ok(())
}

struct Watching {
    guard: Child,
    hung_up: CancellationToken,
    patience: Duration,
    run: String,
}

impl Watching {
    async fn until_gone(mut self, reports: OwnedReadHalf) -> Ended {
        let (mut program, mut ended) = (None, None);
        let listening = async {
            let mut lines = BufReader::new(reports).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match Report::parse(&line) {
                    Some(Report::Started(pid)) => program = Pid::from_raw(pid),
                    Some(Report::CannotStart(code)) => ended = Some(Ended::CannotStart(code)),
                    Some(Report::Exited(code)) => ended = Some(Ended::Exited(code)),
                    Some(Report::Signaled(signal)) => ended = Some(Ended::Signaled(signal)),
                    None => tracing::error!(target: "exec", ?line, "a guard sent an unknown report"),
                }
            }
        };
        let too_long = async {
            self.hung_up.cancelled().await;
            tokio::time::sleep(self.patience).await;
        };
        let hangs = tokio::select! {
            () = listening => false,
            () = too_long => true,
        };
        if hangs {
            // Perhaps its own program has stopped it (SIGSTOP).
            tracing::warn!(target: "exec", "a guard did not end in time and is killed");
            let _ = self.guard.start_kill();
        }
        // The socket closes when the guard exits.
        let clean = self.guard.wait().await.is_ok_and(|status| status.success());
        if !clean {
            tracing::warn!(target: "exec", "a guard exited without ending its program; the server ends it");
            let run = self.run;
            let _ = tokio::task::spawn_blocking(move || orphans::end(program, &run)).await;
        }
        ended.unwrap_or(Ended::Unguarded)
    }
}
