//! `--exec`: what a program prints, how it ends, and what becomes of the task.

use std::fs;

use serde_json::{Value, json};

use crate::programs::{UNTIL_GO, all_gone, output, processes, python, reason, shell, state, until};
use crate::served::Served;

/// The artifact updates of a stream that has ended.
async fn chunks(server: &Served, said: &str) -> Vec<Value> {
    let events = server.send_stream(crate::served::text("m-1", said)).await;
    let updates = events.into_iter().map(|mut event| event["artifactUpdate"].take());
    updates.filter(Value::is_object).collect()
}

#[tokio::test]
async fn s09_what_a_program_prints_is_the_tasks_artifact() {
    let program = shell("read -r name; echo \"Hello, $name!\"; echo \"Bye.\"");
    let server = program.serve(&[]);
    let task = server.answer_to("Ada").await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    assert_eq!(output(&task), "Hello, Ada!\nBye.\n");
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!((artifacts.len(), &artifacts[0]["name"]), (1, &json!("output")), "{task}");
}

#[tokio::test]
async fn p04_output_is_streamed_as_it_comes_and_characters_stay_whole() {
    // The two bytes of `é`, and the four of the rocket, come in reads of their own.
    let program = shell(&format!(
        "printf 'one \\303'; {UNTIL_GO}; printf '\\251 \\360\\237'; sleep 0.1; printf '\\232\\200\\377!'"
    ));
    let server = program.serve(&[]);
    let mut stream = server.stream_on("go").await;
    let mut seen = String::new();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        seen += std::str::from_utf8(&chunk).unwrap();
        if seen.contains("\"one ") {
            program.go();
        }
    }
    let events = seen.lines().filter_map(|line| line.strip_prefix("data:"));
    let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
    let updates: Vec<&Value> = events
        .iter()
        .map(|event| &event["result"]["artifactUpdate"])
        .filter(|update| update.is_object())
        .collect();
    let text: String =
        updates.iter().map(|update| update["artifact"]["parts"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(text, "one é 🚀\u{fffd}!");
    assert_eq!(updates[0]["artifact"]["parts"][0]["text"], "one ");
    assert_eq!(updates.last().unwrap()["lastChunk"], true);
    assert!(updates[1..].iter().all(|update| update["append"] == true), "{updates:?}");
}

#[tokio::test]
async fn a_delimiter_cuts_the_chunks_and_is_left_out() {
    let program = shell("printf 'a\\n---\\nb\\nc\\n---\\nd'");
    let server = program.serve(&["--chunk", "\\n---\\n"]);
    let chunks = chunks(&server, "go").await;
    assert_eq!(chunks.last().unwrap()["lastChunk"], true);
    // On a busy machine the end is seen later than the last piece: an empty one brings it then.
    let pieces = chunks.iter().map(|chunk| (&chunk["artifact"]["parts"][0]["text"], &chunk["append"]));
    let pieces: Vec<_> = pieces.filter(|(text, _)| *text != "").collect();
    let (yes, no) = (json!(true), Value::Null);
    assert_eq!(pieces, [(&json!("a"), &no), (&json!("b\nc"), &yes), (&json!("d"), &yes)]);
}

#[tokio::test]
async fn s09_an_end_that_is_no_success_fails_the_task_and_says_how() {
    let program = python(
        "import os, sys
said = sys.stdin.read()
print('begun', flush=True)
if said == 'signal': os.kill(os.getpid(), 9)
if said == 'silent': sys.exit(3)
if said == 'error': raise ValueError('no such city')
sys.exit('nothing to do')",
    );
    let server = program.serve(&[]);
    for (said, expected) in [
        ("silent", "The agent's program exited with 3; see the server's log"),
        ("signal", "The agent's program was ended by signal 9 (SIGKILL); see the server's log"),
        ("else", "The agent's program exited with 1; see the server's log"),
        ("error", "The agent's program exited with 1; see the server's log"),
    ] {
        let task = server.answer_to(said).await;
        assert_eq!((state(&task), reason(&task)), ("FAILED", expected));
        assert_eq!(output(&task), "begun\n", "what it had printed stays");
    }
    let talkative = program.serve(&["--exec-show-stderr"]);
    let task = talkative.answer_to("else").await;
    assert_eq!(reason(&task), "The agent's program exited with 1: nothing to do");
    let task = talkative.answer_to("error").await;
    assert!(reason(&task).ends_with("\nValueError: no such city"), "{task}");

    program.remove();
    let task = server.answer_to("gone").await;
    assert_eq!(
        reason(&task),
        "The agent's program could not be started: No such file or directory (os error 2); see the server's log"
    );
}

#[tokio::test]
async fn complaints_go_to_the_log_and_the_last_words_to_the_client_only_if_told_so() {
    let program = shell(
        "read -r code
for n in 1 2 3 4 5 6; do echo \"complaint $n\" >&2; done
printf 'not a \\033[31mline\\033[0m without its end' >&2
exit $code",
    );
    let server = program.serve(&[]);
    let task = server.answer_to("0").await;
    assert_eq!(state(&task), "COMPLETED");
    assert!(!task.to_string().contains("complaint"), "{task}");
    let log = server.until_logged("without its end").await;
    for n in 1..=6 {
        assert!(log.contains(&format!("line=\"complaint {n}\"")), "{log}");
    }
    let id = task["id"].as_str().unwrap();
    let line = log.lines().find(|line| line.contains("complaint 1")).unwrap();
    assert!(line.contains("exec: stderr") && line.contains(&format!("task.id={id}")), "{line}");
    assert!(!log.contains('\u{1b}'), "what a program prints cannot colour the log: {log}");

    let task = server.answer_to("7").await;
    assert_eq!(reason(&task), "The agent's program exited with 7; see the server's log");
    assert!(!task.to_string().contains("complaint"), "{task}");

    let server = program.serve(&["--exec-show-stderr"]);
    let task = server.answer_to("7").await;
    let expected = "The agent's program exited with 7:\ncomplaint 5\ncomplaint 6\n";
    assert!(reason(&task).starts_with(expected), "{task}");
    assert!(!task.to_string().contains("complaint 4"), "{task}");
}

#[tokio::test]
async fn endless_complaints_do_not_fill_the_log() {
    let program = shell("yes 'on and on' | head -n 100000 >&2; echo done");
    let server = program.serve(&[]);
    let task = server.answer_to("go").await;
    assert_eq!((state(&task), output(&task).as_str()), ("COMPLETED", "done\n"));
    let log = server.until_logged("too many lines on stderr").await;
    assert!(log.matches("on and on").count() < 5_000, "{} lines", log.lines().count());
}

#[tokio::test]
async fn endless_output_fails_the_task_and_ends_the_program() {
    let program = shell("echo $$ > \"$FOLDER/pid\"; exec yes");
    let server = program.serve(&["--exec-max-output", "100000"]);
    let task = server.start_on("go").await;
    let task = server.until(&task, "TASK_STATE_FAILED").await;
    assert_eq!(reason(&task), "The agent's program wrote more than 100000 bytes");
    let pid = fs::read_to_string(program.file("pid")).unwrap();
    let gone = until(|| (!fs::exists(format!("/proc/{}", pid.trim())).unwrap()).then_some(())).await;
    assert!(gone.is_some(), "it is still there");
}

#[tokio::test]
async fn a_program_that_closes_its_output_is_waited_for() {
    let program = shell(&format!("echo said; exec >&- 2>&-; {UNTIL_GO}; exit 5"));
    let server = program.serve(&[]);
    let task = server.start_on("go").await;
    let task = server.until_said(&task, &["said"]).await;
    assert_eq!(state(&task), "WORKING");
    program.go();
    let task = server.until(&task, "TASK_STATE_FAILED").await;
    assert_eq!(reason(&task), "The agent's program exited with 5; see the server's log");
}

#[tokio::test]
async fn whom_a_program_leaves_behind_is_ended_with_it() {
    let program = shell(&format!("sleep 1000 & echo \"left $!\"; {UNTIL_GO}"));
    let server = program.serve(&[]);
    let task = server.start_on("go").await;
    let left = processes(&server.until_said(&task, &["left"]).await);
    program.go();
    server.until(&task, "TASK_STATE_COMPLETED").await;
    all_gone(&left).await;
}

#[tokio::test]
async fn s12_fifty_at_once_are_fifty_programs_and_nothing_is_mixed_up() {
    const TASKS: usize = 50;
    // Nobody ends before all have begun.
    let program = shell(&format!(
        "read -r n; : > \"$FOLDER/begun-$n\"; {UNTIL_GO}; for i in 1 2 3; do echo \"$n: $i of $BATON_TASK_ID\"; done"
    ));
    let server = program.serve(&[]);
    let starting =
        (0..TASKS).map(|n| server.start_task(crate::served::text(&format!("m-{n}"), &n.to_string())));
    let tasks = futures(starting.collect()).await;
    let begun = || (0..TASKS).all(|n| program.file(&format!("begun-{n}")).exists()).then_some(());
    assert!(until(begun).await.is_some(), "not all began\n{}", server.log());
    program.go();
    for (n, task) in tasks.iter().enumerate() {
        let done = server.until(task, "TASK_STATE_COMPLETED").await;
        let id = done["id"].as_str().unwrap();
        let expected: String = (1..=3).map(|i| format!("{n}: {i} of {id}\n")).collect();
        assert_eq!(output(&done), expected);
    }
}

/// Waits for all, one beside the other.
async fn futures<T>(all: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
