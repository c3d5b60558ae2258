//! Runs the client's command once per script, with a deadline, and ends all its processes.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::time::{Duration, Instant};

use baton_lab::judge::{Play, Ran};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

/// How much of its output is kept; the rest is read and dropped, so that the command does not block.
const MOST_OUTPUT: usize = 256 * 1024;
/// How long the pipes are read after the command has exited: a child of it may still hold them open.
const PIPES_CLOSE: Duration = Duration::from_secs(2);

pub(super) struct Client<'a> {
    pub(super) command: &'a [OsString],
    pub(super) timeout: Duration,
}

impl Client<'_> {
    /// The command must not be empty.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.command.first() {
            Some(program) if !program.is_empty() => Ok(()),
            _ => Err("the command is missing: baton test --as-server -- ./client {url}".to_owned()),
        }
    }

    pub(super) async fn run(&self, play: &Play) -> Result<Ran, String> {
        let words = words(play);
        let mut args = self.command.iter().map(|arg| filled(arg, &words));
        let program = args.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (name, value) in &words {
            command.env(format!("A2A_{}", name.to_uppercase()), value);
        }
        if let Some((credential, secret)) = &play.secret {
            command.env(super::variable(*credential), secret);
        }
        // A process group of its own, so that everything it starts can be ended with it.
        #[cfg(unix)]
        command.process_group(0);
        let began = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{} cannot be run: {error}", program.to_string_lossy()))?;
        let out = tokio::spawn(kept(child.stdout.take()));
        let err = tokio::spawn(kept(child.stderr.take()));
        let ended = tokio::time::timeout(self.timeout, child.wait()).await;
        let hung = ended.is_err();
        let code = ended.ok().and_then(Result::ok).and_then(|status| status.code());
        let duration = began.elapsed();
        end(&mut child).await;
        let text = async |task: tokio::task::JoinHandle<String>| {
            tokio::time::timeout(PIPES_CLOSE, task).await.ok().and_then(Result::ok).unwrap_or_default()
        };
        Ok(Ran { code, hung, stdout: text(out).await, stderr: text(err).await, duration })
    }
}

/// The values for a command's arguments (`{url}`) and environment (`A2A_URL`).
fn words(play: &Play) -> Vec<(&'static str, String)> {
    let card = match play.variant.generation {
        baton_lab::generation::Generation::V0_1 => "agent.json",
        _ => "agent-card.json",
    };
    vec![
        ("url", play.url.clone()),
        ("card_url", format!("{}/.well-known/{card}", play.url)),
        ("do", play.script.does.word().to_owned()),
        ("script", play.script.name.to_owned()),
        ("generation", play.variant.generation.to_string()),
        ("binding", play.variant.binding.to_string()),
    ]
}

fn filled(arg: &OsStr, words: &[(&'static str, String)]) -> OsString {
    // Placeholders are replaced only in arguments that are valid UTF-8.
    let Some(text) = arg.to_str() else { return arg.to_owned() };
    let mut text = text.to_owned();
    for (name, value) in words {
        text = text.replace(&format!("{{{name}}}"), value);
        if *name == "card_url" {
            text = text.replace("{card}", value);
        }
    }
    text.into()
}

async fn kept(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let (mut all, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let room = MOST_OUTPUT.saturating_sub(all.len());
        all.extend_from_slice(&chunk[..count.min(room)]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Ends the command and all processes it started.
async fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) =
        child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
    {
        // It may have exited by itself meanwhile.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill().await;
}

pub(super) fn in_words(ran: &Ran) -> String {
    let seconds = ran.duration.as_secs_f32();
    match (ran.hung, ran.code) {
        (true, _) => format!("did not end in {seconds:.0} s"),
        (false, Some(code)) => format!("exit {code} in {seconds:.1} s"),
        (false, None) => format!("ended by a signal after {seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_filled_in() {
        let words = [("url", "http://h/a".to_owned()), ("card_url", "http://h/c".to_owned())];
        let filled = |text: &str| super::filled(OsStr::new(text), &words);
        assert_eq!(filled("{url}/x"), "http://h/a/x");
        assert_eq!(filled("--card={card}"), "--card=http://h/c");
        assert_eq!(filled("{unknown} {"), "{unknown} {");
    }
}
