//! A few threads that read. A read begins when a thread takes it from the queue, so it sees every commit before that.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use super::scopes::Removals;
use super::session::Session;
use crate::store::{StoreError, StoreResult};

type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// The handle of the reading threads. Dropping it waits for queued reads and closes the connections.
#[derive(Debug)]
pub(super) struct Readers {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(
        path: &Path,
        name: &str,
        threads: usize,
        queue: usize,
        removals: &Removals,
    ) -> StoreResult<Self> {
        let (sender, jobs) = mpsc::channel(queue);
        let jobs = Arc::new(Mutex::new(jobs));
        let mut readers = Readers { jobs: Some(sender), threads: Vec::new() };
        for number in 0..threads.max(1) {
            let (session, jobs) = (Session::reader(path, Arc::clone(removals))?, Arc::clone(&jobs));
            let thread = thread::Builder::new()
                .name(format!("store-{name}-{number}"))
                .spawn(move || serve(session, &jobs))
                .map_err(|error| {
                    StoreError::unavailable(format!("could not start a reading thread: {error}"))
                })?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Waits for space in the queue, then for the answer.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Session) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let stopped = || StoreError::unavailable("the store has stopped reading");
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |session| {
            // Skips the read if the caller has gone.
            if !answer.is_closed() {
                answer.send(operation(session)).ok();
            }
        });
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // If the thread panicked, its caller has already got an error.
            thread.join().ok();
        }
    }
}

fn serve(mut session: Session, jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // The lock is held while waiting: one thread waits for a job, the others for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        match job {
            Some(job) => job(&mut session),
            None => return,
        }
    }
}
