//! The checks that scripts make, and the lines they print about them.

pub struct Check {
    /// As scripts print it; carries ids of the ledger.
    pub name: &'static str,
    /// As the page shows it.
    pub shown: &'static str,
    pub meaning: &'static str,
}

const fn check(name: &'static str, shown: &'static str, meaning: &'static str) -> Check {
    Check { name, shown, meaning }
}

/// In the order of the page's columns.
pub const CHECKS: &[Check] = &[
    check("p09_discovers_card", "card", "finds the card where it looks, and takes it"),
    check("p09_sends", "send", "a send that waits returns the completed task"),
    check("p09_streams", "stream", "the task, then its updates, then the end of the stream"),
    check("p04_streams_plain_text_in_order", "order", "chunks of an artifact arrive and are stored in order"),
    check("p02_gets_task", "get", "reads a task again as the send returned it"),
    check("p09_lists_with_pages", "pages", "lists the tasks of a context page by page"),
    check("p06_lists_by_context", "list", "the context filter lets nothing else through"),
    check("p02_cancels", "cancel", "cancels a running task"),
    check("p02_subscribes", "subscribe", "joins the stream of a running task and sees its end"),
    check("p02_talks_until_done", "talk", "several turns in one task, with their history"),
    check(
        "p02_resumes_after_input_required",
        "resume",
        "answers a question with the task's id alone, on streams",
    ),
    check(
        "p02_gets_message_reply",
        "message",
        "a message as reply instead of a task, with and without a stream",
    ),
    check("p09_maps_unknown_task_error", "not found", "an unknown task gives the client's own error for it"),
    check("p09_maps_error_of_a_stream", "stream error", "so does a stream that asks for one"),
    check(
        "p09_maps_not_cancelable_error",
        "not cancelable",
        "cancel of a completed task gives the client's own error",
    ),
    check("p02_push_config_refused", "no push", "a push config is refused as not supported"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'a> {
    Passed,
    Failed(&'a str),
    Skipped(&'a str),
}

/// `(check, verdict)` of every line that is one; clients print other things besides.
pub fn verdicts(output: &str) -> Vec<(&str, Verdict<'_>)> {
    output.lines().filter_map(verdict).collect()
}

fn verdict(line: &str) -> Option<(&str, Verdict<'_>)> {
    let (word, rest) = line.split_once(' ')?;
    let (name, reason) = rest.split_once(": ").unwrap_or((rest, ""));
    let verdict = match word {
        "ok" => Verdict::Passed,
        "FAIL" => Verdict::Failed(reason),
        "skip" => Verdict::Skipped(reason),
        _ => return None,
    };
    CHECKS.iter().any(|check| check.name == name).then_some((name, verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_about_checks_count() {
        let output = "ok p09_sends\nloading: ok\nFAIL p02_cancels: no: nothing\nskip p02_subscribes: cannot\n\
                      ok p99_unknown\n2 passed, 1 failed\n";
        let expected = [
            ("p09_sends", Verdict::Passed),
            ("p02_cancels", Verdict::Failed("no: nothing")),
            ("p02_subscribes", Verdict::Skipped("cannot")),
        ];
        assert_eq!(verdicts(output), expected);
    }
}
