//! The one thread that writes, with group commit.
//!
//! It takes the queued writes, up to a batch, runs them in one transaction, commits, and only then answers. There is no
//! timer: a single write is committed at once; under load, writes that arrive during a commit share the next one. If any
//! write fails, the batch is rolled back and each write is tried alone, so that it fails only its own caller.
//!
//! The thread also checkpoints the write-ahead log, after the answers: SQLite would do so within a commit and not report
//! a failed sync.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::disk_space::DiskSpace;
use super::error;
use super::opened_files::OpenedFiles;
use super::session::{Checkpoint, Session};
use super::task_counts::TaskCounts;
use crate::points::{Point, reached};
use crate::store::{Measures, StoreError, StoreResult};
use crate::telemetry::histogram::{BATCH_BOUNDS, Histogram};

/// Distinct pages in the write-ahead log from which a checkpoint is worth its syncs (4 MiB). Writes wait during one.
const CHECKPOINT_PAGES: usize = 1000;

/// Pages that a small commit writes and the next one writes again: the last pages of the tables and indexes that an append
/// changes. A checkpoint copies each of them once, so a long log of small commits has few pages to copy.
const REWRITTEN_PAGES: usize = 8;

/// Pages in the log from which there is a checkpoint in any case (32 MiB).
const MAX_WAL_PAGES: usize = 8000;

/// How long to wait after a failed checkpoint.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(1);

/// After this many writes of a batch in a row found the disk full, the others fail without being tried: each try writes
/// until the disk is full and is rolled back.
const FULL_TRIES: usize = 2;

/// The handle of the writing thread. Dropping it waits for queued writes, checkpoints and closes the database.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// Numbers that the thread updates and the handle reads.
#[derive(Debug)]
struct Counters {
    tasks: TaskCounts,
    /// Writes per commit.
    batches: Histogram,
}

impl Writer {
    /// `tasks` are the counts of the database, `batch` is how many writes may share a commit.
    pub(super) fn start(
        session: Session,
        disk: DiskSpace,
        files: Arc<OpenedFiles>,
        tasks: TaskCounts,
        queue: usize,
        batch: usize,
    ) -> StoreResult<Self> {
        let (sender, jobs) = mpsc::channel(queue);
        let counters = Arc::new(Counters { tasks, batches: Histogram::new(BATCH_BOUNDS) });
        let committer = Committer {
            session,
            disk,
            files,
            counters: Arc::clone(&counters),
            failed: None,
            commits_in_wal: 0,
            checkpoint_not_before: None,
        };
        let thread = thread::Builder::new()
            .name("store-write".to_owned())
            .spawn(move || committer.serve(jobs, batch))
            .map_err(|error| {
                StoreError::unavailable(format!("could not start the writing thread: {error}"))
            })?;
        Ok(Writer { jobs: Some(sender), thread: Some(thread), counters })
    }

    /// Waits for space in the queue, then for the commit. Once queued, the write is done even if the caller goes away.
    ///
    /// The operation may run twice, in a batch and then alone; the batch has been rolled back by then.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnMut(&mut Session) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let stopped = || StoreError::fatal("the store has stopped writing");
        let (answer, answered) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(Box::new(Write { operation, outcome: None, answer })).await.map_err(|_| stopped())?;
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
            // If the thread panicked, its callers have already got errors.
            thread.join().ok();
        }
    }
}

/// One queued write.
trait Job: Send {
    fn run(&mut self, session: &mut Session) -> StoreResult<()>;
    fn fail(&mut self, error: StoreError);
    fn answer(self: Box<Self>);
}

struct Write<F, T> {
    operation: F,
    outcome: Option<StoreResult<T>>,
    answer: oneshot::Sender<StoreResult<T>>,
}

impl<F, T> Job for Write<F, T>
where
    F: FnMut(&mut Session) -> StoreResult<T> + Send,
    T: Send,
{
    fn run(&mut self, session: &mut Session) -> StoreResult<()> {
        self.outcome = Some(Ok((self.operation)(session)?));
        Ok(())
    }

    fn fail(&mut self, error: StoreError) {
        self.outcome = Some(Err(error));
    }

    fn answer(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            // The caller may have gone; the write is done all the same.
            self.answer.send(outcome).ok();
        }
    }
}

struct Committer {
    session: Session,
    disk: DiskSpace,
    files: Arc<OpenedFiles>,
    counters: Arc<Counters>,
    /// The fatal error after which no write is tried any more.
    failed: Option<StoreError>,
    commits_in_wal: usize,
    /// Set after a failed checkpoint.
    checkpoint_not_before: Option<Instant>,
}

/// Where a transaction failed.
enum Failure {
    /// Outside the writes of the batch: all of them fail with this error.
    All(StoreError),
    /// In one of the writes or in the commit: each write may be tried alone.
    Within(StoreError),
}

impl Committer {
    fn serve(mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>, batch: usize) {
        let mut waiting = Vec::with_capacity(batch);
        while jobs.blocking_recv_many(&mut waiting, batch.max(1)) > 0 {
            self.write(&mut waiting);
            if std::mem::take(&mut self.session.empties_log) && !self.checkpoint(Checkpoint::Truncate) {
                tracing::warn!("could not empty the write-ahead log, which may hold a replaced secret");
            }
            for job in waiting.drain(..) {
                job.answer();
                reached(Point::AnswerBetween);
            }
            reached(Point::AnswerAfter);
            if needs_checkpoint(self.session.wal_pages(), self.commits_in_wal) {
                self.checkpoint(Checkpoint::Passive);
            }
        }
        self.checkpoint_not_before = None;
        // Closing deletes the log by its name, which may now be the name of another server's log.
        let gone = self.files.check();
        if gone || self.failed.is_none() && !self.checkpoint(Checkpoint::Truncate) {
            // Closing would try another checkpoint. Nothing is lost without one: the next start reads the log.
            self.session.skip_checkpoint_on_close();
        }
    }

    fn write(&mut self, jobs: &mut [Box<dyn Job>]) {
        let mut written = self.transact(jobs);
        // After a checkpoint the log is written from its start again, in space it already has.
        if matches!(written, Err(Failure::Within(StoreError::Full(_))))
            && self.session.wal_pages() > 0
            && self.checkpoint(Checkpoint::Passive)
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

    /// Each in a commit of its own, until it is clear that the disk is full.
    fn write_each(&mut self, jobs: &mut [Box<dyn Job>]) {
        let mut full = 0;
        for job in jobs {
            if full == FULL_TRIES {
                job.fail(StoreError::full("the disk was full for the writes before this one"));
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
        if let Some(refusal) = self.files.refusal() {
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
                self.commits_in_wal += 1;
                self.counters.batches.observe(jobs.len() as u64);
                self.counters.tasks.apply(std::mem::take(&mut self.session.count_changes));
                // If the files were deleted or replaced, this commit would be lost when the process ends. Costs two calls
                // of `stat`, next to at least one sync.
                self.files.check();
                self.files.refusal().map_or(Ok(()), |refusal| Err(Failure::All(refusal)))
            }
            Err(error) => {
                // Rolled back first, so that the space the transaction took is free when the error is classified.
                let undone = self.session.roll_back();
                let error = self.note(error);
                if let Err(error) = undone {
                    self.note(StoreError::fatal(format!("could not undo a failed write: {error}")));
                }
                Err(Failure::Within(error))
            }
        }
    }

    /// Answers whether the whole log is in the database.
    ///
    /// A failed sync stops all writing here too, though nothing is lost: each commit was synced in the log. No caller is
    /// waiting for a checkpoint, so the next write gets the error.
    fn checkpoint(&mut self, fold: Checkpoint) -> bool {
        if self.checkpoint_not_before.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        reached(Point::CheckpointBefore);
        match self.session.checkpoint(fold) {
            Ok(whole) => {
                reached(Point::CheckpointAfter);
                self.checkpoint_not_before = None;
                if whole {
                    self.commits_in_wal = 0;
                }
                whole
            }
            Err(error) => {
                self.checkpoint_not_before = Some(Instant::now() + CHECKPOINT_RETRY);
                let error = self.note(error);
                // The writes report a full disk.
                if matches!(error, StoreError::Full(_)) {
                    tracing::debug!(%error, "could not checkpoint the write-ahead log");
                } else {
                    tracing::warn!(%error, "could not checkpoint the write-ahead log");
                }
                false
            }
        }
    }

    /// Classifies an error and remembers a fatal one, which stops all writing. Errors that need an operator get the file's
    /// path.
    fn note(&mut self, error: StoreError) -> StoreError {
        let error = match self.disk.classify(error) {
            error @ (StoreError::Full(_) | StoreError::Fatal(_)) => self.disk.name_file(error),
            other => other,
        };
        if matches!(error, StoreError::Fatal(_)) && self.failed.is_none() {
            tracing::error!(%error, "the store accepts no more writes");
            self.session.skip_checkpoint_on_close();
            self.failed = Some(error.clone());
        }
        error
    }
}

/// Estimates the distinct pages in the log: see `REWRITTEN_PAGES`.
fn needs_checkpoint(pages: usize, commits: usize) -> bool {
    pages.saturating_sub(commits.saturating_mul(REWRITTEN_PAGES)) >= CHECKPOINT_PAGES
        || pages >= MAX_WAL_PAGES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_folded_by_what_there_is_to_copy() {
        assert!(needs_checkpoint(CHECKPOINT_PAGES, 0) && !needs_checkpoint(CHECKPOINT_PAGES - 1, 0));
        assert!(
            needs_checkpoint(CHECKPOINT_PAGES + 10 * REWRITTEN_PAGES, 10)
                && !needs_checkpoint(CHECKPOINT_PAGES + 9 * REWRITTEN_PAGES, 10)
        );
        assert!(!needs_checkpoint(MAX_WAL_PAGES - 1, MAX_WAL_PAGES), "small commits, again and again");
        assert!(needs_checkpoint(MAX_WAL_PAGES, MAX_WAL_PAGES), "but not for ever");
    }
}
