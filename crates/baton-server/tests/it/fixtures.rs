//! Stores that can be reopened, a clock set by the test, gates for agents.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use baton_protocol::domain::Timestamp;
use baton_server::Clock;
use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::{self, SqliteStore};
use baton_server::store::{Store, StoreError};
use baton_server::{Agent, AgentError, Connections, Turn};
use tokio::sync::Semaphore;

use crate::harness::TEST_TIMEOUT;

/// A store that several servers can open one after the other.
pub(crate) enum Backend {
    Memory(Arc<MemoryStore>),
    Sqlite(tempfile::TempDir),
}

impl Backend {
    pub(crate) fn each() -> [Backend; 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        [Backend::Memory(Arc::new(MemoryStore::new())), Backend::Sqlite(folder)]
    }

    /// Opens the store, again if need be. Waits until the previous server has released the file.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        match self {
            Backend::Memory(store) => Arc::clone(store) as Arc<dyn Store>,
            Backend::Sqlite(folder) => open_file(&folder.path().join("tasks.db")).await,
        }
    }
}

async fn open_file(path: &Path) -> Arc<dyn Store> {
    let give_up = Instant::now() + TEST_TIMEOUT;
    loop {
        match SqliteStore::open(path, sqlite::Options::default()) {
            Ok(store) => return Arc::new(store),
            Err(StoreError::Unavailable(_)) if Instant::now() < give_up => tokio::task::yield_now().await,
            Err(error) => panic!("the store does not open again: {error}"),
        }
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(TestClock(AtomicI64::new(1_763_200_000_000)))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }

    pub(crate) fn set_back(&self, by: Duration) {
        self.0.fetch_sub(by.as_millis() as i64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// An agent function that gets a clone of `held` with every turn.
pub(crate) fn agent_with<S, F, Fut>(held: &S, run: F) -> impl Agent + use<S, F, Fut>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    let held = held.clone();
    move |turn: Turn| run(held.clone(), turn)
}

/// Agents wait here until the test lets them pass.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new() -> Self {
        Gate(Arc::new(Semaphore::new(0)))
    }

    /// Lets this many pass, now or later.
    pub(crate) fn let_pass(&self, count: usize) {
        self.0.add_permits(count);
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.expect("a gate stays").forget();
    }
}

/// Counts calls, and how many run at the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<(AtomicUsize, AtomicUsize, AtomicUsize)>);

/// A running call; dropped when it ends.
pub(crate) struct Call(Calls);

impl Calls {
    pub(crate) fn enter(&self) -> Call {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        let now = self.0.1.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.2.fetch_max(now, Ordering::SeqCst);
        Call(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.0.2.load(Ordering::SeqCst)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.1.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The default limits on connections, with changes.
pub(crate) fn connections(change: impl FnOnce(&mut Connections)) -> Connections {
    let mut connections = Connections::default();
    change(&mut connections);
    connections
}

/// Resident memory of this process, in MiB.
pub(crate) fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") / 1024
}
