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

/// A failed client command.
#[derive(Debug, Clone)]
pub(crate) struct CallError {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// A short next step, if possible a command.
    pub(crate) hint: Option<String>,
    /// The number that the binding has for an error of the agent: JSON-RPC code, HTTP status.
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
        self.hint = Some(hint.into());
        self
    }

    /// What usually helps, unless the error has a hint already.
    pub(crate) fn with_usual_hint(self) -> Self {
        let hint = match &self.code {
            Code::Unreachable => {
                "check that the agent runs and that the address is right; --debug tells more"
            }
            Code::CardNotFound => "check the address, or name the address of the card itself",
            Code::CardInvalid => "baton card get --validate",
            Code::AuthFailed => "check the credential, and whether the agent lets it do this",
            Code::Protocol(name) => match name.as_str() {
                "TaskNotFoundError" => "baton task list",
                "TaskNotCancelableError" => "baton task get shows the state of the task",
                "UnsupportedOperationError" | "ContentTypeNotSupportedError" => {
                    "baton card get shows what the agent offers"
                }
                _ => "--debug shows what was exchanged",
            },
            Code::Internal => "--debug shows what was exchanged",
            Code::Usage | Code::CredentialsMissing | Code::Timeout => return self,
        };
        self.or_hint(|| hint.to_owned())
    }

    /// The hint, unless there is one.
    pub(crate) fn or_hint(mut self, hint: impl FnOnce() -> String) -> Self {
        self.hint.get_or_insert_with(hint);
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
