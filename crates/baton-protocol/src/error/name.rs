//! Names in error texts that differ between generations.
//!
//! A [`Name`] is formatted into a text as a placeholder; the codec that writes the error replaces it with the reader's
//! name. So an error text never shows a reader the name of another generation.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use crate::operation::{FACTS, Operation};
use crate::wire::dialect::Dialect;
use crate::wire::spelling::{self, Member};

/// Begins a placeholder; one character follows. It is from Unicode's private use area; if a peer's text contains it, a
/// harmless name is inserted.
pub(super) const MARK: char = '\u{F8FF}';

/// The first of the characters that may follow.
const FIRST: u32 = '0' as u32;

/// Something in a request that an error text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// The method of an operation.
    Method(Operation),
    /// A member, value or header whose name depends on the generation.
    Member(Member),
}

impl Name {
    /// All names.
    pub fn all() -> impl Iterator<Item = Self> {
        let methods = FACTS.iter().map(|facts| Self::Method(facts.operation));
        methods.chain(Member::ALL.into_iter().map(Self::Member))
    }

    /// The name in the reader's dialect.
    pub fn spelled(self, reader: Dialect) -> &'static str {
        match self {
            Self::Method(operation) => spelling::method(operation, reader),
            Self::Member(member) => spelling::member(member, reader),
        }
    }

    fn number(self) -> usize {
        match self {
            Self::Method(operation) => operation as usize,
            Self::Member(member) => FACTS.len() + member as usize,
        }
    }
}

/// Writes the placeholder, which `spelled` replaces.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char(MARK)?;
        f.write_char(char::from_u32(FIRST + self.number() as u32).unwrap_or(MARK))
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.to_string()
    }
}

/// A text with its placeholders replaced by the reader's names.
pub(super) fn spelled(text: &str, reader: Dialect) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split(MARK);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let mut characters = piece.chars();
        let number = characters.next().and_then(|it| (it as u32).checked_sub(FIRST));
        match number.and_then(|number| Name::all().nth(number as usize)) {
            Some(name) => out.push_str(name.spelled(reader)),
            // The character came from a peer's text.
            None => out.extend(piece.chars().next()),
        }
        out.push_str(characters.as_str());
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind, TABLE};

    const READERS: [Dialect; 4] = [Dialect::V1, Dialect::V0_3, Dialect::V0_3Rest, Dialect::V0_1];

    #[test]
    fn names_are_numbered_in_their_order() {
        for (number, name) in Name::all().enumerate() {
            assert_eq!(name.number(), number, "{name:?}");
            let text = format!("use {name}, or not");
            for reader in READERS {
                assert_eq!(spelled(&text, reader), format!("use {}, or not", name.spelled(reader)));
            }
        }
    }

    #[test]
    fn a_peers_own_marks_do_no_harm() {
        for text in ["\u{F8FF}", "a\u{F8FF}", "\u{F8FF}\u{F8FF}", "\u{F8FF} b", "\u{F8FF}\u{1F600}c"] {
            assert!(!spelled(text, Dialect::V1).contains(MARK));
        }
        assert_eq!(spelled("\u{F8FF}\u{1F600}c", Dialect::V0_1), "\u{1F600}c");
    }

    /// The table's messages go to readers of all generations, so they contain no name of a single one.
    #[test]
    fn standard_messages_name_nothing_of_one_generation() {
        for row in TABLE {
            for name in Name::all() {
                let spellings = READERS.map(|reader| name.spelled(reader));
                if spellings.iter().any(|spelling| *spelling != spellings[0]) {
                    for spelling in spellings {
                        let words = row.message.split(|it: char| !it.is_ascii_alphanumeric() && it != '/');
                        assert!(words.into_iter().all(|word| word != spelling), "{:?}: {spelling}", row.kind);
                    }
                }
            }
        }
    }

    #[test]
    fn s08_an_error_speaks_to_each_reader_in_its_names() {
        let error = Error::invalid(
            Name::Member(Member::ContextId),
            format!(
                "is not that of {}; see {}",
                Name::Member(Member::TaskId),
                Name::Method(Operation::GetTask)
            ),
        );
        assert_eq!(error.kind(), ErrorKind::InvalidParams);
        for (reader, expected) in [
            (Dialect::V1, "message.contextId is not that of message.taskId; see GetTask"),
            (Dialect::V0_3, "message.contextId is not that of message.taskId; see tasks/get"),
            (Dialect::V0_1, "sessionId is not that of id; see tasks/get"),
        ] {
            assert_eq!(error.told(reader), format!("Invalid parameters: {expected}"));
            let violation = &error.violations(reader)[0];
            assert_eq!(format!("{} {}", violation.field, violation.description), expected);
        }
        assert_eq!(error.to_string(), error.told(Dialect::V1));
    }
}
