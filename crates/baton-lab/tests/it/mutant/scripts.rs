//! What the agent does with a phrase: the test prefixes, and a plain result for everything else.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::entry::{Entry, fresh_id};

/// A phrase with a skill of its own, for those who do not know the prefixes.
pub(super) const EXAMPLE: &str = "say hello";

/// How it is told to call another agent.
pub(crate) const CALL: &str = "please call ";

/// One thing a script does.
#[derive(Debug, Clone)]
enum Step {
    State(&'static str, Option<&'static str>),
    /// Parts of an artifact; more of the one before, if so.
    Give(Value, bool),
    Wait(u64),
    /// Until somebody cancels it.
    Forever,
}

/// Long enough for others to come and watch.
const LATE: u64 = 500;

/// Replies with a message instead of a task?
pub(super) fn is_message(phrase: &str) -> bool {
    phrase.starts_with("tck-message-response")
}

fn script(phrase: &str, first: bool, said: &str) -> Vec<Step> {
    use Step::{Forever, Give, State, Wait};
    let done = || State("COMPLETED", None);
    let text = |text: &str| Give(json!([{ "text": text }]), false);
    let result = |parts: Value| vec![Give(parts, false), done()];
    let question = || State("INPUT_REQUIRED", Some("what else?"));
    // The longest first: one prefix begins another.
    match phrase {
        _ if phrase.starts_with("tck-input-required") && first => vec![question()],
        _ if phrase.starts_with("tck-multi-turn") && (first || said != "done") => vec![question()],
        _ if phrase.starts_with("tck-auth-required") && first => {
            vec![State("AUTH_REQUIRED", Some("please sign in"))]
        }
        _ if phrase.starts_with("tck-reject-task") => vec![State("REJECTED", Some("not with me"))],
        _ if phrase.starts_with("tck-task-failure") => vec![State("FAILED", Some("it did not work"))],
        _ if phrase.starts_with("tck-artifact-file-url") => result(
            json!([{"url": "https://example.com/a.txt", "filename": "a.txt", "mediaType": "text/plain"}]),
        ),
        _ if phrase.starts_with("tck-artifact-file") => {
            result(json!([{"raw": "aGVsbG8=", "filename": "a.txt", "mediaType": "text/plain"}]))
        }
        _ if phrase.starts_with("tck-artifact-data") => result(json!([{"data": {"answer": 42}}])),
        _ if phrase.starts_with("tck-long-running") => vec![Wait(LATE), text("slowly"), done()],
        _ if phrase.starts_with("tck-cancel") => vec![Forever],
        _ if phrase.starts_with("tck-stream-basic") => vec![Wait(LATE), text("one"), Wait(LATE), done()],
        _ if phrase.starts_with("tck-stream-chunked") => {
            let more = |text: &str| Give(json!([{ "text": text }]), true);
            vec![text("one "), more("two "), more("three"), done()]
        }
        _ => result(json!([{ "text": "hello" }])),
    }
}

/// Runs one turn of a task to its end.
pub(super) async fn run(entry: Arc<Entry>, phrase: String, first: bool, said: String) {
    let work = async {
        if first && !phrase.starts_with("tck-reject-task") {
            entry.enter("WORKING", None);
        }
        let artifact = fresh_id();
        let steps = script(&phrase, first, &said);
        let chunks = steps.iter().filter(|step| matches!(step, Step::Give(..))).count();
        let mut given = 0;
        for step in steps {
            match step {
                Step::State(state, text) => {
                    entry.enter(state, text);
                }
                Step::Give(parts, append) => {
                    given += 1;
                    let value = json!({"artifactId": artifact, "name": "result", "parts": parts});
                    entry.give(value, append, given == chunks);
                }
                Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await, // tidy: allow-sleep the agent is slow on purpose
                Step::Forever => std::future::pending().await,
            }
        }
    };
    entry.stop.run_until_cancelled(work).await;
}
