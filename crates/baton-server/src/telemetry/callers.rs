//! Pseudonyms of callers for the log. An owner may be a person's name or address, so it is not logged itself.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::auth::is_anonymous;

/// Makes a short pseudonym of an owner, the same at every start and on every replica. It is an HMAC with a key from the
/// store, so that without the key nobody can find an owner by trying names.
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
    pub(crate) fn new(key: Vec<u8>) -> Self {
        Callers { key }
    }

    pub(crate) fn pseudonym(&self, owner: &str) -> String {
        if is_anonymous(owner) {
            return owner.to_owned();
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(owner.as_bytes());
        let tag = mac.finalize().into_bytes();
        tag[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_steady_and_tell_nothing() {
        let callers = Callers::new(vec![7; 32]);
        let name = callers.pseudonym("alice@example.org");
        assert_eq!(name.len(), 12);
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(Callers::new(vec![7; 32]).pseudonym("alice@example.org"), name, "the next start");
        assert_ne!(callers.pseudonym("bob@example.org"), name);
        assert_ne!(Callers::new(vec![8; 32]).pseudonym("alice@example.org"), name);
        assert_eq!(callers.pseudonym("anonymous"), "anonymous");
    }
}
