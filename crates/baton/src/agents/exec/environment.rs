//! The program's environment: the few variables of the server that programs need, and those that are configured. The
//! rest of the server's environment may hold secrets, which a program that prints its environment must not reveal.

use std::ffi::{OsStr, OsString};

use baton_protocol::domain::{ContextId, TraceContext};
use baton_server::Turn;

/// Copied from the server's environment if set, like every `LC_…`.
const TAKEN_OVER: &[&str] =
    &["PATH", "HOME", "LANG", "LANGUAGE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Python buffers 8 KiB when it prints into a pipe; without this, streamed output would arrive at the end.
const UNBUFFERED: (&str, &str) = ("PYTHONUNBUFFERED", "1");

#[derive(Debug, Clone)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub(super) fn of_server(configured: &[(String, String)]) -> Self {
        Self::of(std::env::vars_os(), configured)
    }

    fn of(server: impl Iterator<Item = (OsString, OsString)>, configured: &[(String, String)]) -> Self {
        let mut environment = Environment(vec![(UNBUFFERED.0.into(), UNBUFFERED.1.into())]);
        environment.0.extend(server.filter(|(name, _)| is_taken_over(name)));
        for (name, value) in configured {
            environment.set(name, value);
        }
        environment
    }

    /// The `PATH` on which programs are searched.
    pub(super) fn path(&self) -> Option<&OsStr> {
        self.0.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
    }

    pub(super) fn for_turn(&self, skill: &str, turn: &Turn) -> Vec<(OsString, OsString)> {
        let modes = turn.accepted_output_modes();
        let mut environment = self.for_message(skill, turn.context_id(), modes, turn.trace());
        environment.push(("BATON_TASK_ID".into(), turn.task_id().as_str().into()));
        environment.push(("BATON_ATTEMPT".into(), turn.attempt().to_string().into()));
        environment
    }

    pub(super) fn for_message(
        &self,
        skill: &str,
        context: &ContextId,
        accepted: &[String],
        trace: Option<&TraceContext>,
    ) -> Vec<(OsString, OsString)> {
        let mut environment = self.clone();
        environment.set("BATON_CONTEXT_ID", context.as_str());
        environment.set("BATON_SKILL", skill);
        let accepted = accepted_modes(accepted);
        if !accepted.is_empty() {
            environment.set("BATON_ACCEPTED_OUTPUT_MODES", &accepted);
        }
        // The usual names of these variables.
        if let Some(trace) = trace {
            environment.set("TRACEPARENT", trace.parent());
            environment.0.extend(trace.state().map(|state| ("TRACESTATE".into(), state.into())));
        }
        environment.0
    }

    fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.into(), value.into()));
    }
}

/// One list with commas. Callers may send any text; a variable cannot contain NUL, and its length is limited.
fn accepted_modes(modes: &[String]) -> String {
    const MOST: usize = 4096;
    let plain = |mode: &&String| mode.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    let mut list = String::new();
    for mode in modes.iter().filter(plain) {
        if list.len() + mode.len() < MOST {
            let comma = if list.is_empty() { "" } else { "," };
            list.extend([comma, mode]);
        }
    }
    list
}

fn is_taken_over(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| TAKEN_OVER.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_or_configured_is_passed_on() {
        let server = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("API_KEY", "secret"),
            ("BATON_STORE", "secret"),
            ("TZ", "UTC"),
        ];
        let server = server.into_iter().map(|(name, value)| (name.into(), value.into()));
        let configured =
            [("TZ", "CET"), ("MODEL", "small")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = Environment::of(server, &configured);
        assert_eq!(environment.path(), Some(OsStr::new("/bin")));
        let context = ContextId::parse("c").unwrap();
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = TraceContext::parse(parent, Some("vendor=1"));
        let accepted = ["text/plain", "a\0b", "x,y", "image/*"].map(str::to_owned);
        let mut seen: Vec<String> = environment
            .for_message("greet", &context, &accepted, trace.as_ref())
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        seen.sort();
        assert_eq!(
            seen,
            [
                "BATON_ACCEPTED_OUTPUT_MODES=text/plain,image/*",
                "BATON_CONTEXT_ID=c",
                "BATON_SKILL=greet",
                "LC_ALL=C",
                "MODEL=small",
                "PATH=/bin",
                "PYTHONUNBUFFERED=1",
                &format!("TRACEPARENT={parent}"),
                "TRACESTATE=vendor=1",
                "TZ=CET"
            ]
        );
    }
}
