//! Error texts quote what peers sent, which may be of any length. Here they are cut: an error must fit into the headers of an
//! answer over gRPC, and must not send a peer's megabytes back.

use std::borrow::Cow;

use super::name::MARK;

/// Longest message, in bytes.
pub(super) const MESSAGE: usize = 1024;
/// Longest name of a member, and longest value of a pair of `ErrorInfo.metadata`. Ids are shorter.
pub(super) const VALUE: usize = 512;
/// Most violations, and most pairs.
pub(super) const ENTRIES: usize = 8;

const ELLIPSIS: &str = "…";

/// The text, or its beginning if it is longer than `most` bytes.
pub(super) fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text;
    }
    let mut text = text.into_owned();
    let mut end = most - ELLIPSIS.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    if text.ends_with(MARK) {
        // A placeholder is two characters.
        text.pop();
    }
    text.push_str(ELLIPSIS);
    text.shrink_to_fit();
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind, Name};
    use crate::operation::Operation;
    use crate::wire::dialect::Dialect;

    #[test]
    fn only_what_is_too_long_is_cut_and_no_character_in_two() {
        for (text, most, expected) in [
            ("as it is", 8, "as it is"),
            ("one too many", 11, "one too …"),
            ("üüüü", 8, "üüüü"),
            ("üüüüü", 8, "üü…"),
            ("abcd\u{F8FF}0 and more", 10, "abcd…"),
        ] {
            assert_eq!(cut(Cow::Borrowed(text), most), expected);
        }
    }

    /// Also if every character of a peer's text is a placeholder, which is longer once it is replaced.
    #[test]
    fn s09_an_error_is_short_whatever_it_quotes() {
        for quoted in [
            "x".repeat(100_000),
            "ü".repeat(100_000),
            Name::Method(Operation::SendMessage).to_string().repeat(50_000),
        ] {
            let mut error = Error::invalid(quoted.clone(), quoted.clone());
            for _ in 0..100 {
                error =
                    error.with_violation(quoted.clone(), quoted.clone()).with_info("quoted", quoted.clone());
            }
            let plain = Error::new(ErrorKind::ParseError, quoted.clone());
            for reader in Dialect::ALL {
                assert!(plain.told(reader).len() <= MESSAGE && error.told(reader).len() <= MESSAGE);
                let violations = error.violations(reader);
                assert_eq!((violations.len(), error.info().len()), (ENTRIES, ENTRIES));
                assert!(
                    violations.iter().all(|it| it.field.len() <= VALUE && it.description.len() <= MESSAGE)
                );
            }
        }
    }
}
