//! The text of an API key that Baton issues: `bk_`, eight characters that identify it, `_`, 43 characters of secret.
//!
//! The parts have fixed lengths and only letters and digits, so that a key is one word for a shell, a URL, a cookie and a
//! double click, and scanners for leaked secrets can recognise it.

use baton_protocol::domain::Timestamp;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use super::random::{self, NoRandomNumbers};
use crate::store::record::IssuedKey;

const PREFIX: &[u8] = b"bk_";
const ID: usize = 8;
/// 43 of 62 characters are 256 bits.
const SECRET: usize = 43;
const LENGTH: usize = PREFIX.len() + ID + 1 + SECRET;

const LOWER_ALPHANUMERIC: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The public part of a key.
pub(super) type KeyId = [u8; ID];

/// The public part of a text that has the form of an issued key.
pub(super) fn id_of(presented: &[u8]) -> Option<KeyId> {
    let rest = presented.strip_prefix(PREFIX)?;
    let (id, rest) = rest.split_first_chunk::<ID>()?;
    let has_form = presented.len() == LENGTH
        && id.iter().all(|byte| LOWER_ALPHANUMERIC.contains(byte))
        && rest[0] == b'_'
        && rest[1..].iter().all(u8::is_ascii_alphanumeric);
    has_form.then_some(*id)
}

/// The public part as text.
pub(super) fn id_text(id: &KeyId) -> &str {
    std::str::from_utf8(id).unwrap_or_default()
}

/// What an issued key is stored as. The key has 256 random bits, so that a fast hash is enough.
pub(super) fn hash(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Makes a key. The secret is in the text alone.
pub(super) fn make(
    name: &str,
    owner: &str,
    scopes: Vec<String>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
) -> Result<(IssuedKey, SecretString), NoRandomNumbers> {
    let id = characters::<ID>(LOWER_ALPHANUMERIC)?;
    let mut text = String::with_capacity(LENGTH);
    text.push_str("bk_");
    text.extend(id.map(char::from));
    text.push('_');
    text.extend(characters::<SECRET>(ALPHANUMERIC)?.map(char::from));
    let key = IssuedKey {
        id: id_text(&id).to_owned(),
        name: name.to_owned(),
        owner: owner.to_owned(),
        scopes,
        created_at,
        expires_at,
        revoked_at: None,
        sha256: hash(text.as_bytes()),
    };
    Ok((key, SecretString::from(text)))
}

/// Characters of the alphabet, each equally likely.
fn characters<const LENGTH: usize>(alphabet: &[u8]) -> Result<[u8; LENGTH], NoRandomNumbers> {
    // A remainder of all 256 values would favour the first characters; the largest ones are thrown again.
    let fair = 256 - 256 % alphabet.len();
    let mut chosen = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        for byte in random::bytes::<LENGTH>()? {
            if usize::from(byte) < fair && at < LENGTH {
                chosen[at] = alphabet[usize::from(byte) % alphabet.len()];
                at += 1;
            }
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn made() -> (IssuedKey, String) {
        let made = make("n", "o", Vec::new(), Timestamp::from_millis(0), None).unwrap();
        (made.0, made.1.expose_secret().to_owned())
    }

    #[test]
    fn s16_a_made_key_is_recognised_and_stored_as_a_hash() {
        let (key, text) = made();
        assert_eq!(text.len(), 55);
        assert_eq!(id_of(text.as_bytes()).map(|id| id_text(&id).to_owned()), Some(key.id.clone()));
        assert_eq!(key.sha256, hash(text.as_bytes()));
        let stored = String::from_utf8(key.to_stored().record.to_vec()).unwrap();
        assert!(
            !stored.contains(&text[12..]) && !format!("{key:?}").contains(&text[12..]),
            "{stored} {key:?}"
        );
    }

    #[test]
    fn s16_keys_are_never_the_same_and_use_every_character() {
        let all: Vec<String> = (0..200).map(|_| made().1).collect();
        let ids: std::collections::BTreeSet<&str> = all.iter().map(|text| &text[3..11]).collect();
        assert_eq!(ids.len(), 200);
        for byte in ALPHANUMERIC {
            assert!(all.iter().any(|text| text.as_bytes()[12..].contains(byte)), "{}", char::from(*byte));
        }
    }

    #[test]
    fn s16_other_texts_have_no_id() {
        let (_, text) = made();
        let mut others = vec![
            String::new(),
            "bk_".to_owned(),
            text[..54].to_owned(),
            format!("{text}a"),
            text.replacen("bk_", "BK_", 1),
            text.to_uppercase(),
            format!(" {text}"),
        ];
        for at in [3, 11, 20, 54] {
            let mut changed = text.clone().into_bytes();
            changed[at] = b'-';
            others.push(String::from_utf8(changed).unwrap());
        }
        for other in others {
            assert_eq!(id_of(other.as_bytes()), None, "{other}");
        }
        assert_eq!(id_of(&[0xff; 55]), None);
    }
}
