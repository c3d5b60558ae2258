//! Tables and functions, as a numbered list of migrations. A migration that has been released is never edited.

use tokio_postgres::Client;

use crate::store::{StoreError, StoreResult};

/// The row `format` in `meta` says how many of these have run.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
];

/// The advisory lock of the migrations ("BATON" in ASCII): replicas that start together migrate one after the other.
const LOCK: i64 = 0x42_41_54_4f_4e;

/// A schema's name goes into statements unquoted, so it must not need quoting.
pub(super) fn check_name(schema: &str) -> StoreResult<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if schema.len() <= 63
        && schema.starts_with(|first: char| first.is_ascii_lowercase())
        && schema.bytes().all(plain)
    {
        return Ok(());
    }
    Err(StoreError::unavailable(format!(
        "`{schema}` is not a valid schema name: up to 63 lower-case letters, digits and _, starting with a letter"
    )))
}

/// Creates the schema if needed and runs the missing migrations, in one transaction.
pub(super) async fn migrate(client: &mut Client, schema: &str) -> StoreResult<()> {
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // `CREATE SCHEMA IF NOT EXISTS` would need the right to create schemas even if it exists.
    let existing = transaction.query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&schema]).await?;
    if existing.is_none() {
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    let has_table = "SELECT count(*) > 0, coalesce(bool_or(tablename = 'meta'), false) \
                     FROM pg_tables WHERE schemaname = $1";
    let row = transaction.query_one(has_table, &[&schema]).await?;
    let (tables, ours): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    if tables && !ours {
        return Err(StoreError::damaged(format!("schema {schema} holds tables, but not Baton's")));
    }
    let done = if ours { stored_format(&transaction).await? } else { 0 };
    let newest = MIGRATIONS.len();
    if done > newest {
        return Err(StoreError::unavailable(format!(
            "schema {schema} has format {done} and this Baton knows formats up to {newest}: it was written by a newer Baton"
        )));
    }
    for sql in &MIGRATIONS[done..] {
        transaction.batch_execute(sql).await?;
    }
    if done < newest {
        let put = "INSERT INTO meta (name, value) VALUES ('format', $1) \
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        transaction.execute(put, &[&newest.to_string()]).await?;
    }
    Ok(transaction.commit().await?)
}

async fn stored_format(transaction: &tokio_postgres::Transaction<'_>) -> StoreResult<usize> {
    let row = transaction.query_opt("SELECT value FROM meta WHERE name = 'format'", &[]).await?;
    let value: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
    let damaged = || StoreError::damaged("table meta has no valid format");
    value.and_then(|value| value.parse().ok()).ok_or_else(damaged)
}
