//! Parameters of every operation in every dialect: what can be read must be written and read again as the same;
//! otherwise the error must be short.

use super::codecs::{DIALECTS, survives, write_call, write_message};
use crate::ErrorKind;
use crate::operation::{Call, FACTS};
use crate::wire::dialect::Dialect;
use crate::wire::{Decoded, v1};

pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for dialect in DIALECTS {
        for facts in &FACTS {
            let decoded = match dialect.decode_call(facts.operation, Some(text)) {
                Ok(decoded) => decoded,
                Err(error) => {
                    assert_ne!(
                        error.kind(),
                        ErrorKind::Internal,
                        "{dialect:?} {:?}: {error}",
                        facts.operation
                    );
                    assert!(error.to_string().len() < 2000, "an error as long as the request");
                    continue;
                }
            };
            assert_eq!(decoded.call.operation(), facts.operation);
            let write = |decoded: &Decoded| write_call(dialect, decoded.tenant.as_deref(), &decoded.call);
            survives(dialect, &decoded, write, |text| dialect.decode_call(facts.operation, Some(text)));
            if let Call::SendMessage(send) = &decoded.call {
                // The log stores messages of every generation as 1.0 JSON.
                let stored = write_message(Dialect::V1, &send.message);
                assert_eq!(
                    v1::read_message(&stored).as_ref().ok(),
                    Some(&send.message),
                    "{dialect:?} {stored}"
                );
            }
        }
    }
}
