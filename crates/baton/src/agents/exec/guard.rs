//! The guard: a small process of our own binary between the server and one program.
//!
//! A server that is killed cannot clean up, and without `unsafe` code a child cannot be made to exit with its parent.
//! So the server starts `baton __guard …`, and the guard starts the program. The guard's stdin is a socket to the
//! server, the *lifeline*: the server sends the program's stdin over it as a file descriptor, the guard sends reports
//! back, and when the socket closes (the server closed it, or died) the guard ends the program and all processes that
//! the program has started.
//!
//! On Linux the guard is a child subreaper: a process that has left the program's process group or its parent
//! (`setsid`, a daemon's double fork) becomes a child of the guard when its own parents exit. So it is enough to end
//! the guard's children, repeatedly, until there are none. A child keeps its process id until it was waited for;
//! waiting and signalling share a lock, so a signal can never reach another process that got the same id. On other
//! systems only the process group is ended.
//!
//! It uses no async runtime, logger or command line parser, so that it starts fast.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process, kill_process_group,
    test_kill_process_group, wait, waitid,
};

use super::children;
use super::one_run::{self, Taken};
use super::report::Report;
use super::shortage;

/// The hidden subcommand; `main` looks for it before anything else.
pub(crate) const SUBCOMMAND: &str = "__guard";

/// How long processes that the program left behind may run after the program has exited by itself, so that for example
/// a `tee` can finish its output.
const LEFTOVER_GRACE: Duration = Duration::from_millis(250);
/// How long SIGKILL is repeated. Only a process that hangs in the kernel survives this.
const KILLING: Duration = Duration::from_secs(10);
/// Shortest and longest pause between two checks of which processes are left.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// `baton __guard GRACE_MS PROGRAM [ARG…]`, with the lifeline as stdin.
///
/// Exits with success if no process is left; otherwise the server ends the rest.
pub(crate) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let grace = args.next().and_then(|text| text.to_str()?.parse().ok()).map(Duration::from_millis);
    let (Some(grace), Some(program)) = (grace, args.next()) else {
        return fail("it is started by `baton serve --exec`, not by hand");
    };
    match guard(grace, &program, args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => fail("processes of the program could not be ended"),
        Err(error) => fail(&error.to_string()),
    }
}

/// Written to stderr, like the program's own errors.
fn fail(reason: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "baton's guard: {reason}");
    ExitCode::FAILURE
}

fn guard(grace: Duration, program: &OsString, args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let mut lifeline = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = receive(&lifeline)?;
    children::adopt_orphans()?;
    let task = std::env::var("BATON_TASK_ID").ok();
    let _held = match one_run::take(task.as_deref(), &lifeline) {
        Ok(Taken::Ours(held)) => held,
        Ok(Taken::ServerGone) => return Ok(true),
        Err(error) => {
            let code = error.raw_os_error().unwrap_or(Errno::BUSY.raw_os_error());
            lifeline.write_all(Report::CannotStart(code).line().as_bytes())?;
            return Ok(true);
        }
    };
    // A process group of its own: it can be signalled as a whole, without the guard.
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::from(stdin)).process_group(0);
    let spawned = shortage::spawn(|| command.spawn(), &lifeline);
    // The program must have the only copy of its stdin.
    drop(command);
    let group = match spawned {
        // The `Child` is not waited for here: `reap_children` waits for all children.
        Ok(Some(child)) => Pid::from_child(&child),
        Ok(None) => return Ok(true),
        Err(error) => {
            let code = error.raw_os_error().unwrap_or_default();
            lifeline.write_all(Report::CannotStart(code).line().as_bytes())?;
            return Ok(true);
        }
    };
    // If the server is gone already, the closed lifeline shows it.
    let _ = lifeline.write_all(Report::Started(group.as_raw_nonzero().get()).line().as_bytes());
    let (tell, events) = sync_channel(4);
    let tree = Arc::new(ProcessTree { group, state: Mutex::new(State::default()) });
    let keeper = (Arc::clone(&tree), tell.clone());
    thread::Builder::new().spawn(move || keeper.0.reap_children(&keeper.1))?;
    let reader = lifeline.try_clone()?;
    thread::Builder::new().spawn(move || watch_lifeline(reader, &tell))?;
    let watch =
        Watch { events: &events, lifeline: &lifeline, server_gone: false, ended: false, empty: false };
    Ok(tree.run_to_end(watch, grace))
}

/// The read end of the program's stdin.
fn receive(lifeline: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    recvmsg(lifeline, &mut [IoSliceMut::new(&mut [0])], &mut buffer, RecvFlags::empty())?;
    let mut fds = buffer.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let stdin = fds.next().and_then(|mut fds| fds.next());
    let stdin = stdin.ok_or_else(|| io::Error::other("the server sent no stdin for the program"))?;
    // The program must not inherit a second copy. No other thread exists yet that could start a process in between.
    fcntl_setfd(&stdin, FdFlags::CLOEXEC)?;
    Ok(stdin)
}

enum Event {
    /// The server closed the lifeline or has died.
    ServerGone,
    /// The program itself has ended.
    Ended(WaitStatus),
    /// No child is left.
    Empty,
}

/// The events so far; the program's exit is reported to the server.
struct Watch<'a> {
    events: &'a Receiver<Event>,
    lifeline: &'a UnixStream,
    server_gone: bool,
    ended: bool,
    empty: bool,
}

impl Watch<'_> {
    fn next(&mut self, timeout: Option<Duration>) {
        let event = match timeout {
            Some(timeout) => self.events.recv_timeout(timeout),
            None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::ServerGone) => self.server_gone = true,
            Ok(Event::Ended(status)) => {
                self.ended = true;
                // Fails if the server is gone; then nobody needs the report.
                let _ = self.lifeline.write_all(Report::of(status).line().as_bytes());
            }
            // All senders are gone, so no child is left.
            Ok(Event::Empty) | Err(RecvTimeoutError::Disconnected) => self.empty = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reports the end of the lifeline. The server never writes to it.
fn watch_lifeline(mut lifeline: UnixStream, tell: &SyncSender<Event>) {
    let mut byte = [0];
    loop {
        match lifeline.read(&mut byte) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    let _ = tell.send(Event::ServerGone);
}

/// The program and all processes that descend from it.
struct ProcessTree {
    /// The process id of the program, and of its group.
    group: Pid,
    /// Locked while children are waited for or signalled.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The program was waited for: its process id may belong to another process now.
    reaped: bool,
    /// Children that got SIGTERM. A child's process id stays valid until it was waited for.
    terminated: HashSet<Pid>,
}

impl ProcessTree {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for every child that exits, until none is left.
    fn reap_children(&self, tell: &SyncSender<Event>) {
        loop {
            // `NOWAIT` leaves the child a zombie: its process id is not reused before the lock is held.
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => break,
            }
            let mut state = self.state();
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                state.terminated.remove(&pid);
                if pid == self.group {
                    state.reaped = true;
                    let _ = tell.send(Event::Ended(status));
                }
            }
        }
        let _ = tell.send(Event::Empty);
    }

    /// `true` if no process is left.
    fn run_to_end(&self, mut watch: Watch<'_>, grace: Duration) -> bool {
        // Wait as long as the program runs.
        while !watch.server_gone && !watch.ended && !watch.empty {
            watch.next(None);
        }
        // If the server is gone, nobody reads the output of processes that were left behind.
        if !watch.server_gone
            && self.wait_until_gone(&mut watch, LEFTOVER_GRACE, |watch| watch.server_gone, || {})
        {
            return true;
        }
        self.wait_until_gone(&mut watch, grace, |_| false, || self.terminate())
            || self.wait_until_gone(&mut watch, KILLING, |_| false, || self.kill())
    }

    fn wait_until_gone(
        &self,
        watch: &mut Watch<'_>,
        time: Duration,
        enough: impl Fn(&Watch<'_>) -> bool,
        act: impl Fn(),
    ) -> bool {
        let (since, mut pause) = (Instant::now(), SHORTEST_PAUSE);
        loop {
            if self.is_gone(watch) {
                return true;
            }
            act();
            let left = time.saturating_sub(since.elapsed());
            if left.is_zero() || enough(watch) {
                return self.is_gone(watch);
            }
            watch.next(Some(pause.min(left)));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn is_gone(&self, watch: &Watch<'_>) -> bool {
        // Without adoption, the program's children are never children of the guard.
        watch.empty && (children::ADOPTS || test_kill_process_group(self.group).is_err())
    }

    /// Sends SIGTERM once to each child: now to those that did not get it before.
    fn terminate(&self) {
        let mut state = self.state();
        if !state.reaped && state.terminated.insert(self.group) {
            let _ = kill_process_group(self.group, Signal::TERM);
        }
        for child in children::of_this_process() {
            let in_group = !state.reaped && child.group == Some(self.group);
            if !in_group && state.terminated.insert(child.pid) {
                let _ = kill_process(child.pid, Signal::TERM);
            }
        }
        self.signal_group_without_reaper(&state, Signal::TERM);
    }

    fn kill(&self) {
        let state = self.state();
        if !state.reaped {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
        for child in children::of_this_process() {
            let _ = kill_process(child.pid, Signal::KILL);
        }
        self.signal_group_without_reaper(&state, Signal::KILL);
    }

    /// Without adoption, only the process group's id is known after the program's exit. In theory it could belong to
    /// another group by now, if all process ids were used up within these few seconds.
    fn signal_group_without_reaper(&self, state: &State, signal: Signal) {
        if !children::ADOPTS && state.reaped {
            let _ = kill_process_group(self.group, signal);
        }
    }
}
