//! Errors: an envelope on stdout for programs, fields on stderr for people.

use std::io::{self, Write as _};

use serde::Serialize;

use super::json;
use super::text::Section;
use crate::client::error::CallError;
use crate::client::settings::Format;

/// Writes the error where it belongs. `lines`: on one line, as the last of JSON Lines. `same_agent`: what a command in the
/// hint needs to call the same agent.
pub(crate) fn report(error: &CallError, format: Format, lines: bool, same_agent: &str) {
    // If the stream is closed, there is nowhere to write.
    let _ = match format {
        Format::Text => write!(io::stderr(), "{}", text(error, same_agent)),
        Format::Json => {
            let envelope = envelope(error, same_agent);
            let written = if lines { json::compact(&envelope) } else { json::pretty(&envelope) };
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{written}").and_then(|()| stdout.flush())
        }
    };
}

/// The members in the order of the specification.
#[derive(Serialize)]
struct Envelope<'a> {
    error: Members<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    a2a_code: Option<i64>,
}

fn envelope(error: &CallError, same_agent: &str) -> String {
    let CallError { code, message, hint, binding_code, is_answer: _ } = error;
    let hint = hint.as_ref().map(|hint| hint.text(same_agent));
    let members = Members { code: code.as_str(), message, hint: hint.as_deref(), a2a_code: *binding_code };
    // Texts and numbers can always be written.
    serde_json::to_string(&Envelope { error: members }).unwrap_or_default()
}

fn text(error: &CallError, same_agent: &str) -> String {
    let mut section = Section::default();
    section.field("Error", error.code.as_str());
    section.field("Message", &error.message);
    section.optional("Code", error.binding_code.as_ref().map(ToString::to_string));
    section.optional("Hint", error.hint.as_ref().map(|hint| hint.text(same_agent)));
    section.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::error::{Code, Hint};

    #[test]
    fn cli_out_004_envelope_and_text() {
        let mut error =
            CallError::new(Code::Protocol("TaskNotFoundError".to_owned()), "no task\nState: x\x1b[2J");
        error.binding_code = Some(-32001);
        error.hint = Some(Box::new(Hint::Command("task list", String::new())));
        let expected = r#"{"error":{"code":"TaskNotFoundError","message":"no task\nState: x\u001b[2J","hint":"baton task list -a h.example","a2aCode":-32001}}"#;
        assert_eq!(envelope(&error, "-a h.example"), expected);
        assert_eq!(
            text(&error, ""),
            "Error: TaskNotFoundError\nCode: -32001\nHint: baton task list\nMessage:\n  no task\n  State: x\\u{1b}[2J\n\n"
        );
        let plain = CallError::usage("no agent");
        assert_eq!(
            envelope(&plain, ""),
            r#"{"error":{"code":"A2ACLI_ERR_USAGE","message":"no agent","hint":null,"a2aCode":null}}"#
        );
        assert_eq!(text(&plain, ""), "Error: A2ACLI_ERR_USAGE\nMessage: no agent\n");
    }
}
