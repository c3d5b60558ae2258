//! Credentials, with a checksum like other rows.

use bytes::Bytes;
use rusqlite::params;

use super::checksum::Checksum;
use super::session::Session;
use super::statements as sql;
use crate::store::{StoreResult, StoredCredential};

pub(super) fn all(session: &mut Session) -> StoreResult<Vec<StoredCredential>> {
    let mut statement = session.connection.prepare_cached(sql::CREDENTIALS)?;
    let credentials = statement.query_and_then([], |row| {
        let (id, record): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let credential = StoredCredential { id, record: Bytes::from(record) };
        sum(&credential).check(row.get(2)?, &|| format!("credential {}", credential.id))?;
        Ok(credential)
    })?;
    credentials.collect()
}

pub(super) fn put(session: &mut Session, credential: &StoredCredential) -> StoreResult<()> {
    let StoredCredential { id, record } = credential;
    let mut put = session.connection.prepare_cached(sql::PUT_CREDENTIAL)?;
    put.execute(params![id, &record[..], sum(credential).stored()])?;
    Ok(())
}

pub(super) fn remove(session: &mut Session, id: &str) -> StoreResult<()> {
    session.connection.prepare_cached(sql::REMOVE_CREDENTIAL)?.execute([id])?;
    Ok(())
}

fn sum(credential: &StoredCredential) -> Checksum {
    Checksum::of(0).bytes(credential.id.as_bytes()).bytes(&credential.record)
}
