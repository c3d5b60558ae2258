//! The settings of the client, one row each: the flag, whether its value is secret, and what holds without it.

/// A setting. Its variable is `A2ACLI_` and the flag in upper snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::enum_variant_names, reason = "the variants are named like the flags")]
pub(crate) enum Key {
    AgentCard,
    Output,
    Async,
    Wait,
    PollInterval,
    Timeout,
    ContextId,
    TaskId,
    Transport,
    GrpcPlaintext,
    A2aVersion,
    Bearer,
    ApiKey,
    User,
    SvcParam,
    Metadata,
    Insecure,
    Ca,
    ClientCert,
    ClientKey,
    TrustOrigin,
    Verbose,
    Debug,
    Config,
}

struct Row {
    key: Key,
    flag: &'static str,
    /// Shown by `config show` if nothing sets it.
    default: Option<&'static str>,
}

/// In the order of the enum.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    row(Key::AgentCard,    "agent-card",    None),
    row(Key::Output,       "output",        Some("text")),
    row(Key::Async,        "async",         Some("false")),
    row(Key::Wait,         "wait",          Some("true for send, false for task get")),
    row(Key::PollInterval, "poll-interval", Some("2s")),
    row(Key::Timeout,      "timeout",       Some("none")),
    row(Key::ContextId,    "context-id",    None),
    row(Key::TaskId,       "task-id",       None),
    row(Key::Transport,    "transport",     Some("the card's order")),
    row(Key::GrpcPlaintext, "grpc-plaintext", Some("false")),
    row(Key::A2aVersion,   "a2a-version",   Some("the highest common one, 1.0 or later")),
    row(Key::Bearer,       "bearer",        None),
    row(Key::ApiKey,       "api-key",       None),
    row(Key::User,         "user",          None),
    row(Key::SvcParam,     "svc-param",     None),
    row(Key::Metadata,     "metadata",      None),
    row(Key::Insecure,     "insecure",      Some("false")),
    row(Key::Ca,           "ca",            None),
    row(Key::ClientCert,   "client-cert",   None),
    row(Key::ClientKey,    "client-key",    None),
    row(Key::TrustOrigin,  "trust-origin",  None),
    row(Key::Verbose,      "verbose",       Some("false")),
    row(Key::Debug,        "debug",         Some("false")),
    row(Key::Config,       "config",        None),
];

const fn row(key: Key, flag: &'static str, default: Option<&'static str>) -> Row {
    Row { key, flag, default }
}

impl Key {
    pub(crate) fn all() -> impl Iterator<Item = Key> {
        TABLE.iter().map(|row| row.key)
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The long flag, without its dashes.
    pub(crate) fn flag(self) -> &'static str {
        self.row().flag
    }

    pub(crate) fn default(self) -> Option<&'static str> {
        self.row().default
    }

    pub(crate) fn variable(self) -> String {
        format!("{PREFIX}{}", self.flag().replace('-', "_").to_ascii_uppercase())
    }

    pub(crate) fn is_secret(self) -> bool {
        matches!(self, Self::Bearer | Self::ApiKey | Self::User | Self::SvcParam)
    }
}

/// Of every variable of the client, also in files.
pub(crate) const PREFIX: &str = "A2ACLI_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.key as usize, at, "{}", row.flag);
        }
    }

    #[test]
    fn variables_follow_one_rule() {
        assert_eq!(Key::AgentCard.variable(), "A2ACLI_AGENT_CARD");
        assert_eq!(Key::A2aVersion.variable(), "A2ACLI_A2A_VERSION");
    }
}
