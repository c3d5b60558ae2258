//! Identifiers. Each is a cheap-to-clone string with a type of its own, so that a context id can
//! never be passed where a task id is meant.

use std::fmt;
use std::sync::Arc;

/// Longest identifier accepted from a peer, in bytes. Ids are keys in every store.
pub const MAX_ID_BYTES: usize = 256;

/// Why a string is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// It is empty.
    #[error("must not be empty")]
    Empty,
    /// It is too long for a store's key.
    #[error("is longer than {MAX_ID_BYTES} bytes")]
    TooLong,
    /// It would break a log or a header.
    #[error("holds a control character")]
    Control,
}

fn check(text: &str) -> Result<(), BadId> {
    if text.is_empty() {
        Err(BadId::Empty)
    } else if text.len() > MAX_ID_BYTES {
        Err(BadId::TooLong)
    } else if !is_plain_ascii(text) && text.chars().any(char::is_control) {
        // Ids are written to logs, headers and SQL tools, where control characters could do harm.
        Err(BadId::Control)
    } else {
        Ok(())
    }
}

/// Fast check: true for nearly every id, and the compiler vectorizes it.
fn is_plain_ascii(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & (b' '..0x7f).contains(&byte))
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a string that came from outside.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                check(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_type! {
    /// Names a task; unique within its [`Scope`](super::Scope) only.
    TaskId
}
id_type! {
    /// Groups the tasks of one conversation.
    ContextId
}
id_type! {
    /// Made by the message's author; with the scope it is the idempotency key.
    MessageId
}
id_type! {
    /// Unique within its task.
    ArtifactId
}
id_type! {
    /// Names one webhook of a task.
    PushConfigId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_bounded_and_printable() {
        let long = "x".repeat(MAX_ID_BYTES + 1);
        for (text, expected) in [
            ("t-1", Ok(())),
            ("a:b/c%20", Ok(())),
            ("ünï", Ok(())),
            ("", Err(BadId::Empty)),
            (long.as_str(), Err(BadId::TooLong)),
            ("a\nb", Err(BadId::Control)),
            ("a\0", Err(BadId::Control)),
            ("a\u{85}", Err(BadId::Control)),
        ] {
            assert_eq!(TaskId::parse(text).map(|_| ()), expected, "{text:?}");
        }
    }
}
