//! A store in memory that several replicas can share: one Redis server, version 7 or newer.
//!
//! | file | holds |
//! |---|---|
//! | `keys` | how keys are named |
//! | `scripts`, `scripts/` | the Lua that compares and writes, and the mapping of its replies |
//! | `migrate` | migrates keys of older formats |
//! | `write` | the operations that write |
//! | `read` | the operations that read |
//!
//! A prototype that passes the whole contract suite; `docs/stores.md` lists what it lacks for production.
//! Keys are laid out for a cluster, but this client talks to one node.
//!
//! An answered write is as durable as the server's settings make it: on disk with `appendfsync always`, on disk within a
//! second with `everysec`. After a failover the new primary may lack the last writes, so fences may go back, too. Use
//! another store if no answered write may be lost.

mod error;
mod keys;
mod migrate;
mod read;
mod scripts;
#[cfg(test)]
pub(super) mod tests;
mod webhooks;
mod write;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, Timestamp};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

use self::keys::{BUCKETS, Bucket};
use self::scripts::Scripts;
use super::{
    Append, Appended, FailedWebhook, Head, ListPage, ListQuery, Loaded, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PendingRequest, PutWebhook, ReplicaId,
    Requested, Store, StoreError, StoreResult, StoredCredential, StoredEvent, StoredWebhook, TaskKey,
    WebhookCursor,
};

/// Format of keys and values, stored in `meta`. In format 2, message records are named by digests, and a task's hash has
/// `said`, the number of the event with its status message, which folding keeps. In format 3, tasks and message records have
/// `bytes`, and what each owner has stored is counted. Older versions of Baton refuse to start.
const FORMAT: u64 = 3;

/// Keys that the server looks at in one step of a scan.
const SCAN_STEP: u32 = 500;

/// How the store connects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Prefix of all keys: lower-case letters, digits and `_`.
    pub prefix: String,
    /// How long to wait for a reply. A write without a reply may have been done.
    pub response: Duration,
    /// Refuse a server without an append-only file.
    pub require_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { prefix: "baton".to_owned(), response: Duration::from_secs(10), require_log: true }
    }
}

/// A task store in one Redis.
pub struct RedisStore {
    connection: ConnectionManager,
    prefix: String,
    scripts: Scripts,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects (without TLS so far), and refuses a server whose settings could lose tasks.
    pub async fn connect(url: &str, options: Options) -> StoreResult<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if options.prefix.is_empty() || !options.prefix.bytes().all(plain) {
            return Err(StoreError::unavailable(format!(
                "`{}` is not a valid key prefix: only lower-case letters, digits and _",
                options.prefix
            )));
        }
        // The parser's error is dropped: it may quote the address, which may contain a password.
        let refused = |_| StoreError::unavailable("not a valid Redis address");
        let client = redis::Client::open(url).map_err(refused)?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(options.response))
            .set_connection_timeout(Some(options.response));
        let connection = client.get_connection_manager_with_config(config).await?;
        let store = RedisStore { connection, prefix: options.prefix, scripts: Scripts::new() };
        store.check_server(options.require_log).await?;
        store.check_format().await?;
        Ok(store)
    }

    /// A handle of the shared connection.
    fn connection(&self) -> ConnectionManager {
        self.connection.clone()
    }

    fn bucket(&self, bucket: Bucket) -> String {
        bucket.key(&self.prefix)
    }

    fn key(&self, bucket: Bucket, kind: &str, name: &str) -> String {
        let mut key = self.bucket(bucket);
        key.push_str(kind);
        key.push_str(name);
        key
    }

    /// A key that belongs to no scope.
    fn global(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.prefix)
    }

    /// One step through all keys of the server that match a pattern, in no order and perhaps some of them twice. Answers them,
    /// and where the next step begins: 0 at the first and after the last one. Between two steps the server serves other
    /// clients.
    async fn scan(&self, pattern: &str, from: u64) -> StoreResult<(u64, Vec<Vec<u8>>)> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_STEP);
        Ok(scan.query_async(&mut self.connection()).await?)
    }

    async fn check_server(&self, require_log: bool) -> StoreResult<()> {
        let info: String = redis::cmd("INFO").arg("everything").query_async(&mut self.connection()).await?;
        check_settings(&info, require_log)
    }

    async fn check_format(&self) -> StoreResult<()> {
        let key = self.global("meta");
        let mut both = redis::pipe();
        both.atomic();
        both.cmd("HSETNX").arg(&key).arg("format").arg(FORMAT).ignore();
        both.cmd("HSETNX").arg(&key).arg("buckets").arg(BUCKETS).ignore();
        both.cmd("HMGET").arg(&key).arg(&["format", "buckets", migrate::MIGRATING]);
        let ((format, buckets, migrating),): ((u64, u64, Option<u64>),) =
            both.query_async(&mut self.connection()).await?;
        if !(1..=FORMAT).contains(&format) || buckets != BUCKETS {
            return Err(StoreError::unavailable(format!(
                "the keys have format {format} in {buckets} buckets and this Baton knows format {FORMAT} in {BUCKETS}"
            )));
        }
        let from = migrating.unwrap_or(format);
        if from < FORMAT {
            migrate::migrate(self, &key, from).await?;
        }
        Ok(())
    }
}

/// Checks the server's settings in the reply to INFO.
fn check_settings(info: &str, require_log: bool) -> StoreResult<()> {
    let has = |setting: &str| info.lines().any(|line| line.trim_end() == setting);
    // A server that may evict keys would lose task logs and idempotency records.
    if !has("maxmemory_policy:noeviction") {
        return Err(StoreError::unavailable(
            "this Redis may evict keys; set maxmemory-policy noeviction".to_owned(),
        ));
    }
    if require_log && !has("aof_enabled:1") {
        return Err(StoreError::unavailable(
            "this Redis has no append-only file; set appendonly yes".to_owned(),
        ));
    }
    Ok(())
}

#[async_trait]
impl Store for RedisStore {
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        write::append(self, scope, &append).await
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        write::request(self, scope, task, &request).await
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        read::requests(self, scope, task).await
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        read::head(self, scope, task).await
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        read::load(self, scope, task).await
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        read::events(self, scope, task, after, limit).await
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        read::list(self, scope, query).await
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        read::message(self, scope, id, hash).await
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        write::put_reply(self, scope, &record).await
    }

    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        // Not known yet: only one process at a time may use this prototype (docs/stores.md).
        Ok(Vec::new())
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        read::open_tasks(self, after, limit).await
    }

    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        read::find_secret(self, name).await
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        write::secret(self, name, &fresh).await
    }

    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool> {
        write::replace_secret(self, name, old, &new).await
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        write::note(self, name, put.as_deref()).await
    }

    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>> {
        read::credentials(self).await
    }

    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()> {
        write::put_credential(self, &credential).await
    }

    async fn remove_credential(&self, id: &str) -> StoreResult<()> {
        write::remove_credential(self, id).await
    }

    async fn check(&self) -> StoreResult<()> {
        Ok(redis::cmd("PING").query_async(&mut self.connection()).await?)
    }

    async fn task_count(&self) -> StoreResult<u64> {
        read::task_count(self).await
    }

    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        read::owner_usage(self, owner).await
    }

    async fn row_count(&self) -> StoreResult<Option<u64>> {
        read::row_count(self).await.map(Some)
    }

    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook> {
        webhooks::put(self, scope, task, &new).await
    }

    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        webhooks::of_task(self, scope, task).await
    }

    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        webhooks::remove(self, scope, task, id, revision).await
    }

    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        webhooks::move_to(self, task, id, revision, cursor).await
    }

    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        webhooks::open(self, after, limit).await
    }

    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        webhooks::open_of(self, task).await
    }

    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        webhooks::set_aside(self, revision, cursor, &failed, most).await
    }

    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        webhooks::failed(self, after, limit).await
    }

    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        webhooks::remove_failed(self, task, id).await
    }

    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        write::fold_ended(self, before, despite_webhooks, limit).await
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::purge_ended(self, before, limit).await
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::purge_records(self, before, limit).await
    }
}
