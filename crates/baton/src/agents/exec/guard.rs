//! The guard: a small process of our own binary that stands between the server and one program.
//!
//! A server that is killed cannot clean up, and without `unsafe` a child cannot be told to die with its parent. So the
//! server starts `baton __guard …`, and the guard starts the program. Its stdin is a socket to the server, the
//! *lifeline*: the program's own stdin comes in over it as a file descriptor, reports go back, and when it ends (the
//! server hung up, or died in any way) the guard ends the program and everything the program has started.
//!
//! On Linux the guard is a child subreaper: whoever leaves the program's process group or its parent (`setsid`, a
//! daemon's double fork) becomes a child of the guard once its own parents are gone. Ending only children, again and
//! again until there are none, therefore reaches everybody. A child that nobody has waited for keeps its number, so
//! nothing can be hit that merely got the number of something that is gone: waiting and signalling share a lock.
//! Elsewhere the process group has to do.
//!
//! No runtime, no logger, no command line parser: it starts as fast as it can.

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

/// Whoever is still there when the program has ended of itself has this long to end of itself, too: a `tee` that it
/// wrote through is not cut short.
const AFTERGLOW: Duration = Duration::from_millis(250);
/// How long killing is repeated. Only a process that hangs inside the kernel outlives it.
const KILLING: Duration = Duration::from_secs(10);
/// Between two looks at who is still there.
const SHORTEST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// `baton __guard GRACE_MS PROGRAM [ARG…]`, with the lifeline as stdin.
///
/// Ends with success when nobody is left; otherwise the server looks after the rest.
pub(crate) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let grace = args.next().and_then(|text| text.to_str()?.parse().ok()).map(Duration::from_millis);
    let (Some(grace), Some(program)) = (grace, args.next()) else {
        return complain("it is started by `baton serve --exec`, not by hand");
    };
    match guard(grace, &program, args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => complain("processes of the program could not be ended"),
        Err(error) => complain(&error.to_string()),
    }
}

/// Goes where the program's own complaints go.
fn complain(reason: &str) -> ExitCode {
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
        Ok(Taken::Unwanted) => return Ok(true),
        Err(error) => {
            let code = error.raw_os_error().unwrap_or(Errno::BUSY.raw_os_error());
            lifeline.write_all(Report::CannotStart(code).line().as_bytes())?;
            return Ok(true);
        }
    };
    // A group of its own: it can be signalled as a whole, and we are not in it.
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::from(stdin)).process_group(0);
    let spawned = shortage::spawn(|| command.spawn(), &lifeline);
    // The program's copy of its stdin must be the only one.
    drop(command);
    let group = match spawned {
        // Nobody waits through `Child`: the keeper does it for all.
        Ok(Some(child)) => Pid::from_child(&child),
        Ok(None) => return Ok(true),
        Err(error) => {
            let code = error.raw_os_error().unwrap_or_default();
            lifeline.write_all(Report::CannotStart(code).line().as_bytes())?;
            return Ok(true);
        }
    };
    // The server may be gone already; then the lifeline says so.
    let _ = lifeline.write_all(Report::Started(group.as_raw_nonzero().get()).line().as_bytes());
    let (tell, events) = sync_channel(4);
    let family = Arc::new(Family { group, state: Mutex::new(State::default()) });
    let keeper = (Arc::clone(&family), tell.clone());
    thread::Builder::new().spawn(move || keeper.0.keep(&keeper.1))?;
    let reader = lifeline.try_clone()?;
    thread::Builder::new().spawn(move || hold(reader, &tell))?;
    let watch = Watch { events: &events, lifeline: &lifeline, alone: false, ended: false, empty: false };
    Ok(family.see_to_the_end(watch, grace))
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
    // Not a second copy for the program. No thread that could start something in between is there yet.
    fcntl_setfd(&stdin, FdFlags::CLOEXEC)?;
    Ok(stdin)
}

enum Event {
    /// The server hung up or is gone.
    Alone,
    /// The program itself has ended.
    Ended(WaitStatus),
    /// No child is left.
    Empty,
}

/// What has happened so far; the program's end is passed on.
struct Watch<'a> {
    events: &'a Receiver<Event>,
    lifeline: &'a UnixStream,
    alone: bool,
    ended: bool,
    empty: bool,
}

impl Watch<'_> {
    fn next(&mut self, patience: Option<Duration>) {
        let event = match patience {
            Some(patience) => self.events.recv_timeout(patience),
            None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Alone) => self.alone = true,
            Ok(Event::Ended(status)) => {
                self.ended = true;
                // Nobody reads it when the server is gone.
                let _ = self.lifeline.write_all(Report::of(status).line().as_bytes());
            }
            // Without anybody to tell us more, nobody is left.
            Ok(Event::Empty) | Err(RecvTimeoutError::Disconnected) => self.empty = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Says when the lifeline ends. Nothing is ever written on it.
fn hold(mut lifeline: UnixStream, tell: &SyncSender<Event>) {
    let mut byte = [0];
    loop {
        match lifeline.read(&mut byte) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    let _ = tell.send(Event::Alone);
}

/// The program and all that came of it.
struct Family {
    /// The program's number, and its group's.
    group: Pid,
    /// Held by whoever waits for children or signals them.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The program was waited for: its number may belong to somebody else now.
    reaped: bool,
    /// Told to end. A child's number stays its own while we have not waited for it.
    told: HashSet<Pid>,
}

impl Family {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for whoever ends, until nobody is left.
    fn keep(&self, tell: &SyncSender<Event>) {
        loop {
            // Looks without taking: the number stays taken until we have the lock.
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => break,
            }
            let mut state = self.state();
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                state.told.remove(&pid);
                if pid == self.group {
                    state.reaped = true;
                    let _ = tell.send(Event::Ended(status));
                }
            }
        }
        let _ = tell.send(Event::Empty);
    }

    /// `true` when nobody is left.
    fn see_to_the_end(&self, mut watch: Watch<'_>, grace: Duration) -> bool {
        // However long the program takes.
        while !watch.alone && !watch.ended && !watch.empty {
            watch.next(None);
        }
        // Nobody waits for output that nobody reads.
        if !watch.alone && self.gone_within(&mut watch, AFTERGLOW, |watch| watch.alone, || {}) {
            return true;
        }
        self.gone_within(&mut watch, grace, |_| false, || self.tell_to_end())
            || self.gone_within(&mut watch, KILLING, |_| false, || self.kill())
    }

    fn gone_within(
        &self,
        watch: &mut Watch<'_>,
        time: Duration,
        enough: impl Fn(&Watch<'_>) -> bool,
        act: impl Fn(),
    ) -> bool {
        let (since, mut look) = (Instant::now(), SHORTEST_LOOK);
        loop {
            if self.is_gone(watch) {
                return true;
            }
            act();
            let left = time.saturating_sub(since.elapsed());
            if left.is_zero() || enough(watch) {
                return self.is_gone(watch);
            }
            watch.next(Some(look.min(left)));
            look = (look * 2).min(LONGEST_LOOK);
        }
    }

    fn is_gone(&self, watch: &Watch<'_>) -> bool {
        // Where nobody is adopted, the program's own children were never ours.
        watch.empty && (children::ADOPTS || test_kill_process_group(self.group).is_err())
    }

    /// SIGTERM, once to each: those who are seen for the first time get it now.
    fn tell_to_end(&self) {
        let mut state = self.state();
        if !state.reaped && state.told.insert(self.group) {
            let _ = kill_process_group(self.group, Signal::TERM);
        }
        for child in children::of_this_process() {
            let in_group = !state.reaped && child.group == Some(self.group);
            if !in_group && state.told.insert(child.pid) {
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

    /// Where nobody is adopted, the group's number is all there is after the program's end. It could be another
    /// group's by now, if all the numbers were used up in these few seconds.
    fn signal_group_without_reaper(&self, state: &State, signal: Signal) {
        if !children::ADOPTS && state.reaped {
            let _ = kill_process_group(self.group, signal);
        }
    }
}
