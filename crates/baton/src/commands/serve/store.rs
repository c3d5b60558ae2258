//! Opens the store, and finds out to which scope its tasks belong.
//!
//! Earlier versions had one default file and one scope for all agents. A store with tasks of such a version keeps that
//! scope, since it is unknown which agent they belong to; a log line at start says so. A new store gets a note that
//! each agent has a scope of its own.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::SqliteStore;
use baton_server::store::{Store, StoreError};

use super::store_failed;
use crate::config::{Config, DEMO_STORE, Problem, StoreUrl};
use crate::exit::Failure;
#[cfg(debug_assertions)]
use crate::faults;

/// The name of the note, and its text.
const NOTE: &str = "scopes";
const OWN: &str = "own";

pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) url: StoreUrl,
    /// Its tasks are from a version in which all agents at the root shared a scope.
    pub(super) shares_scope: bool,
}

pub(crate) async fn open(config: &Config) -> Result<Opened, Failure> {
    let url = &config.store.url;
    let named = |error: &dyn Display| {
        Problem::new(url.source().clone(), "store.url", format!("{}: {error}", **url)).to_string()
    };
    let path = match &**url {
        StoreUrl::Memory => {
            let store = Arc::new(MemoryStore::new());
            return Ok(Opened { store, url: StoreUrl::Memory, shares_scope: false });
        }
        StoreUrl::Sqlite(path) => path,
    };
    if !url.is_set()
        && !path.exists()
        && let Some(opened) = of_earlier_times(config, path).await
    {
        return Ok(opened);
    }
    match open_file(config, path, None).await {
        Ok(store) => {
            let shares_scope =
                shares_scope(&*store).await.map_err(|error| store_failed(&error, &named(&error)))?;
            Ok(Opened { store, url: (**url).clone(), shares_scope })
        }
        Err(error) => Err(store_failed(&error, &named(&error))),
    }
}

/// The shared file of earlier versions, if it has tasks of such a version and `own` does not exist yet.
async fn of_earlier_times(config: &Config, own: &Path) -> Option<Opened> {
    let shared = Path::new(DEMO_STORE);
    if own == shared || !shared.exists() {
        return None;
    }
    // A running demo agent has it locked; do not wait for it.
    let looked = match open_file(config, shared, Some(Duration::ZERO)).await {
        Ok(store) => shares_scope(&*store).await.map(|shares| shares.then_some(store)),
        Err(error) => Err(error),
    };
    match looked {
        Ok(store) => {
            Some(Opened { store: store?, url: StoreUrl::Sqlite(shared.to_owned()), shares_scope: true })
        }
        Err(error) => {
            let own = own.display();
            tracing::info!(file = DEMO_STORE, %error, %own, "could not check for tasks of an earlier version");
            None
        }
    }
}

/// No other process can use the store meanwhile: it is locked.
async fn shares_scope(store: &dyn Store) -> Result<bool, StoreError> {
    if store.note(NOTE, None).await?.is_some() {
        return Ok(false);
    }
    if store.task_count().await? > 0 {
        return Ok(true);
    }
    match store.note(NOTE, Some(OWN.to_owned())).await {
        // A full store can still be read; the next start tries again to store the note.
        Ok(_) | Err(StoreError::Full(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn open_file(
    config: &Config,
    path: &Path,
    lock_wait: Option<Duration>,
) -> Result<Arc<dyn Store>, StoreError> {
    let (path, mut options) = (path.to_owned(), config.sqlite_options());
    options.lock_wait = lock_wait.unwrap_or(options.lock_wait);
    #[cfg(debug_assertions)]
    let options = faults::store_options(options);
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, options)).await;
    match opened {
        Ok(opened) => opened.map(|store| Arc::new(store) as Arc<dyn Store>),
        Err(error) => Err(StoreError::unavailable(error.to_string())),
    }
}
