//! Tasks that wait for input or for authentication.

use serde_json::Value;

use super::talk::{Next, SOON, Say, filled, has_ended, last_state, state};
use crate::acts::stream::{inner, is_terminal, state_of};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.interrupted.stream" => stream,
    "v1.interrupted.auth-stream" => auth_stream,
    "v1.interrupted.auth" => auth,
    "v1.interrupted.auth-answer" => auth_answer,
    "v1.interrupted.follow-up-at-once" => follow_up_at_once,
};

async fn stream(bench: &Bench) -> Done {
    through(bench, "tck-input-required", "INPUT_REQUIRED").await
}

async fn auth_stream(bench: &Bench) -> Done {
    through(bench, "tck-auth-required", "AUTH_REQUIRED").await
}

/// The stream must show the question. Sections of the specification disagree on whether it closes then: both are
/// accepted, but a stream that stays open must show what follows the answer, and close at the end.
async fn through(bench: &Bench, prefix: &str, wanted: &str) -> Done {
    let mut watch = bench.send_stream(&Say::text(prefix)).await?;
    let what = format!("{wanted} on the stream");
    let seen = watch.until(&what, |event| state_of(event).as_deref() == Some(wanted)).await?;
    let task = seen.first().map(|first| inner(first).clone()).unwrap_or_default();
    let early = watch.within(SOON / 50).await?;
    let after = bench.task(&Say::text("an answer").to(&task)).await?;
    match early {
        Next::Closed => {
            bench.note(format!("the stream closes at {wanted}, which is allowed"));
            Ok(())
        }
        Next::Event(_) | Next::Quiet => {
            if !has_ended(&after) {
                bench.clean_up(&task).await;
            }
            let rest = watch.rest().await?;
            match last_state(&rest) {
                state if is_terminal(&state) => Ok(()),
                other => Err(differs("the stream to go on to the task's end", other)),
            }
        }
    }
}

async fn auth(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-auth-required")).await?;
    if state(&task) != "AUTH_REQUIRED" {
        return Err(differs("a task in AUTH_REQUIRED", state(&task)));
    }
    bench.clean_up(&task).await;
    let message = &task["status"]["message"];
    let told = message["parts"].as_array().is_some_and(|parts| parts.iter().any(says_something));
    if told { Ok(()) } else { Err(differs("a status message that explains what to do", message.to_string())) }
}

fn says_something(part: &Value) -> bool {
    filled(part, "text").is_some()
        || filled(part, "url").is_some()
        || part.get("data").is_some_and(|data| !data.is_null())
}

async fn auth_answer(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-auth-required")).await?;
    let after = bench.task(&Say::text("signed in").to(&task)).await?;
    if after["id"] != task["id"] {
        return Err(differs(format!("the same task, {}", task["id"]), after["id"].to_string()));
    }
    if !has_ended(&after) {
        bench.clean_up(&task).await;
    }
    Ok(())
}

/// Two answers to one question at the same time: each is accepted or refused, and the task goes on.
async fn follow_up_at_once(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-multi-turn")).await?;
    let (one, two) = (Say::text("one").to(&task), Say::text("two").to(&task));
    let sent = [one.id().clone(), two.id().clone()];
    let (one, two) = (one.params(bench), two.params(bench));
    let send = crate::wire::request::Operation::SendMessage;
    let (first, second) = tokio::join!(bench.call(send, &one), bench.call(send, &two));
    for answer in [first?, second?] {
        let broken = match &answer {
            crate::wire::Answer::Error(error) => {
                error.status >= 500 || error.name.as_deref() == Some("InternalError")
            }
            _ => false,
        };
        if broken {
            return Err(differs("each message taken or refused", answer.summary()));
        }
    }
    let now = bench.get(&task["id"]).await?;
    bench.clean_up(&task).await;
    let history = now["history"].as_array().map_or(&[][..], Vec::as_slice);
    let count = |id: &Value| history.iter().filter(|message| message["messageId"] == *id).count();
    match sent.iter().find(|id| count(id) > 1) {
        Some(id) => Err(differs("each message once in the history", format!("{id} {} times", count(id)))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_explanation_is_more_than_a_part() {
        assert!(says_something(&json!({"text": "sign in"})) && says_something(&json!({"data": {}})));
        assert!(!says_something(&json!({"text": ""})) && !says_something(&json!({})));
    }
}
