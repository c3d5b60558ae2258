//! Stored passwords: argon2id in the PHC format, `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`.

use std::fmt;

use argon2::password_hash::PasswordHasher as _;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, Version};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

/// Most lanes of a stored hash. We compute them one after the other, so more of them only cost time.
const MAX_LANES: u32 = 4;
/// Shortest hash in bytes: one of 4 bytes would be found by trying four billion passwords.
const MIN_HASH: usize = 16;

/// The stored form of a password, with a new random salt. The parameters are those that OWASP recommends for argon2id:
/// 19 MiB, two passes, one lane.
///
/// It takes tens of milliseconds of a processor: call it from `spawn_blocking`.
pub fn hash_password(password: &SecretString) -> Result<String, PasswordError> {
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT);
    let hash = hasher.hash_password(password.expose_secret().as_bytes());
    hash.map(|hash| hash.to_string()).map_err(|_| PasswordError::NotHashed)
}

/// What a stored hash may cost to verify. A hash beyond it is refused when it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashCost {
    pub(super) max_memory_kib: u32,
    pub(super) max_passes: u32,
}

/// Why a stored password cannot be used, or a new one not be made. The text never has the hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordError {
    /// It is not in the PHC format.
    #[error("is not a hash such as $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH")]
    NotPhc,
    /// It is of another algorithm, or another version of it.
    #[error("is not argon2id, version 19")]
    OtherAlgorithm,
    /// Verifying it would need too much.
    #[error("costs too much to verify: at most m={max_memory_kib} (KiB), t={max_passes}, p=4")]
    TooCostly {
        /// The most memory, in KiB.
        max_memory_kib: u32,
        /// The most passes.
        max_passes: u32,
    },
    /// The hash is too short to be safe.
    #[error("has a hash of less than 16 bytes")]
    TooShort,
    /// There was no memory for it, or no randomness for the salt.
    #[error("could not be hashed")]
    NotHashed,
}

/// A stored hash that was checked against the limits.
#[derive(PartialEq, Eq)]
pub(super) struct StoredPassword {
    params: Params,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredPassword")
    }
}

impl StoredPassword {
    pub(super) fn parse(text: &str, cost: HashCost) -> Result<Self, PasswordError> {
        let parsed = PasswordHash::new(text).map_err(|_| PasswordError::NotPhc)?;
        if parsed.algorithm.as_str() != "argon2id" || parsed.version != Some(Version::V0x13.into()) {
            return Err(PasswordError::OtherAlgorithm);
        }
        // `keyid` and `data` would change the result; we never write them.
        if parsed.params.iter().any(|(name, _)| !matches!(name.as_str(), "m" | "t" | "p")) {
            return Err(PasswordError::OtherAlgorithm);
        }
        let params = Params::try_from(&parsed).map_err(|_| PasswordError::NotPhc)?;
        let HashCost { max_memory_kib, max_passes } = cost;
        if params.m_cost() > max_memory_kib || params.t_cost() > max_passes || params.p_cost() > MAX_LANES {
            return Err(PasswordError::TooCostly { max_memory_kib, max_passes });
        }
        let (Some(salt), Some(hash)) = (parsed.salt, parsed.hash) else { return Err(PasswordError::NotPhc) };
        let (salt, hash) = (salt.as_ref().to_vec(), hash.as_bytes().to_vec());
        if hash.len() < MIN_HASH {
            return Err(PasswordError::TooShort);
        }
        Ok(StoredPassword { params, salt, hash })
    }

    /// Whether it is this password. Takes milliseconds and the hash's memory: not for an async thread.
    pub(super) fn matches(&self, password: &SecretString) -> Result<bool, PasswordError> {
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone());
        let mut computed = vec![0; self.hash.len()];
        hasher
            .hash_password_into(password.expose_secret().as_bytes(), &self.salt, &mut computed)
            .map_err(|_| PasswordError::NotHashed)?;
        Ok(computed.ct_eq(&self.hash).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: HashCost = HashCost { max_memory_kib: 64 * 1024, max_passes: 10 };

    #[test]
    fn what_is_made_can_be_verified() {
        let made = hash_password(&"correct horse".into()).unwrap();
        assert!(made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{made}");
        let stored = StoredPassword::parse(&made, COST).unwrap();
        assert_eq!(stored.matches(&"correct horse".into()), Ok(true));
        assert_eq!(stored.matches(&"correct horsf".into()), Ok(false));
        assert_eq!(stored.salt.len(), 16);
        assert_eq!(format!("{stored:?}"), "StoredPassword");
    }

    /// From the tests of the reference implementation in C.
    #[test]
    fn hashes_of_other_programs_are_verified() {
        for text in [
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
        ] {
            let stored = StoredPassword::parse(text, COST).unwrap();
            assert_eq!(stored.matches(&"password".into()), Ok(true), "{text}");
            assert_eq!(stored.matches(&"passwore".into()), Ok(false), "{text}");
        }
    }

    #[test]
    fn other_records_are_refused() {
        const END: &str = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let costly = PasswordError::TooCostly { max_memory_kib: 65536, max_passes: 10 };
        for (text, error) in [
            (String::new(), PasswordError::NotPhc),
            ("secret".to_owned(), PasswordError::NotPhc),
            (
                "$2b$12$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu".to_owned(),
                PasswordError::NotPhc,
            ),
            (format!("$argon2id$v=19$m=4194304,t=2,p=1{END}"), costly.clone()),
            (format!("$argon2id$v=19$m=65537,t=2,p=1{END}"), costly.clone()),
            (format!("$argon2id$v=19$m=19456,t=11,p=1{END}"), costly.clone()),
            (format!("$argon2id$v=19$m=19456,t=4294967295,p=1{END}"), costly.clone()),
            (format!("$argon2id$v=19$m=19456,t=2,p=5{END}"), costly),
            (format!("$argon2i$v=19$m=19456,t=2,p=1{END}"), PasswordError::OtherAlgorithm),
            (format!("$argon2d$v=19$m=19456,t=2,p=1{END}"), PasswordError::OtherAlgorithm),
            (format!("$argon2id$v=16$m=19456,t=2,p=1{END}"), PasswordError::OtherAlgorithm),
            (format!("$argon2id$m=19456,t=2,p=1{END}"), PasswordError::OtherAlgorithm),
            (format!("$argon2id$v=19$m=19456,t=2,p=1,keyid=AAAA{END}"), PasswordError::OtherAlgorithm),
            (format!("$argon2id$v=19$m=0,t=2,p=1{END}"), PasswordError::NotPhc),
            (format!("$argon2id$v=19$m=19456,t=0,p=1{END}"), PasswordError::NotPhc),
            (format!("$argon2id$v=19$m=x,t=2,p=1{END}"), PasswordError::NotPhc),
            ("$argon2id$v=19$m=19456,t=2,p=1".to_owned(), PasswordError::NotPhc),
            ("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ".to_owned(), PasswordError::NotPhc),
            ("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFQ".to_owned(), PasswordError::TooShort),
        ] {
            assert_eq!(StoredPassword::parse(&text, COST).map(|_| ()), Err(error), "{text}");
        }
    }
}
