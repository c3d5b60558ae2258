//! `credentials`, `put_credential` and `remove_credential`.

use std::sync::Arc;

use bytes::Bytes;

use crate::store::{Store, StoredCredential};

fn credential(id: &str, record: &[u8]) -> StoredCredential {
    StoredCredential { id: id.to_owned(), record: Bytes::copy_from_slice(record) }
}

async fn sorted(store: &Arc<dyn Store>) -> Vec<StoredCredential> {
    let mut all = store.credentials().await.unwrap();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    all
}

pub(super) async fn s16_credentials_are_kept_as_given(store: &Arc<dyn Store>) {
    assert_eq!(store.credentials().await.unwrap(), []);
    let bytes: Vec<u8> = (0..=255).collect();
    let mut ids = ["a", "a b", "'; --", "%", "schlüssel", "{a}"];
    ids.sort_unstable();
    for id in ids {
        store.put_credential(credential(id, &bytes)).await.unwrap();
    }
    assert_eq!(sorted(store).await, ids.map(|id| credential(id, &bytes)));
    assert_eq!(store.secret("a", vec![1]).await.unwrap(), [1], "secrets and credentials are separate");
}

pub(super) async fn s16_the_last_record_of_a_credential_is_kept(store: &Arc<dyn Store>) {
    store.put_credential(credential("a", b"valid")).await.unwrap();
    store.put_credential(credential("b", b"valid")).await.unwrap();
    store.put_credential(credential("a", b"revoked")).await.unwrap();
    assert_eq!(sorted(store).await, [credential("a", b"revoked"), credential("b", b"valid")]);
}

pub(super) async fn s16_a_removed_credential_is_gone(store: &Arc<dyn Store>) {
    store.put_credential(credential("a", b"1")).await.unwrap();
    store.put_credential(credential("b", b"2")).await.unwrap();
    store.remove_credential("a").await.unwrap();
    store.remove_credential("a").await.unwrap();
    store.remove_credential("unknown").await.unwrap();
    assert_eq!(sorted(store).await, [credential("b", b"2")]);
    store.put_credential(credential("a", b"3")).await.unwrap();
    assert_eq!(sorted(store).await, [credential("a", b"3"), credential("b", b"2")]);
}
