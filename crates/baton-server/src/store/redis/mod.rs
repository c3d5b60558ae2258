//! The store in memory that replicas share: one Redis 7 or newer.
//!
//! | file | holds |
//! |---|---|
//! | `keys` | how keys are named |
//! | `scripts`, `scripts/` | the Lua that compares and writes, and how its answers are read |
//! | `migrate` | brings keys of older formats up to date |
//! | `write` | the verbs that write |
//! | `read` | the verbs that read |
//!
//! A prototype that runs the whole contract suite; `docs/stores.md` says what a production backend lacks.
//! Keys are laid out for a cluster, but this client talks to one node.
//!
//! An answered write is as durable as the server is told to make it: on disk with `appendfsync always`,
//! within a second of it with `everysec`. A replica that takes over may lack the last writes; fences go
//! back with them. Whoever cannot lose an answered write keeps tasks elsewhere.

mod error;
mod keys;
mod migrate;
mod read;
mod scripts;
#[cfg(test)]
pub(super) mod tests;
mod write;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, Scope, TaskId, Timestamp};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

use self::keys::{BUCKETS, Bucket};
use self::scripts::Scripts;
use super::{
    Append, Appended, Head, ListPage, ListQuery, Loaded, MessageHash, MessageRecord, NewRequest, OpenTask,
    PendingRequest, Requested, Store, StoreError, StoreResult, StoredEvent, TaskKey,
};

/// Of keys and their values, as `meta` says. 2: message records are named by digests, and tasks know the event that
/// says their status, which folding keeps. Older versions of Baton know format 1 alone and refuse to start.
const FORMAT: u64 = 2;

/// How the store connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What all keys start with: small letters, digits and `_`.
    pub prefix: String,
    /// How long to wait for an answer. A write that is not answered may have been done.
    pub response: Duration,
    /// Refuse a server that keeps nothing on disk.
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
    /// Connects (without TLS so far) and looks whether the server may be trusted with tasks.
    pub async fn connect(url: &str, options: Options) -> StoreResult<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if options.prefix.is_empty() || !options.prefix.bytes().all(plain) {
            return Err(StoreError::Unavailable(format!(
                "`{}` is no prefix for keys: small letters, digits and _",
                options.prefix
            )));
        }
        // The parser's error may quote the address, and that may hold a password.
        let refused = |_| StoreError::Unavailable("the address is not one of a Redis".to_owned());
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

    /// Connections are shared: this is a handle.
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

    /// A key of no scope.
    fn global(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.prefix)
    }

    async fn check_server(&self, require_log: bool) -> StoreResult<()> {
        let info: String = redis::cmd("INFO").arg("everything").query_async(&mut self.connection()).await?;
        may_be_trusted(&info, require_log)
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
        if !matches!(format, 1 | FORMAT) || buckets != BUCKETS {
            return Err(StoreError::Unavailable(format!(
                "the keys have format {format} in {buckets} buckets and this Baton knows format {FORMAT} in {BUCKETS}"
            )));
        }
        if format == 1 || migrating.is_some() {
            migrate::from_format_1(self, &key).await?;
        }
        Ok(())
    }
}

/// Reads what a server says about itself.
fn may_be_trusted(info: &str, require_log: bool) -> StoreResult<()> {
    let says = |line: &str| info.lines().any(|said| said.trim_end() == line);
    // A server that may evict keys drops logs and idempotency records as it likes.
    if !says("maxmemory_policy:noeviction") {
        return Err(StoreError::Unavailable(
            "this Redis may evict keys; set maxmemory-policy noeviction".to_owned(),
        ));
    }
    if require_log && !says("aof_enabled:1") {
        return Err(StoreError::Unavailable("this Redis keeps no log; set appendonly yes".to_owned()));
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

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        read::open_tasks(self, after, limit).await
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        write::secret(self, name, &fresh).await
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        write::note(self, name, put.as_deref()).await
    }

    async fn check(&self) -> StoreResult<()> {
        Ok(redis::cmd("PING").query_async(&mut self.connection()).await?)
    }

    async fn task_count(&self) -> StoreResult<u64> {
        read::task_count(self).await
    }

    async fn fold_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::fold_ended(self, before, limit).await
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::purge_ended(self, before, limit).await
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        write::purge_records(self, before, limit).await
    }
}
