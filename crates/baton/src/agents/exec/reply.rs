//! A program that answers a message with a message: it runs to its end, and its output is the answer.

use baton_protocol::domain::{Part, PartContent};
use baton_server::{AgentError, Asked};
use tokio::io::AsyncReadExt as _;

use super::feed::Feed;
use super::lines::Lines;
use super::process::{Ended, Process};
use super::says::{self, Says};
use super::stderr::StderrLog;
use super::text::Decoder;
use super::turn::Break;
use super::{ExecOptions, Input, Output, Program, ending, input, shortage};

/// Dropping this ends the program: the engine does so when the answer takes too long.
pub(super) async fn reply(program: &Program, asked: Asked) -> Result<Vec<Part>, AgentError> {
    let options = &program.options;
    let first = match options.input {
        Input::Json => input::message_line(&options.skill, &asked),
        Input::Text => input::text(&asked.message).map_err(AgentError::new)?,
    };
    let environment = program.environment.for_message(
        &options.skill,
        &asked.context_id,
        &asked.accepted_output_modes,
        asked.trace.as_ref(),
    );
    let started = shortage::start(options, &environment, &program.shortage).await;
    let mut process = started.map_err(|error| {
        tracing::error!(target: "exec", { context.id = %asked.context_id, %error }, "a guard could not be started");
        AgentError::new(format!("its program could not be started: {error}"))
    })?;
    let mut complaints =
        StderrLog::keep(process.stderr.take(), None, &asked.context_id, options.stderr_lines);
    let mut feed = Feed::new(process.stdin.take(), first, false);
    let hearing = hear_out(&mut process, &mut feed, options.max_output_bytes);
    let heard = match options.timeout {
        Some(most) => tokio::time::timeout(most, hearing).await.unwrap_or_else(|_| {
            Err(Break::Failed(format!("The agent's program took longer than {} s", most.as_secs_f64())))
        }),
        None => hearing.await,
    };
    let output = match heard {
        Ok(output) => output,
        Err(Break::Failed(reason)) => {
            process.end().await;
            return Err(AgentError::new(reason));
        }
        Err(Break::Stopped) => return Err(AgentError::new("The agent's program was stopped")),
    };
    let ended = process.ended().await;
    let last_lines = complaints.last_lines().await;
    let judged = ending::judge(ended, options.show_stderr.then_some(&last_lines));
    match said(options, &output) {
        // The program's own message is better than one made from its exit code.
        Ok(Some(parts)) if ended == Ended::Exited(0) => Ok(parts),
        Err(reason) => Err(AgentError::new(reason)),
        _ => {
            judged.map_err(AgentError::new)?;
            Err(AgentError::new("The agent's program ended without an answer"))
        }
    }
}

async fn hear_out(process: &mut Process, feed: &mut Feed, most: usize) -> Result<Vec<u8>, Break> {
    let (mut output, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        tokio::select! {
            () = feed.write(), if feed.has_work() => {}
            read = process.stdout.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return Ok(output),
                Ok(count) if output.len() + count > most => {
                    return Err(Break::Failed(format!("The agent's program wrote more than {most} bytes")));
                }
                Ok(count) => output.extend_from_slice(&buffer[..count]),
            },
        }
    }
}

/// The answer in the program's output, if there is one.
fn said(options: &ExecOptions, output: &[u8]) -> Result<Option<Vec<Part>>, String> {
    if options.output == Output::Text {
        let mut decoder = Decoder::default();
        let text = decoder.decode(output) + decoder.finish();
        // Programs end their output with a line break; it is not part of the answer.
        let text = text.trim_end_matches(['\n', '\r']);
        return Ok((!text.is_empty()).then(|| vec![Part::text(text)]));
    }
    let invalid = |what: String| format!("The agent's program gave an invalid response: {what}");
    let mut lines = Lines::new(options.max_line_bytes);
    let mut whole = lines.cut(output).map_err(|bad| invalid(bad.to_string()))?;
    whole.extend(lines.finish().map_err(|bad| invalid(bad.to_string()))?);
    for (number, line) in whole {
        match says::read(&line).map_err(|reason| invalid(format!("line {number} {reason}")))? {
            Says::Complete(parts) => return Ok(Some(parts)),
            Says::Fail(parts) | Says::Reject(parts) => return Err(text_of(&parts)),
            // Without a task there is no progress to report.
            Says::Progress(_) => {}
            Says::Artifact(_) | Says::InputRequired(_) | Says::AuthRequired(_) => {
                let rule = "an agent that replies with messages has no tasks: say message, fail or reject";
                return Err(invalid(format!("line {number}: {rule}")));
            }
        }
    }
    Ok(None)
}

fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_in_both_kinds_of_output() {
        let text = ExecOptions::default();
        let jsonl = ExecOptions { output: Output::Jsonl, ..ExecOptions::default() };
        let answer = |text: &str| Ok(Some(vec![Part::text(text)]));
        assert_eq!(said(&text, "é\nb\r\n\n".as_bytes()), answer("é\nb"));
        assert_eq!(said(&text, b"\n"), Ok(None));
        assert_eq!(said(&jsonl, b"{\"progress\":\"a\"}\n{\"message\":\"b\"}\n"), answer("b"));
        assert_eq!(said(&jsonl, b"{\"message\":\"b\"}"), answer("b"));
        assert_eq!(said(&jsonl, b""), Ok(None));
        for (line, reason) in [
            ("{\"fail\":\"no\"}", "no"),
            ("{\"reject\":\"never\"}", "never"),
            ("{\"inputRequired\":\"who?\"}", "say message, fail or reject"),
            ("hello", "line 1 is not JSON"),
        ] {
            let refused = said(&jsonl, line.as_bytes()).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
