//! Tasks in PostgreSQL 15 or newer; made for several replicas.
//!
//! | file | holds |
//! |---|---|
//! | `schema`, `migrations/` | tables, and the functions that compare and write |
//! | `statements` | the other SQL, and row mapping |
//! | `write` | the operations that write |
//! | `read` | the operations that read |
//! | `webhooks` | webhooks and how far each has got |
//!
//! A prototype that passes the whole contract suite; `docs/stores.md` lists what it lacks for production.
//! Each operation is one statement in a transaction of its own: one round trip, and no lock is held while waiting for the
//! network. An answered commit has been flushed (`synchronous_commit` is set per connection). If the connection breaks
//! during a write, it is unknown whether the write was done: the caller gets [`StoreError::Unavailable`] and must read to
//! find out.

mod error;
mod read;
mod schema;
mod statements;
#[cfg(test)]
pub(super) mod tests;
mod webhooks;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, Timestamp};
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::sync::Semaphore;
use tokio_postgres::NoTls;

use super::{
    Append, Appended, FailedWebhook, Head, ListPage, ListQuery, Loaded, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PendingRequest, PutWebhook, ReplicaId,
    Requested, Store, StoreError, StoreResult, StoredCredential, StoredEvent, StoredWebhook, TaskKey,
    WebhookCursor,
};

/// How the store connects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The schema of the tables; created if it does not exist.
    pub schema: String,
    /// Most connections; further callers wait for one.
    pub connections: usize,
    /// Most lists at once, so that other calls do not wait behind many of them.
    pub lists: usize,
    /// How long a caller waits for a connection.
    pub wait: Duration,
    /// How long one statement may take on the server, including waiting for locks.
    pub statement: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            schema: "baton".to_owned(),
            connections: 16,
            lists: 2,
            wait: Duration::from_secs(10),
            statement: Duration::from_secs(30),
        }
    }
}

/// A task store in one schema of a database.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    lists: Semaphore,
}

impl PostgresStore {
    /// Connects (without TLS so far) and brings the schema up to date.
    pub async fn connect(url: &str, options: Options) -> StoreResult<Self> {
        schema::check_name(&options.schema)?;
        // The parser's error is dropped: it may quote the address, which may contain a password.
        let refused = |_| StoreError::unavailable("not a valid PostgreSQL address");
        let mut config: tokio_postgres::Config = url.parse().map_err(refused)?;
        let settings = format!(
            "-c search_path={} -c synchronous_commit=on -c statement_timeout={}",
            options.schema,
            options.statement.as_millis()
        );
        let settings = match config.get_options() {
            Some(given) => format!("{given} {settings}"),
            None => settings,
        };
        config.options(settings).application_name("baton");
        let manager =
            Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .runtime(Runtime::Tokio1)
            .max_size(options.connections.max(1))
            .wait_timeout(Some(options.wait))
            .create_timeout(Some(options.wait))
            .build()
            .map_err(|error| StoreError::unavailable(error.to_string()))?;
        let mut client = pool.get().await?;
        schema::migrate(&mut client, &options.schema).await?;
        Ok(PostgresStore { pool, lists: Semaphore::new(options.lists.max(1)) })
    }

    async fn client(&self) -> StoreResult<Object> {
        Ok(self.pool.get().await?)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        let mut client = self.client().await?;
        match append.webhook {
            Some(_) => write::append_with_webhook(&mut client, scope, &append).await,
            None => write::append(&client, scope, &append).await,
        }
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        write::request(&self.client().await?, scope, task, &request).await
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        read::requests(&self.client().await?, scope, task).await
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        read::head(&self.client().await?, scope, task).await
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        read::load(&self.client().await?, scope, task).await
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        read::events(&self.client().await?, scope, task, after, limit).await
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        let _permit = self.lists.acquire().await.ok();
        read::list(&self.client().await?, scope, query).await
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        read::message(&self.client().await?, scope, id, hash).await
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        write::put_reply(&self.client().await?, scope, &record).await
    }

    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        // Not known yet: only one process at a time may use this prototype (docs/stores.md).
        Ok(Vec::new())
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        read::open_tasks(&self.client().await?, after, limit).await
    }

    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        read::find_secret(&self.client().await?, name).await
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        write::secret(&self.client().await?, name, &fresh).await
    }

    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool> {
        write::replace_secret(&self.client().await?, name, old, &new).await
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        write::note(&self.client().await?, name, put.as_deref()).await
    }

    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>> {
        read::credentials(&self.client().await?).await
    }

    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()> {
        write::put_credential(&self.client().await?, &credential).await
    }

    async fn remove_credential(&self, id: &str) -> StoreResult<()> {
        write::remove_credential(&self.client().await?, id).await
    }

    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        read::owner_usage(&self.client().await?, owner).await
    }

    async fn check(&self) -> StoreResult<()> {
        read::ping(&self.client().await?).await
    }

    async fn task_count(&self) -> StoreResult<u64> {
        read::task_count(&self.client().await?).await
    }

    async fn row_count(&self) -> StoreResult<Option<u64>> {
        read::row_count(&self.client().await?).await
    }

    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook> {
        webhooks::put(&self.client().await?, scope, task, &new, None).await
    }

    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        webhooks::of_task(&self.client().await?, scope, task).await
    }

    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        webhooks::remove(&self.client().await?, scope, task, id, revision).await
    }

    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        webhooks::move_to(&self.client().await?, task, id, revision, cursor).await
    }

    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        webhooks::open(&self.client().await?, after, limit).await
    }

    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        webhooks::open_of(&self.client().await?, task).await
    }

    async fn overdue_webhooks(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
        webhooks::overdue(&self.client().await?, before, limit).await
    }

    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        webhooks::set_aside(&self.client().await?, revision, cursor, &failed, most).await
    }

    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        webhooks::failed(&self.client().await?, after, limit).await
    }

    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        webhooks::remove_failed(&self.client().await?, task, id).await
    }

    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        write::fold_ended(&self.client().await?, before, despite_webhooks, limit).await
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::purge_ended(&self.client().await?, before, limit).await
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::purge_records(&self.client().await?, before, limit).await
    }
}
