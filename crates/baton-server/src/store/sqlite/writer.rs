//! The one thread that writes, with group commit.
//!
//! It takes whatever waits, up to a batch, runs it in one transaction, commits, and only then answers.
//! There is no timer: alone, a write is committed at once; under load, what arrives during a commit shares
//! the next one. If anything fails, the batch is undone and each write is tried alone, so that a bad one
//! fails nobody else.
//!
//! The thread also folds the log into the database, after the answers: SQLite would do so within a commit and
//! keep to itself that the sync of it failed.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::census::Census;
use super::error;
use super::place::OpenedFiles;
use super::room::Room;
use super::session::{Fold, Session};
use crate::points::{Point, reached};
use crate::store::{Measures, StoreError, StoreResult};
use crate::telemetry::histogram::{BATCH_BOUNDS, Histogram};

/// Pages to copy that make folding the log worth its syncs (4 MiB). Writers wait while they are copied.
const FOLD_AT: usize = 1000;

/// Pages that a commit writes and the next one writes again: the last ones of the tables and indexes that a small
/// append touches. Only one of each is copied, so a log of small commits may be long before folding it is work.
const REWRITTEN: usize = 8;

/// Pages in the log that are folded in any case (32 MiB).
const LONGEST_LOG: usize = 8000;

/// After a log that could not be folded: how soon it is tried again.
const FOLD_AGAIN: Duration = Duration::from_secs(1);

/// Writes of a batch that may find the disk full one after the other before the rest is told without trying: each
/// costs what room there is left to write, and undoes it.
const FULL_TRIES: usize = 2;

/// The handle. Dropping it lets queued writes finish, folds the write-ahead log into the database and closes it.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// What the database stands on.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) room: Room,
    pub(super) place: Arc<OpenedFiles>,
}

/// What has been committed since the store was opened.
#[derive(Debug)]
struct Counters {
    tasks: Census,
    /// Writes per commit.
    batches: Histogram,
}

impl Writer {
    /// `tasks` are those the database holds; `batch` how many writes may share a commit.
    pub(super) fn start(
        session: Session,
        ground: Ground,
        tasks: Census,
        queue: usize,
        batch: usize,
    ) -> StoreResult<Self> {
        let (sender, jobs) = mpsc::channel(queue);
        let counters = Arc::new(Counters { tasks, batches: Histogram::new(BATCH_BOUNDS) });
        let Ground { room, place } = ground;
        let committer = Committer {
            session,
            room,
            place,
            counters: Arc::clone(&counters),
            failed: None,
            commits_in_log: 0,
            fold_again: None,
        };
        let thread = thread::Builder::new()
            .name("store-write".to_owned())
            .spawn(move || committer.serve(jobs, batch))
            .map_err(|error| StoreError::Unavailable(format!("no thread to write with: {error}")))?;
        Ok(Writer { jobs: Some(sender), thread: Some(thread), counters })
    }

    /// Waits for a place in the queue, then for the commit. A caller that goes away after it got its place
    /// has its write done all the same.
    ///
    /// The verb may run twice (in a batch, then alone); what it did the first time has been undone.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        verb: impl FnMut(&mut Session) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let stopped = || StoreError::Fatal("the store has stopped writing".to_owned());
        let (answer, answered) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(Box::new(Write { verb, outcome: None, answer })).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    pub(super) fn tasks(&self) -> u64 {
        self.counters.tasks.tasks()
    }

    pub(super) fn commits(&self) -> u64 {
        self.counters.batches.numbers().count
    }

    pub(super) fn measures(&self) -> Measures {
        let Counters { tasks, batches } = &*self.counters;
        Measures { tasks: Some(tasks.by_state()), batches: Some(batches.numbers()) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has already failed its callers.
            thread.join().ok();
        }
    }
}

/// One write that waits for its commit.
trait Job: Send {
    fn run(&mut self, session: &mut Session) -> StoreResult<()>;
    fn fail(&mut self, error: StoreError);
    fn answer(self: Box<Self>);
}

struct Write<F, T> {
    verb: F,
    outcome: Option<StoreResult<T>>,
    answer: oneshot::Sender<StoreResult<T>>,
}

impl<F, T> Job for Write<F, T>
where
    F: FnMut(&mut Session) -> StoreResult<T> + Send,
    T: Send,
{
    fn run(&mut self, session: &mut Session) -> StoreResult<()> {
        self.outcome = Some(Ok((self.verb)(session)?));
        Ok(())
    }

    fn fail(&mut self, error: StoreError) {
        self.outcome = Some(Err(error));
    }

    fn answer(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            // The caller may have gone; the write stands.
            self.answer.send(outcome).ok();
        }
    }
}

struct Committer {
    session: Session,
    room: Room,
    place: Arc<OpenedFiles>,
    counters: Arc<Counters>,
    /// Once durability is in doubt no write is tried again.
    failed: Option<StoreError>,
    commits_in_log: usize,
    /// The log could not be folded: not before this time is it tried again.
    fold_again: Option<Instant>,
}

/// Where a transaction failed.
enum Failure {
    /// Before any write of the batch, or once all are done: all fail alike.
    All(StoreError),
    Within(StoreError),
}

impl Committer {
    fn serve(mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>, batch: usize) {
        let mut waiting = Vec::with_capacity(batch);
        while jobs.blocking_recv_many(&mut waiting, batch.max(1)) > 0 {
            self.write(&mut waiting);
            for job in waiting.drain(..) {
                job.answer();
                reached(Point::AnswerBetween);
            }
            reached(Point::AnswerAfter);
            if is_long(self.session.log_pages(), self.commits_in_log) {
                self.fold_log(Fold::Passive);
            }
        }
        self.fold_again = None;
        // Closing removes the log by its name, which may be another server's by now.
        let gone = self.place.look();
        if gone || self.failed.is_none() && !self.fold_log(Fold::Truncate) {
            // Closing would try once more. Nothing is lost: the next opening reads the log.
            self.session.leave_log_alone();
        }
    }

    fn write(&mut self, jobs: &mut [Box<dyn Job>]) {
        let mut written = self.transact(jobs);
        // A log that is folded starts anew, in the room it has already.
        if matches!(written, Err(Failure::Within(StoreError::Full(_))))
            && self.session.log_pages() > 0
            && self.fold_log(Fold::Passive)
        {
            written = self.transact(jobs);
        }
        match written {
            Ok(()) => {}
            Err(Failure::Within(_)) if jobs.len() > 1 && self.failed.is_none() => self.write_each(jobs),
            Err(Failure::All(error) | Failure::Within(error)) => {
                for job in jobs {
                    job.fail(error.clone());
                }
            }
        }
    }

    /// Each in a commit of its own, unless there is clearly no room for any.
    fn write_each(&mut self, jobs: &mut [Box<dyn Job>]) {
        let mut full = 0;
        for job in jobs {
            if full == FULL_TRIES {
                job.fail(StoreError::Full("there was no room for the writes before".to_owned()));
                continue;
            }
            match self.transact(std::slice::from_mut(job)) {
                Ok(()) => full = 0,
                Err(Failure::All(error) | Failure::Within(error)) => {
                    full = if matches!(error, StoreError::Full(_)) { full + 1 } else { 0 };
                    job.fail(error);
                }
            }
        }
    }

    fn transact(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
        if let Some(failed) = &self.failed {
            return Err(Failure::All(failed.clone()));
        }
        if let Some(refusal) = self.place.refusal() {
            return Err(Failure::All(refusal));
        }
        reached(Point::WriteBegin);
        self.session.begin().map_err(|error| Failure::All(self.note(error)))?;
        reached(Point::WriteBegun);
        let run = jobs.iter_mut().try_for_each(|job| {
            job.run(&mut self.session)?;
            reached(Point::WriteBetween);
            Ok(())
        });
        let commit = |()| {
            self.session.finish()?;
            reached(Point::CommitBefore);
            self.session.commit().map_err(error::of_commit)
        };
        match run.and_then(commit) {
            Ok(()) => {
                reached(Point::CommitAfter);
                self.commits_in_log += 1;
                self.counters.batches.observe(jobs.len() as u64);
                self.counters.tasks.apply(std::mem::take(&mut self.session.moves));
                // Files that no path leads to are gone with the process, and with them what was just written: two
                // calls of `stat` beside at least one sync.
                self.place.look();
                self.place.refusal().map_or(Ok(()), |refusal| Err(Failure::All(refusal)))
            }
            Err(error) => {
                // Undone first: what the transaction took of the disk must not be missing when its room is judged.
                let undone = self.session.roll_back();
                let error = self.note(error);
                if let Err(error) = undone {
                    self.note(StoreError::Fatal(format!("could not undo a failed write: {error}")));
                }
                Err(Failure::Within(error))
            }
        }
    }

    /// Answers whether all of the log is in the database.
    ///
    /// A failed sync ends all writing here too, though nothing is lost: each commit was synced in the log. There
    /// is nobody to be told; the next write is.
    fn fold_log(&mut self, fold: Fold) -> bool {
        if self.fold_again.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        reached(Point::LogFoldBefore);
        match self.session.fold_log(fold) {
            Ok(whole) => {
                reached(Point::LogFoldAfter);
                self.fold_again = None;
                if whole {
                    self.commits_in_log = 0;
                }
                whole
            }
            Err(error) => {
                self.fold_again = Some(Instant::now() + FOLD_AGAIN);
                let error = self.note(error);
                // That there is no room the writers are told.
                if matches!(error, StoreError::Full(_)) {
                    tracing::debug!(%error, "could not fold the write-ahead log into the database");
                } else {
                    tracing::warn!(%error, "could not fold the write-ahead log into the database");
                }
                false
            }
        }
    }

    /// Remembers a failure that ends all writing. Failures that somebody has to do something about name the file.
    fn note(&mut self, error: StoreError) -> StoreError {
        let error = match self.room.judge(error) {
            error @ (StoreError::Full(_) | StoreError::Fatal(_)) => self.room.name_file(error),
            other => other,
        };
        if matches!(error, StoreError::Fatal(_)) && self.failed.is_none() {
            tracing::error!(%error, "the store takes no more writes");
            self.session.leave_log_alone();
            self.failed = Some(error.clone());
        }
        error
    }
}

/// Is the log to be folded?
fn is_long(pages: usize, commits: usize) -> bool {
    pages.saturating_sub(commits.saturating_mul(REWRITTEN)) >= FOLD_AT || pages >= LONGEST_LOG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_folded_by_what_there_is_to_copy() {
        assert!(is_long(FOLD_AT, 0) && !is_long(FOLD_AT - 1, 0));
        assert!(is_long(FOLD_AT + 10 * REWRITTEN, 10) && !is_long(FOLD_AT + 9 * REWRITTEN, 10));
        assert!(!is_long(LONGEST_LOG - 1, LONGEST_LOG), "small commits, again and again");
        assert!(is_long(LONGEST_LOG, LONGEST_LOG), "but not for ever");
    }
}
