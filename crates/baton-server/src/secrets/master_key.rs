//! Master keys: 256 random bits that the operator keeps outside the store.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::zeroize::Zeroizing;
use sha2::Sha256;

use super::ID;
use super::guessable::is_guessable;
use crate::auth::NoRandomNumbers;

pub(super) const BYTES: usize = 32;

/// The padding may be left out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Wraps the secrets that the server keeps in its store. Shown by its id, which is not secret.
#[derive(Clone)]
pub struct MasterKey {
    id: Arc<str>,
    /// Of a key that is derived from the master key, which is not kept.
    cipher: Arc<RandomizedNonceKey>,
}

/// Why a text is no master key. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a master key is 32 random bytes in base64 or hexadecimal, and this is {}; `openssl rand -base64 32` makes one",
    match self {
        Self::NotEncoded => "neither",
        Self::Length(_) => "another number of bytes",
        Self::Guessable => "one that can be guessed (a phrase, a number, a pattern)",
    }
)]
#[non_exhaustive]
pub enum BadMasterKey {
    /// Neither base64 nor hexadecimal.
    NotEncoded,
    /// So many bytes instead of 32.
    Length(usize),
    /// A phrase, a number, a pattern that repeats, or bytes that are nearly all the same.
    Guessable,
}

impl MasterKey {
    /// Reads 32 bytes in base64, as `openssl rand -base64 32` prints them, or in hexadecimal. White space around them is
    /// ignored.
    pub fn parse(text: &str) -> Result<Self, BadMasterKey> {
        let text = text.trim();
        let is_hex = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = match is_hex {
            true => of_hex(text),
            false => Zeroizing::new(BASE64.decode(text).map_err(|_| BadMasterKey::NotEncoded)?),
        };
        if bytes.len() != BYTES {
            return Err(BadMasterKey::Length(bytes.len()));
        }
        if is_guessable(text, is_hex, &bytes) {
            return Err(BadMasterKey::Guessable);
        }
        Ok(Self::of_bytes(&bytes))
    }

    /// Without a look at whether they are random.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let id = derived(bytes, "baton master key: id 1");
        let id: String = id[..ID / 2].iter().map(|byte| format!("{byte:02x}")).collect();
        let key = Zeroizing::new(derived(bytes, "baton master key: wrap 1"));
        let cipher = RandomizedNonceKey::new(&AES_256_GCM, &*key).expect("the key has 32 bytes");
        MasterKey { id: id.into(), cipher: Arc::new(cipher) }
    }

    /// Names the key in logs and in the store: part of a hash, from which the key cannot be found.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Nonce, encrypted value and tag, one after the other.
    fn encrypt(&self, context: &[u8], value: &[u8]) -> Result<Vec<u8>, NoRandomNumbers> {
        let mut encrypted = value.to_vec();
        // Fails only without random numbers, or for values of gigabytes.
        let nonce = self.cipher.seal_in_place_append_tag(Aad::from(context), &mut encrypted);
        let nonce = nonce.map_err(|_| NoRandomNumbers)?;
        Ok([&nonce.as_ref()[..], &encrypted].concat())
    }

    fn decrypt(&self, context: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = encrypted.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut value = encrypted.to_vec();
        let length = self.cipher.open_in_place(nonce, Aad::from(context), &mut value).ok()?.len();
        value.truncate(length);
        Some(value)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

/// The master key that wraps, and old ones that may still be needed to unwrap.
#[derive(Debug, Clone)]
pub struct MasterKeys {
    current: MasterKey,
    old: Vec<MasterKey>,
}

impl MasterKeys {
    /// Wraps and unwraps with this key.
    pub fn new(current: MasterKey) -> Self {
        MasterKeys { current, old: Vec::new() }
    }

    /// Unwraps with this key, too. What is found wrapped with it is wrapped with the current key.
    #[must_use]
    pub fn with_old(mut self, old: MasterKey) -> Self {
        self.old.push(old);
        self
    }

    /// Of a key that is itself kept wrapped.
    pub(super) fn of_contents(key: &[u8]) -> Option<Self> {
        Some(MasterKeys::new(MasterKey::of_bytes(key)))
    }

    pub(super) fn current_id(&self) -> &str {
        self.current.id()
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.all().map(|key| key.id().to_owned()).collect()
    }

    pub(super) fn encrypt(&self, context: &[u8], value: &[u8]) -> Result<Vec<u8>, NoRandomNumbers> {
        self.current.encrypt(context, value)
    }

    /// With the key of this id. `None` if it does not fit, or there is no such key.
    pub(super) fn decrypt(&self, id: &str, context: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
        self.all().find(|key| key.id() == id)?.decrypt(context, encrypted)
    }

    fn all(&self) -> impl Iterator<Item = &MasterKey> {
        std::iter::once(&self.current).chain(&self.old)
    }
}

impl From<MasterKey> for MasterKeys {
    fn from(key: MasterKey) -> Self {
        MasterKeys::new(key)
    }
}

fn derived(master_key: &[u8], purpose: &str) -> [u8; BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(master_key).expect("HMAC takes keys of any length");
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

fn of_hex(text: &str) -> Zeroizing<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
    Zeroizing::new(text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}
