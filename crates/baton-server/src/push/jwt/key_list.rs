//! The keys that sign JWTs, in the order in which they were made. One of them signs; others are published beside it, either
//! because receivers are still to learn them or because what they signed may still be under way.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::domain::Timestamp;

use crate::auth::NoRandomNumbers;
use crate::jwk::PublicKey;

/// The first line of the stored form. Each further line is a key: when it begins to sign, in milliseconds, and the key as
/// PKCS #8 in base64url.
const FORMAT: &str = "baton-webhook-keys 1";

/// How long a key is published before it signs: receivers keep what they fetched for 5 minutes, and other replicas read the
/// list once a minute.
const ANNOUNCED: Duration = Duration::from_secs(10 * 60);

/// How long a key is published after the next one began to sign. A JWT is valid for 5 minutes.
const RETIRED: Duration = Duration::from_secs(60 * 60);

/// At least one key, oldest first.
#[derive(Debug)]
pub(super) struct KeyList(Vec<Key>);

pub(super) struct Key {
    /// When it begins to sign.
    from: Timestamp,
    pair: EcdsaKeyPair,
    pub(super) public: PublicKey,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("kid", &self.public.kid).field("from", &self.from).finish_non_exhaustive()
    }
}

impl Key {
    fn new(from: Timestamp, pair: EcdsaKeyPair) -> Self {
        let public = PublicKey::p256(&pair);
        Key { from, pair, public }
    }

    fn make(from: Timestamp) -> Result<Self, NoRandomNumbers> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| NoRandomNumbers)?;
        Ok(Key::new(from, pair))
    }

    fn read(line: &str) -> Option<Self> {
        let (from, pkcs8) = line.split_once(' ')?;
        let pkcs8 = URL_SAFE_NO_PAD.decode(pkcs8).ok()?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8).ok()?;
        Some(Key::new(Timestamp::from_millis(from.parse().ok()?), pair))
    }

    fn copy(&self) -> Option<Self> {
        Key::read(&self.to_line())
    }

    fn to_line(&self) -> String {
        let pkcs8 = self.pair.to_pkcs8v1().expect("a key that was made or read can be written");
        format!("{} {}", self.from.as_millis(), URL_SAFE_NO_PAD.encode(pkcs8))
    }

    /// `r` and `s`, of 32 bytes each, as JWS has it.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        Some(self.pair.sign(&SystemRandom::new(), message).ok()?.as_ref().to_vec())
    }
}

impl KeyList {
    /// With one key, which signs from the beginning.
    pub(super) fn make(now: Timestamp) -> Result<Self, NoRandomNumbers> {
        Ok(KeyList(vec![Key::make(now)?]))
    }

    /// `None` if it is not in this form.
    pub(super) fn read(stored: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(stored).ok()?.lines();
        if lines.next() != Some(FORMAT) {
            return None;
        }
        let keys: Vec<Key> = lines.map(Key::read).collect::<Option<_>>()?;
        (!keys.is_empty()).then_some(KeyList(keys))
    }

    pub(super) fn to_stored(&self) -> Vec<u8> {
        let lines: Vec<String> = self.0.iter().map(Key::to_line).collect();
        format!("{FORMAT}\n{}\n", lines.join("\n")).into_bytes()
    }

    /// The list with a new key, if the newest one has been signing for so long. Keys that are published no more are left out.
    pub(super) fn renewed(&self, now: Timestamp, age: Duration) -> Result<Option<Self>, NoRandomNumbers> {
        if self.0.last().is_some_and(|newest| later(newest.from, age) > now) {
            return Ok(None);
        }
        let mut keys: Vec<Key> = self.published(now).filter_map(Key::copy).collect();
        keys.push(Key::make(later(now, ANNOUNCED))?);
        Ok(Some(KeyList(keys)))
    }

    /// The key that signs: the newest one that has begun. If the clock was set back, the oldest.
    pub(super) fn signing(&self, now: Timestamp) -> &Key {
        self.0.iter().rfind(|key| key.from <= now).unwrap_or(&self.0[0])
    }

    /// Those with which receivers verify.
    pub(super) fn published(&self, now: Timestamp) -> impl Iterator<Item = &Key> {
        let next = self.0.iter().skip(1).map(Some).chain([None]);
        let is_published = move |next: Option<&Key>| next.is_none_or(|next| later(next.from, RETIRED) > now);
        self.0.iter().zip(next).filter(move |(_, next)| is_published(*next)).map(|(key, _)| key)
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.plus_millis(i64::try_from(by.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(1_763_200_000_000 + minutes * MINUTE)
    }

    fn kids<'a>(keys: impl Iterator<Item = &'a Key>) -> Vec<String> {
        keys.map(|key| key.public.kid.clone()).collect()
    }

    /// Never changes: stores hold lists of this form. The key was made, and its thumbprint computed, by OpenSSL and Python.
    #[test]
    fn s14_the_first_form_of_the_keys() {
        let stored = b"baton-webhook-keys 1\n1763200000000 MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5ARPsU7GDhXyRHEh4KWBF_SWIxOZ12Qc5aTBR23VuG2hRANCAASnGhhUZm-xzk7qPB0bTFBIxGNHwi2d_wGd29SladgX7Pb--G4rbnsUvNZC_1gCyH-ibCnpbSyhiawlF_DN6Llp\n";
        let list = KeyList::read(stored).unwrap();
        let public = &list.signing(at(0)).public;
        assert_eq!(public.kid, "AIKkVO1GlajR0tatkTtihMmGJh4MjX4PDUHY5oSZISg");
        assert_eq!(KeyList::read(&list.to_stored()).unwrap().signing(at(0)).public, *public);
        let text = std::str::from_utf8(stored).unwrap();
        for bad in
            ["", "baton-webhook-keys 1\n", "baton-webhook-keys 2\n", &text.replace(" MIGH", " "), &text[..60]]
        {
            assert!(KeyList::read(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn s14_a_new_key_is_published_before_it_signs_and_the_old_one_for_a_while_after() {
        let first = KeyList::make(at(0)).unwrap();
        let old = first.signing(at(0)).public.kid.clone();
        assert!(first.renewed(at(24 * 60 - 1), DAY).unwrap().is_none(), "too early");
        let list = first.renewed(at(24 * 60), DAY).unwrap().unwrap();
        let new = list.0[1].public.kid.clone();
        for (minute, signing, published) in [
            (0, &old, &[&old, &new][..]),
            (9, &old, &[&old, &new]),
            (10, &new, &[&old, &new]),
            (69, &new, &[&old, &new]),
            (70, &new, &[&new]),
            // The clock was set back.
            (-10_000, &old, &[&old, &new]),
        ] {
            let now = at(24 * 60 + minute);
            assert_eq!(list.signing(now).public.kid, *signing, "{minute}");
            assert_eq!(kids(list.published(now)).iter().collect::<Vec<_>>(), published, "{minute}");
        }
        assert!(list.renewed(at(24 * 60 + 9), Duration::ZERO).unwrap().is_none(), "one at a time");
        let third = list.renewed(at(10_000), DAY).unwrap().unwrap();
        assert_eq!((third.0.len(), &third.0[0].public.kid), (2, &new), "the first one is forgotten");
    }

    #[test]
    fn s14_nothing_prints_the_keys() {
        let list = KeyList::make(at(0)).unwrap();
        let stored = String::from_utf8(list.to_stored()).unwrap();
        let secret = stored.lines().nth(1).unwrap().split_once(' ').unwrap().1;
        assert!(!format!("{list:?}").contains(&secret[..16]));
    }
}
