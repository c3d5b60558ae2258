//! The hash of a message's content, by which a repeated message is recognized together with its id. The hash holds the
//! version of its algorithm.

use baton_protocol::domain::Message;
use baton_protocol::signature::message_form::{Form, holds_free_json, write_form};
use sha2::{Digest, Sha256};

use crate::store::{HASH_DIGEST, MessageHash};

/// Stored in the last byte of a hash. Hashes of version 1 have a byte of their digest there instead.
const VERSION: u8 = 2;

/// The hashes under which a message may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hashes {
    /// The hash in records that are written now.
    pub(super) current: MessageHash,
    /// The hash in records of version 1.
    pub(super) v1: MessageHash,
}

/// Hashes the message as it was sent, including its target. Version 2 differs from version 1 only in free JSON, which it
/// makes canonical; so a message without free JSON is encoded and hashed once.
pub(super) fn hashes(message: &Message) -> Hashes {
    let mut form = Vec::with_capacity(512);
    write_form(&mut form, message, Form::V2);
    let mut current: MessageHash = Sha256::digest(&form).into();
    let mut v1 = current;
    if holds_free_json(message) {
        let mut as_sent = Vec::with_capacity(form.len());
        write_form(&mut as_sent, message, Form::V1);
        if as_sent != form {
            v1 = Sha256::digest(&as_sent).into();
        }
    }
    current[HASH_DIGEST] = VERSION;
    Hashes { current, v1 }
}

#[cfg(test)]
mod tests {
    use baton_protocol::wire::v1;

    use super::*;

    fn hex(hash: MessageHash) -> String {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn of(json: &str) -> Hashes {
        hashes(&v1::read_message(json).unwrap())
    }

    /// Golden: a retry of a message that was stored before an upgrade must find its record after it.
    #[test]
    fn hashes_stay_as_they_are() {
        let plain = of(r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hello"}]}"#);
        let first = Sha256::digest(br#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hello"}]}"#);
        assert_eq!(plain.current[..HASH_DIGEST], first[..HASH_DIGEST], "found under either version");
        assert_eq!(plain.v1, MessageHash::from(first));
        assert_eq!(hex(plain.current), PLAIN);
        let free = of(r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"b":1.0,"a":2}}]}"#);
        let first =
            Sha256::digest(br#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"b":1.0,"a":2}}]}"#);
        assert_eq!(free.v1, MessageHash::from(first));
        assert_eq!(hex(free.current), FREE);
        let canonical = of(r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"a":2,"b":1}}]}"#);
        assert_eq!(canonical.current, free.current);
        assert_eq!(canonical.v1[..HASH_DIGEST], free.current[..HASH_DIGEST]);
    }

    const PLAIN: &str = "8bdfa9be8d268253d60340f419aa60c258ff2c58defbc7afe53569b6833f0c02";
    const FREE: &str = "1bd9091e0bbb1968563132e4289d28b4caa3bcf11609d22e69e67eff8303b702";
}
