//! Why a client command failed: the code, the words for people, and the exit status that belongs to the code.
//!
//! A condition that the protocol names keeps the protocol's name. The client's own conditions have the eight codes of the
//! CLI specification, and there are no others.

/// Shown in hints and in the commands to go on with.
pub(crate) const PROGRAM: &str = "baton";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Code {
    Usage,
    CardNotFound,
    CardInvalid,
    Unreachable,
    CredentialsMissing,
    AuthFailed,
    Timeout,
    Internal,
    /// An error that the protocol names, such as `TaskNotFoundError`.
    Protocol(String),
}

impl Code {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Usage => "A2ACLI_ERR_USAGE",
            Self::CardNotFound => "A2ACLI_ERR_CARD_NOT_FOUND",
            Self::CardInvalid => "A2ACLI_ERR_CARD_INVALID",
            Self::Unreachable => "A2ACLI_ERR_UNREACHABLE",
            Self::CredentialsMissing => "A2ACLI_ERR_CREDENTIALS_MISSING",
            Self::AuthFailed => "A2ACLI_ERR_AUTH_FAILED",
            Self::Timeout => "A2ACLI_ERR_TIMEOUT",
            Self::Internal => "A2ACLI_ERR_INTERNAL",
            Self::Protocol(name) => name,
        }
    }

    /// 1 unless there is a finer status.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::CardNotFound | Self::Unreachable => 3,
            Self::CredentialsMissing | Self::AuthFailed => 4,
            Self::Timeout => 5,
            Self::CardInvalid | Self::Internal | Self::Protocol(_) => 1,
        }
    }
}

/// A short next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    Words(String),
    /// A command for the same agent: its name, such as `task list`, and what stands behind the agent.
    Command(&'static str, String),
    /// Words, or a command instead.
    Either(String, &'static str, String),
}

impl Hint {
    /// `same_agent` is what must be typed to call the same agent again.
    pub(crate) fn text(&self, same_agent: &str) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Command(name, rest) => command(name, same_agent, rest),
            Self::Either(words, name, rest) => format!("{words}, or {}", command(name, same_agent, rest)),
        }
    }
}

/// A command line that can be copied: the empty parts are left out.
pub(crate) fn command(name: &str, same_agent: &str, rest: &str) -> String {
    let words = [PROGRAM, name, same_agent, rest].into_iter().filter(|words| !words.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// A failed client command.
#[derive(Debug, Clone)]
pub(crate) struct CallError {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// In a box, because most results are no errors and should be small.
    pub(crate) hint: Option<Box<Hint>>,
    /// The number that the binding has for an error of the agent: JSON-RPC code, gRPC status, HTTP status.
    pub(crate) binding_code: Option<i64>,
    /// The agent answered with it; otherwise something failed on the way.
    pub(crate) is_answer: bool,
}

impl CallError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        CallError { code, message: message.into(), hint: None, binding_code: None, is_answer: false }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(Box::new(Hint::Words(hint.into())));
        self
    }

    /// A command that helps.
    pub(crate) fn with_command(mut self, name: &'static str, rest: impl Into<String>) -> Self {
        self.hint = Some(Box::new(Hint::Command(name, rest.into())));
        self
    }

    /// What usually helps, unless the error has a hint already.
    pub(crate) fn with_usual_hint(self) -> Self {
        let words = |words: &str| Hint::Words(words.to_owned());
        let command = |name| Hint::Command(name, String::new());
        let hint = match &self.code {
            Code::Unreachable => {
                words("check that the agent runs and that the address is right; --debug tells more")
            }
            Code::CardNotFound => words("check the address, or name the address of the card itself"),
            Code::CardInvalid => Hint::Command("card get", "--validate".to_owned()),
            Code::AuthFailed => words("check the credential, and whether the agent lets it do this"),
            Code::Protocol(name) => match name.as_str() {
                "TaskNotFoundError" => command("task list"),
                "UnsupportedOperationError" | "ContentTypeNotSupportedError" => command("card get"),
                _ => words("--debug shows what was exchanged"),
            },
            Code::Internal | Code::Timeout => words("--debug shows what was exchanged"),
            Code::Usage | Code::CredentialsMissing => return self,
        };
        self.or_hint(|| hint)
    }

    /// The hint, unless there is one.
    pub(crate) fn or_hint(mut self, hint: impl FnOnce() -> Hint) -> Self {
        self.hint.get_or_insert_with(|| Box::new(hint()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_exit_001_statuses_agree_with_the_codes() {
        for (code, name, status) in [
            (Code::Usage, "A2ACLI_ERR_USAGE", 2),
            (Code::CardNotFound, "A2ACLI_ERR_CARD_NOT_FOUND", 3),
            (Code::CardInvalid, "A2ACLI_ERR_CARD_INVALID", 1),
            (Code::Unreachable, "A2ACLI_ERR_UNREACHABLE", 3),
            (Code::CredentialsMissing, "A2ACLI_ERR_CREDENTIALS_MISSING", 4),
            (Code::AuthFailed, "A2ACLI_ERR_AUTH_FAILED", 4),
            (Code::Timeout, "A2ACLI_ERR_TIMEOUT", 5),
            (Code::Internal, "A2ACLI_ERR_INTERNAL", 1),
            (Code::Protocol("TaskNotFoundError".to_owned()), "TaskNotFoundError", 1),
        ] {
            assert_eq!((code.as_str(), code.exit_status()), (name, status));
        }
    }
}
