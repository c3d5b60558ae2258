//! The protocol generations, and how a request names its generation.

mod served;

pub use served::Generations;

use crate::error::{Error, ErrorKind};
use crate::operation::Operation;
use crate::wire::{v0_1, v0_3};

/// A protocol generation that Baton supports.
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

    /// `Major.Minor`, as in headers and cards.
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

/// The version that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedVersion {
    /// Absent or empty: the specification says that means 0.3.
    Unsaid,
    Known(Generation),
    /// Anything else, kept for the error message.
    Unknown(String),
}

impl AskedVersion {
    /// Reads the header, or the query parameter if there is no header. The patch number is ignored.
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

/// What a JSON-RPC method and the requested version identify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Generation(Generation, Operation),
    /// 0.1 and 0.3 share the name: the generation in which the task was created decides; 0.3 if it is neither.
    ByBirth(Operation),
}

/// The method determines the generation; the requested version must agree with it, and the agent must serve it.
pub fn of_method(method: &str, asked: &AskedVersion, served: Generations) -> Result<Named, Error> {
    let named = named(method, asked, served)?;
    let (newer, older) = (served.has(Generation::V0_3), served.has(Generation::V0_1));
    match named {
        Named::Generation(generation, _) => served.check(generation).map(|()| named),
        Named::ByBirth(_) if newer && older => Ok(named),
        // If only one of the two is served, it is that one.
        Named::ByBirth(operation) if older => Ok(Named::Generation(Generation::V0_1, operation)),
        Named::ByBirth(operation) => {
            served.check(Generation::V0_3).map(|()| Named::Generation(Generation::V0_3, operation))
        }
    }
}

/// The path gives the generation, and `A2A-Version` must agree with it. A request without a version is refused on a 1.0
/// path, because the specification says that a missing version means 0.3.
pub fn check_path(asked: &AskedVersion, spoken: Generation, served: Generations) -> Result<(), Error> {
    match (asked, spoken) {
        (AskedVersion::Unknown(version), _) => Err(unsupported(version, served)),
        (AskedVersion::Known(Generation::V1), Generation::V1)
        | (AskedVersion::Unsaid | AskedVersion::Known(Generation::V0_3), Generation::V0_3) => {
            served.check(spoken)
        }
        (_, spoken) => {
            served.check(spoken)?;
            let version = spoken.version();
            let message =
                format!("This path is of protocol {version}: send the header `A2A-Version: {version}`");
            Err(Error::new(ErrorKind::VersionNotSupported, message))
        }
    }
}

fn named(method: &str, asked: &AskedVersion, served: Generations) -> Result<Named, Error> {
    if let AskedVersion::Unknown(version) = asked {
        return Err(unsupported(version, served));
    }
    let refused = |spoken: Generation| {
        served.check(spoken)?;
        let said = match asked {
            AskedVersion::Known(said) => format!("but the request says A2A-Version {}", said.version()),
            AskedVersion::Unsaid | AskedVersion::Unknown(_) => {
                "and a request without a version counts as 0.3".to_owned()
            }
        };
        let version = spoken.version();
        let message = format!(
            "{method} is a method of protocol {version}, {said}: send the header `A2A-Version: {version}`"
        );
        Err(Error::new(ErrorKind::VersionNotSupported, message))
    };
    if let Some(operation) = Operation::of_v1_method(method) {
        return match asked {
            AskedVersion::Known(Generation::V1) => Ok(Named::Generation(Generation::V1, operation)),
            _ => refused(Generation::V1),
        };
    }
    let (newer, older) = (v0_3::operation_of(method), v0_1::operation_of(method));
    let spoken = if newer.is_some() { Generation::V0_3 } else { Generation::V0_1 };
    match (newer, older, asked) {
        (None, None, _) => {
            let method: String = method.chars().take(64).collect();
            Err(Error::new(ErrorKind::MethodNotFound, format!("Method not found: {method:?}")))
        }
        (_, _, AskedVersion::Known(Generation::V1)) => refused(spoken),
        (Some(operation), Some(_), AskedVersion::Known(Generation::V0_3)) => {
            Ok(Named::Generation(Generation::V0_3, operation))
        }
        (Some(operation), Some(_), _) => Ok(Named::ByBirth(operation)),
        (Some(operation), None, _) => Ok(Named::Generation(Generation::V0_3, operation)),
        (None, Some(operation), _) => Ok(Named::Generation(Generation::V0_1, operation)),
    }
}

/// The error for a version that this agent does not support.
pub fn unsupported(version: &str, served: Generations) -> Error {
    let version: String = version.chars().take(32).collect();
    let spoken = served.versions();
    let message = format!("A2A-Version {version:?} is not supported; this agent speaks {spoken}");
    Error::new(ErrorKind::VersionNotSupported, message)
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

    #[test]
    fn p07_the_method_tells_the_generation() {
        let named = |generation, operation| Ok(Named::Generation(generation, operation));
        let (v1, v0_3, v0_1) = (Generation::V1, Generation::V0_3, Generation::V0_1);
        let refused = Err(ErrorKind::VersionNotSupported);
        for (method, version, expected) in [
            ("SendMessage", "1.0", named(v1, Operation::SendMessage)),
            ("SendMessage", "", refused),
            ("SendMessage", "0.3", refused),
            ("SendMessage", "2.0", refused),
            ("message/send", "", named(v0_3, Operation::SendMessage)),
            ("message/send", "0.3", named(v0_3, Operation::SendMessage)),
            ("message/send", "1.0", refused),
            ("message/send", "9", refused),
            ("tasks/list", "", named(v0_3, Operation::ListTasks)),
            ("tasks/subscribe", "", named(v0_3, Operation::SubscribeToTask)),
            ("agent/getExtendedCard", "", named(v0_3, Operation::GetExtendedCard)),
            ("tasks/pushNotificationConfig/create", "", named(v0_3, Operation::CreatePushConfig)),
            ("tasks/send", "", named(v0_1, Operation::SendMessage)),
            ("tasks/sendSubscribe", "0.1", named(v0_1, Operation::SendStreamingMessage)),
            ("tasks/pushNotification/set", "", named(v0_1, Operation::CreatePushConfig)),
            ("tasks/get", "", Ok(Named::ByBirth(Operation::GetTask))),
            ("tasks/get", "0.1", Ok(Named::ByBirth(Operation::GetTask))),
            ("tasks/get", "0.3", named(v0_3, Operation::GetTask)),
            ("tasks/cancel", "", Ok(Named::ByBirth(Operation::CancelTask))),
            ("tasks/resubscribe", "", Ok(Named::ByBirth(Operation::SubscribeToTask))),
            ("tasks/get", "1.0", refused),
            ("sendMessage", "1.0", Err(ErrorKind::MethodNotFound)),
            ("rpc.discover", "", Err(ErrorKind::MethodNotFound)),
        ] {
            let got = of_method(method, &AskedVersion::read(Some(version), None), Generations::ALL);
            assert_eq!(got.map_err(|error| error.kind()), expected, "{method} {version}");
        }
    }

    /// A generation that is switched off is refused as an unsupported version, whatever version the request names.
    #[test]
    fn s03_only_what_is_served_is_spoken() {
        let (v1, v0_3, v0_1) = (Generation::V1, Generation::V0_3, Generation::V0_1);
        let refused = Err(ErrorKind::VersionNotSupported);
        let named = |generation, operation| Ok(Named::Generation(generation, operation));
        for (served, method, version, expected) in [
            (&[v1][..], "SendMessage", "1.0", named(v1, Operation::SendMessage)),
            (&[v1], "message/send", "", refused),
            (&[v1], "message/send", "0.3", refused),
            (&[v1], "tasks/send", "", refused),
            (&[v1], "tasks/get", "", refused),
            (&[v1], "tasks/nothing", "", Err(ErrorKind::MethodNotFound)),
            (&[v0_3], "SendMessage", "1.0", refused),
            (&[v0_3], "SendMessage", "", refused),
            (&[v0_3], "message/send", "", named(v0_3, Operation::SendMessage)),
            (&[v0_3], "tasks/send", "", refused),
            (&[v0_3], "tasks/get", "", named(v0_3, Operation::GetTask)),
            (&[v1, v0_1], "tasks/get", "", named(v0_1, Operation::GetTask)),
            (&[v1, v0_1], "tasks/get", "0.3", refused),
            (&[v0_3, v0_1], "tasks/get", "", Ok(Named::ByBirth(Operation::GetTask))),
        ] {
            let asked = AskedVersion::read(Some(version), None);
            let got = of_method(method, &asked, Generations::of(served.iter().copied()));
            assert_eq!(got.map_err(|error| error.kind()), expected, "{served:?} {method} {version}");
        }
    }
}
