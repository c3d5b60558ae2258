//! What a message is known by beside its id: a hash of its content, with the version of how it was made.

use baton_protocol::domain::Message;
use baton_protocol::signature::message_form::{Form, holds_free_json, write_form};
use sha2::{Digest, Sha256};

use crate::store::{HASH_DIGEST, MessageHash};

/// Stored in the last byte of a hash. Hashes of the first version have a byte of their digest there: they came before
/// versions did.
const VERSION: u8 = 2;

/// The hashes a message may be on record under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hashes {
    /// What a record of today says.
    pub(super) now: MessageHash,
    /// What a record of the first version says.
    pub(super) first: MessageHash,
}

/// Of the message as it was sent, its target included. Only free JSON is made canonical; a message that holds none is
/// written and hashed once.
pub(super) fn hashes(message: &Message) -> Hashes {
    let mut form = Vec::with_capacity(512);
    write_form(&mut form, message, Form::V2);
    let mut now: MessageHash = Sha256::digest(&form).into();
    let mut first = now;
    if holds_free_json(message) {
        let mut as_sent = Vec::with_capacity(form.len());
        write_form(&mut as_sent, message, Form::V1);
        if as_sent != form {
            first = Sha256::digest(&as_sent).into();
        }
    }
    now[HASH_DIGEST] = VERSION;
    Hashes { now, first }
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
        assert_eq!(plain.now[..HASH_DIGEST], first[..HASH_DIGEST], "found under either version");
        assert_eq!(plain.first, MessageHash::from(first));
        assert_eq!(hex(plain.now), PLAIN);
        let free = of(r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"b":1.0,"a":2}}]}"#);
        let first =
            Sha256::digest(br#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"b":1.0,"a":2}}]}"#);
        assert_eq!(free.first, MessageHash::from(first));
        assert_eq!(hex(free.now), FREE);
        let canonical = of(r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"a":2,"b":1}}]}"#);
        assert_eq!(canonical.now, free.now);
        assert_eq!(canonical.first[..HASH_DIGEST], free.now[..HASH_DIGEST]);
    }

    const PLAIN: &str = "8bdfa9be8d268253d60340f419aa60c258ff2c58defbc7afe53569b6833f0c02";
    const FREE: &str = "1bd9091e0bbb1968563132e4289d28b4caa3bcf11609d22e69e67eff8303b702";
}
