use super::*;
use crate::store::memory::MemoryStore;
use crate::store::suite::golden;

/// The bytes 0 to 31, and those bytes in reverse.
const ONE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER: &str = "1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100";
const ONE_ID: &str = "ef2d88eb02726c48";

fn key(text: &str) -> MasterKey {
    MasterKey::parse(text).unwrap()
}

fn wrapping(keys: impl Into<MasterKeys>, store_id: &[u8]) -> Wrapping {
    Wrapping { keys: Some(keys.into()), store_id: store_id.into() }
}

async fn start(store: &Arc<dyn Store>, keys: Option<MasterKeys>) -> Result<(Vec<u8>, Vec<u8>), SecretsError> {
    let mut secrets = Secrets::open(Arc::clone(store), keys).await?;
    let both = (secrets.get("cursor").await?, secrets.get("callers").await?);
    secrets.finish();
    Ok(both)
}

async fn stored(store: &Arc<dyn Store>, name: &str) -> Vec<u8> {
    store.secret(name, Vec::new()).await.unwrap()
}

fn with_id(stored: &[u8], key: &MasterKey) -> bool {
    stored.starts_with(format!("baton-secret 1 {}\n", key.id()).as_bytes())
}

#[test]
fn s16_a_master_key_is_32_random_bytes_in_base64_or_hexadecimal() {
    assert_eq!(key(ONE).id(), ONE_ID);
    let hex: String = (0..32).map(|byte| format!("{byte:02X}")).collect();
    for same in [&format!(" {ONE}\n"), ONE.trim_end_matches('='), &hex, &hex.to_lowercase()] {
        assert_eq!(key(same).id(), ONE_ID, "{same}");
    }
    assert_ne!(key(OTHER).id(), ONE_ID);
    for (text, reason) in [
        ("", BadMasterKey::Length(0)),
        ("canary", BadMasterKey::NotEncoded),
        ("the crown jewels of the canary!!", BadMasterKey::NotEncoded),
        ("correcthorsebatterystaplecanary0", BadMasterKey::Length(24)),
        (&hex[..32], BadMasterKey::Length(24)),
        (&format!("{hex}00"), BadMasterKey::NotEncoded),
        ("AAECAwQFBgcICQoLDA0ODw==", BadMasterKey::Length(16)),
        (&"0".repeat(64), BadMasterKey::Guessable),
        (&"A".repeat(43), BadMasterKey::Guessable),
        (&"deadbeef".repeat(8), BadMasterKey::Guessable),
    ] {
        let refused = MasterKey::parse(text).unwrap_err();
        assert_eq!(refused, reason, "{text}");
        let said = refused.to_string();
        assert!(said.contains("`openssl rand -base64 32`") && !said.contains("canary"), "{said}");
    }
    let shown = format!("{:?}", MasterKeys::new(key(ONE)).with_old(key(OTHER)));
    assert_eq!(
        shown,
        format!("MasterKeys {{ current: MasterKey({ONE_ID}), old: [MasterKey({})] }}", key(OTHER).id())
    );
}

/// The file was written by another implementation of the form (Python's `cryptography`).
#[test]
fn s16_the_stored_form_of_a_wrapped_secret_is_kept_for_ever() {
    let golden = std::fs::read(golden::path("wrapped-secret-v1.bin")).unwrap();
    let wrapping = wrapping(key(ONE), b"golden store id!");
    let unwrapped = wrapping.unwrap("cursor", &golden).unwrap();
    assert_eq!(unwrapped, Unwrapped { value: b"not so secret".to_vec(), stored_as: StoredAs::Now });
    let (first, again) = (
        wrapping.wrap("cursor", b"not so secret").unwrap(),
        wrapping.wrap("cursor", b"not so secret").unwrap(),
    );
    assert_eq!((first.len(), &first[..LINE]), (golden.len(), &golden[..LINE]));
    assert_ne!(first[LINE..], again[LINE..], "each with a nonce of its own");
    assert_eq!(wrapping.unwrap("cursor", &first).unwrap(), unwrapped);
}

#[test]
fn s16_a_wrapped_value_fits_its_name_its_store_and_its_key_only() {
    let here = wrapping(key(ONE), b"store 1");
    let wrapped = here.wrap("cursor", b"value").unwrap();
    let refused = |wrapping: &Wrapping, name: &str, stored: &[u8]| {
        wrapping.unwrap(name, stored).map(|unwrapped| unwrapped.value).unwrap_err().to_string()
    };
    let changed =
        "the secret `cursor` in the store cannot be unwrapped: it was changed, or is from another store";
    assert_eq!(refused(&here, "callers", &wrapped), changed.replace("cursor", "callers"));
    assert_eq!(refused(&wrapping(key(ONE), b"store 2"), "cursor", &wrapped), changed);
    // The end of the store's id is not taken for the beginning of the name.
    assert_eq!(
        refused(&wrapping(key(ONE), b"store 1c"), "ursor", &wrapped),
        changed.replace("cursor", "ursor")
    );
    let other = refused(&wrapping(key(OTHER), b"store 1"), "cursor", &wrapped);
    assert!(other.contains(ONE_ID) && other.ends_with(key(OTHER).id()), "{other}");
    let none = refused(&Wrapping { keys: None, store_id: Arc::default() }, "cursor", &wrapped);
    assert!(none.contains(ONE_ID) && none.contains("no master key was given"), "{none}");
    for at in 0..wrapped.len() {
        let mut bad = wrapped.clone();
        bad[at] ^= 1;
        match here.unwrap("cursor", &bad) {
            Err(_) => {}
            // Without the mark it is some plain value, never the one that was wrapped.
            Ok(unwrapped) => assert!(at < MARK.len() && unwrapped.value == bad, "{at}"),
        }
        let cut = here.unwrap("cursor", &wrapped[..at]);
        assert!(cut.is_err() || at < MARK.len(), "{at}");
    }
    let newer = [MARK, b"2 ", &wrapped[MARK.len() + 2..]].concat();
    assert!(refused(&here, "cursor", &newer).contains("newer"));
}

#[tokio::test]
async fn s16_plain_secrets_are_wrapped_in_place_and_then_need_their_key() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let plain = start(&store, None).await.unwrap();
    assert_eq!(stored(&store, "cursor").await, plain.0);
    assert_eq!(start(&store, Some(key(ONE).into())).await.unwrap(), plain, "the same secrets");
    let wrapped = (stored(&store, "cursor").await, stored(&store, "callers").await);
    assert!(with_id(&wrapped.0, &key(ONE)) && with_id(&wrapped.1, &key(ONE)));

    assert!(matches!(start(&store, None).await, Err(SecretsError::NoMasterKey { .. })));
    let other = start(&store, Some(key(OTHER).into())).await;
    assert!(matches!(other, Err(SecretsError::OtherMasterKey { .. })), "{other:?}");
    assert_eq!(start(&store, Some(key(ONE).into())).await.unwrap(), plain);
    assert_eq!(
        (stored(&store, "cursor").await, stored(&store, "callers").await),
        wrapped,
        "nothing was written"
    );
}

#[tokio::test]
async fn s16_a_master_key_is_replaced_by_a_new_one() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let secrets = start(&store, Some(key(ONE).into())).await.unwrap();
    let both = MasterKeys::new(key(OTHER)).with_old(key(ONE));
    for _ in 0..2 {
        assert_eq!(start(&store, Some(both.clone())).await.unwrap(), secrets);
        assert!(with_id(&stored(&store, "cursor").await, &key(OTHER)));
        assert!(with_id(&stored(&store, "callers").await, &key(OTHER)));
    }
    assert_eq!(start(&store, Some(key(OTHER).into())).await.unwrap(), secrets, "without the old one");
    start(&store, Some(key(ONE).into())).await.unwrap_err();
}

/// A crash between the two leaves one plain; and replicas may start together.
#[tokio::test]
async fn s16_wrapping_goes_on_where_it_stopped_and_replicas_agree() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let plain = start(&store, None).await.unwrap();
    let mut first = Secrets::open(Arc::clone(&store), Some(key(ONE).into())).await.unwrap();
    first.get("cursor").await.unwrap();
    let mut replicas = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = Arc::clone(&store);
        replicas.spawn(async move { start(&store, Some(key(ONE).into())).await.unwrap() });
    }
    assert!(replicas.join_all().await.iter().all(|secrets| *secrets == plain));
    assert!(with_id(&stored(&store, "callers").await, &key(ONE)));
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn s16_the_database_file_has_no_secret_in_the_clear() {
    use crate::store::sqlite::{Options, SqliteStore};

    let folder = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(folder.path().join("tasks.db"), Options::default()).unwrap())
    };
    // Also in the write-ahead log, which a running server has beside the database.
    let is_found = |secret: &[u8]| {
        std::fs::read_dir(folder.path()).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(secret.len()).any(|bytes| bytes == secret)
        })
    };
    let store = open();
    let (cursor, callers) = start(&store, None).await.unwrap();
    assert!(is_found(&cursor) && is_found(&callers), "the control: a plain secret is found");
    drop(store);
    assert!(is_found(&cursor) && is_found(&callers));

    let store = open();
    let again = start(&store, Some(key(ONE).into())).await.unwrap();
    assert_eq!(again, (cursor.clone(), callers.clone()));
    assert!(!is_found(&cursor) && !is_found(&callers), "while the server runs");
    assert!(is_found(format!("baton-secret 1 {ONE_ID}\n").as_bytes()));
    drop(store);
    assert!(!is_found(&cursor) && !is_found(&callers), "after it");

    let fresh = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(fresh.path().join("tasks.db"), Options::default()).unwrap());
    let (cursor, _) = start(&store, Some(key(ONE).into())).await.unwrap();
    for entry in std::fs::read_dir(fresh.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(cursor.len()).any(|bytes| bytes == cursor), "wrapped from the beginning");
    }
}
