//! The protocol generations, and how a request names the one it speaks.

/// A protocol generation Baton knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// Legacy: `tasks/send`.
    V0_1,
    /// `message/send`.
    V0_3,
    /// `SendMessage`.
    V1,
}

impl Generation {
    /// Stable number used in stores.
    pub fn number(self) -> u8 {
        match self {
            Self::V0_1 => 1,
            Self::V0_3 => 3,
            Self::V1 => 10,
        }
    }

    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::V0_1),
            3 => Some(Self::V0_3),
            10 => Some(Self::V1),
            _ => None,
        }
    }

    /// `Major.Minor` as headers and cards spell it.
    pub fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
            Self::V0_3 => "0.3",
            Self::V1 => "1.0",
        }
    }
}

/// Header and query parameter that carry the version.
pub const VERSION_HEADER: &str = "a2a-version";

/// What a request said about its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedVersion {
    /// Absent or empty: by rule that means 0.3.
    Unsaid,
    Known(Generation),
    /// Anything else, kept for the error message.
    Unknown(String),
}

impl AskedVersion {
    /// Reads the header, or the query parameter when there is no header. The patch number is ignored.
    pub fn read(header: Option<&str>, query: Option<&str>) -> Self {
        let header = header.map(str::trim).filter(|value| !value.is_empty());
        let query = query.map(str::trim).filter(|value| !value.is_empty());
        let Some(said) = header.or(query) else { return Self::Unsaid };
        let mut numbers = said.split('.');
        let major_minor = (numbers.next(), numbers.next(), numbers.next(), numbers.next());
        let number =
            |text: &str| !text.is_empty() && text.len() < 6 && text.bytes().all(|b| b.is_ascii_digit());
        match major_minor {
            (Some(major), Some(minor), patch, None) if patch.is_none_or(number) => match (major, minor) {
                ("1", "0") => Self::Known(Generation::V1),
                ("0", "3" | "2") => Self::Known(Generation::V0_3),
                ("0", "1") => Self::Known(Generation::V0_1),
                _ => Self::Unknown(said.to_owned()),
            },
            _ => Self::Unknown(said.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p07_version_header_and_query_parameter() {
        let v1 = AskedVersion::Known(Generation::V1);
        let v0_3 = AskedVersion::Known(Generation::V0_3);
        let unknown = |text: &str| AskedVersion::Unknown(text.to_owned());
        for (header, query, expected) in [
            (None, None, AskedVersion::Unsaid),
            (Some(""), None, AskedVersion::Unsaid),
            (Some("  "), Some(""), AskedVersion::Unsaid),
            (Some("1.0"), None, v1.clone()),
            (Some(" 1.0 "), None, v1.clone()),
            (Some("1.0.1"), None, v1.clone()),
            (None, Some("1.0"), v1.clone()),
            (Some("0.3"), Some("1.0"), v0_3.clone()),
            (Some("0.3.0"), None, v0_3),
            (Some("0.1"), None, AskedVersion::Known(Generation::V0_1)),
            (Some("1"), None, unknown("1")),
            (Some("1.5"), None, unknown("1.5")),
            (Some("2.0"), None, unknown("2.0")),
            (Some("1.0.x"), None, unknown("1.0.x")),
            (Some("1.0.0.0"), None, unknown("1.0.0.0")),
            (Some("one"), None, unknown("one")),
            (Some("01.0"), None, unknown("01.0")),
        ] {
            assert_eq!(AskedVersion::read(header, query), expected, "{header:?} {query:?}");
        }
    }
}
