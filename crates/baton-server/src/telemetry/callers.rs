//! Callers in the log: told apart, but not named. An owner may be a person's name or address.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::store::{Store, StoreError};

/// Everybody, where nobody is asked who they are.
const NOBODY: &str = "anonymous";

/// Makes the same short name of the same owner at every start and on every replica. The key is the store's: without it
/// nobody can try names out until one fits.
#[derive(Clone)]
pub(crate) struct Callers {
    key: Vec<u8>,
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callers")
    }
}

impl Callers {
    pub(crate) async fn load(store: &dyn Store) -> Result<Self, StoreError> {
        let fresh = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
        Ok(Callers { key: store.secret("callers", fresh).await? })
    }

    pub(crate) fn name(&self, owner: &str) -> String {
        if owner == NOBODY {
            return NOBODY.to_owned();
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any key length will do");
        mac.update(owner.as_bytes());
        let tag = mac.finalize().into_bytes();
        tag[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;

    #[tokio::test]
    async fn names_are_short_steady_and_tell_nothing() {
        let store = MemoryStore::new();
        let callers = Callers::load(&store).await.unwrap();
        let name = callers.name("alice@example.org");
        assert_eq!(name.len(), 12);
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(Callers::load(&store).await.unwrap().name("alice@example.org"), name, "the next start");
        assert_ne!(callers.name("bob@example.org"), name);
        assert_ne!(Callers::load(&MemoryStore::new()).await.unwrap().name("alice@example.org"), name);
        assert_eq!(callers.name("anonymous"), "anonymous");
    }
}
