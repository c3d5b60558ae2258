use super::*;
use crate::store::memory::MemoryStore;
use crate::store::suite::golden;

/// The bytes from this one on, counted up. An operator may not use such a key.
const ONE: u8 = 0;
const OTHER: u8 = 100;
const ONE_ID: &str = "ef2d88eb02726c48";

fn key(first: u8) -> MasterKey {
    MasterKey::of_bytes(&(first..first + 32).collect::<Vec<u8>>())
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
    let base64 = "eKNJQC5x+hjYPoJk6mcGzslYX0hBg3R0F5xtbQzZ/0I=";
    let hex = "78a349402e71fa18d83e8264ea6706cec9585f4841837474179c6d6d0cd9ff42";
    let id = MasterKey::parse(base64).unwrap().id().to_owned();
    for same in [&format!(" {base64}\n"), base64.trim_end_matches('='), hex, &hex.to_uppercase()] {
        assert_eq!(MasterKey::parse(same).unwrap().id(), id, "{same}");
    }
    assert_ne!(id, ONE_ID);
    for (text, reason) in [
        ("", BadMasterKey::Length(0)),
        ("canary", BadMasterKey::NotEncoded),
        ("the crown jewels of the canary!!", BadMasterKey::NotEncoded),
        ("correcthorsebatterystaplecanary0", BadMasterKey::Length(24)),
        (&hex[..32], BadMasterKey::Length(24)),
        (&format!("{hex}00"), BadMasterKey::NotEncoded),
        ("AAECAwQFBgcICQoLDA0ODw==", BadMasterKey::Length(16)),
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

/// What people type, and what stands in examples.
#[test]
fn s16_a_master_key_that_can_be_guessed_is_refused() {
    use base64::Engine as _;
    let base64 = |bytes: &[u8]| base64::prelude::BASE64_STANDARD.encode(bytes);
    let all: Vec<u8> = (0..=255).collect();
    let backwards: Vec<u8> = (0..32).rev().collect();
    let half: Vec<u8> = base64(b"x").bytes().chain(*b"\x9c\x01\xfe4\x80mQ\x07\xe2:\xd6\x1b").collect();
    for weak in [
        "a".repeat(64),
        "0".repeat(64),
        "A".repeat(43),
        "deadbeef".repeat(8),
        "0123456789abcdef".repeat(4),
        "3141592653589793238462643383279502884197169399375105820974944592".to_owned(),
        // Phrases that happen to be base64, and one that was encoded.
        "correcthorsebatterystaplecorrecthorsebricks".to_owned(),
        "CorrectHorseBatteryStapleIsMyFavouriteWords".to_owned(),
        "CanarySingsInTheMorningAndInTheEveningHours".to_owned(),
        "iloveyouiloveyouiloveyouiloveyouiloveyouilo".to_owned(),
        base64(b"The canary sings in the morning!"),
        // In steps, from any byte on; and a pattern of 16 bytes, twice.
        base64(&all[..32]),
        base64(&all[200..232]),
        base64(&backwards),
        base64(&all.iter().step_by(8).copied().collect::<Vec<u8>>()),
        base64(&[&half[..16], &half[..16]].concat()),
    ] {
        let refused = MasterKey::parse(&weak).err();
        assert_eq!(refused, Some(BadMasterKey::Guessable), "{weak}");
        let said = BadMasterKey::Guessable.to_string();
        assert!(said.contains("`openssl rand -base64 32` makes one"), "{said}");
    }
}

#[test]
fn s16_random_master_keys_are_taken() {
    use base64::Engine as _;
    use sha2::Digest as _;
    for n in 0..20_000_u32 {
        let bytes = sha2::Sha256::digest(n.to_be_bytes());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for text in [base64::prelude::BASE64_STANDARD.encode(bytes), hex] {
            assert!(MasterKey::parse(&text).is_ok(), "{n}: {text}");
        }
    }
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

/// A store of which one secret is missing, as after an upgrade that knows more of them: a start that is refused must not
/// make it, least of all in plain text.
#[tokio::test]
async fn s16_a_start_that_is_refused_writes_no_secret() {
    for missing in [CURSOR, CALLERS] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut secrets = Secrets::open(Arc::clone(&store), Some(key(ONE).into())).await.unwrap();
        let kept = if missing == CURSOR { CALLERS } else { CURSOR };
        secrets.get(kept).await.unwrap();
        assert!(matches!(start(&store, None).await, Err(SecretsError::NoMasterKey { .. })), "{missing}");
        assert!(matches!(
            start(&store, Some(key(OTHER).into())).await,
            Err(SecretsError::OtherMasterKey { .. })
        ));
        assert_eq!(store.find_secret(missing).await.unwrap(), None);
        start(&store, Some(key(ONE).into())).await.unwrap();
        assert!(with_id(&stored(&store, missing).await, &key(ONE)));
    }
    // Nor the id of the store, if it is not there.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let wrapped = wrapping(key(ONE), b"another store").wrap(CURSOR, b"value").unwrap();
    store.secret(CURSOR, wrapped).await.unwrap();
    assert!(matches!(start(&store, Some(key(ONE).into())).await, Err(SecretsError::Changed(_))));
    assert_eq!(store.find_secret(STORE_ID).await.unwrap(), None);
}
