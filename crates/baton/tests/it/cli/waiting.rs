//! Waiting for a task: when it is looked at, what ends the wait, and what happens when something breaks.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Scripted, always, card, task};
use crate::served::Served;

/// Completes after this many reads.
fn completes_after(reads: usize) -> Scripted {
    Scripted::start(
        |url| card(url, json!({})),
        move |_, before| match before < reads {
            true => Answer::Result(task("TASK_STATE_WORKING")),
            false => Answer::Result(task("TASK_STATE_COMPLETED")),
        },
    )
}

#[test]
fn p09_cli_task_poll_001_without_wait_the_task_is_read_once() {
    let (agent, user) = (completes_after(3), User::new());
    let said = user.run(&["task", "get", &agent.url, "t-1"]).ok();
    assert_eq!((said.field("State"), agent.calls().len()), ("TASK_STATE_WORKING", 1));
    let said = user.run(&["task", "get", &agent.url, "t-1", "--wait", "--poll-interval", "20ms"]).ok();
    assert_eq!((said.field("State"), agent.calls().len()), ("TASK_STATE_COMPLETED", 4));
    assert!(agent.calls().iter().all(|call| call.rpc() == "GetTask"));
}

/// The times between looks are at least what was asked for: no more can be said on a busy machine.
#[test]
fn p09_cli_task_poll_002_the_interval_is_kept() {
    let (agent, user) = (completes_after(3), User::new());
    user.run(&["task", "get", &agent.url, "t-1", "--wait", "--poll-interval", "150ms"]).ok();
    let times: Vec<_> = agent.calls().iter().map(|call| call.at).collect();
    assert_eq!(times.len(), 4);
    let gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The agent notes a time when the request has come, which may be a moment late.
    assert!(gaps.iter().all(|gap| *gap > Duration::from_millis(100)), "{gaps:?}");
    user.run(&["task", "get", &agent.url, "t-1", "--wait", "--poll-interval", "0"]).failed(2);
}

/// A read that fails is tried again, later each time, and not for ever.
#[test]
fn p09_cli_task_poll_002_failed_reads_are_repeated_with_growing_gaps() {
    let broken = |until: usize| {
        Scripted::start(
            |url| card(url, json!({})),
            move |_, before| match before < until {
                true => Answer::Plain(500, "text/plain", "out of order".to_owned()),
                false => Answer::Result(task("TASK_STATE_COMPLETED")),
            },
        )
    };
    let user = User::new();
    let (agent, wait) = (broken(3), ["--wait", "--poll-interval", "20ms"]);
    let said = user.run(&[&["task", "get", &agent.url, "t-1"], &wait[..]].concat()).ok();
    assert_eq!((said.field("State"), agent.calls().len()), ("TASK_STATE_COMPLETED", 4));
    let times: Vec<_> = agent.calls().iter().map(|call| call.at).collect();
    assert!(times[3] - times[2] > Duration::from_millis(100), "the third gap is 160 ms");
    let agent = broken(usize::MAX);
    let said = user.run(&[&["task", "get", &agent.url, "t-1", "-o", "json"], &wait[..]].concat()).failed(1);
    assert_eq!((said.error().0.as_str(), agent.calls().len()), ("A2ACLI_ERR_INTERNAL", 5));
}

/// Starts a command and reads its output until these words came.
fn started(mut command: Command, words: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    while !seen.contains(words) {
        assert!(out.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    (child, out)
}

/// Ctrl-C: the exit status, and what was said on stderr.
fn interrupted(mut child: Child) -> (Option<i32>, String) {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (status.code(), err)
}

#[test]
fn p09_cli_task_poll_002_ctrl_c_ends_the_wait_and_shows_how_to_go_on() {
    let (served, user) = (Served::start(), User::new());
    for form in [&["--stream"][..], &["--stream", "-o", "json"]] {
        let command = user.command(&[&["send", &served.url, "wait until I cancel"], form].concat());
        // Its output stays open: nobody reads it any more, but nobody closes it either.
        let (child, _out) = started(command, "TASK_STATE_WORKING");
        let (code, err) = interrupted(child);
        assert_eq!(code, Some(130), "{err}");
        let id = err.trim().rsplit(' ').next().unwrap();
        assert_eq!(user.run(&["task", "get", &served.url, id]).ok().field("State"), "TASK_STATE_WORKING");
    }
}

/// Also while it looks again and again.
#[test]
fn p09_cli_task_poll_002_ctrl_c_ends_polling_at_once() {
    let (agent, user) = (always(task("TASK_STATE_WORKING")), User::new());
    let mut command = user.command(&["task", "get", &agent.url, "t-1", "--wait", "--poll-interval", "1h"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while agent.calls().is_empty() {
        std::thread::yield_now();
    }
    let (code, err) = interrupted(child);
    assert_eq!(code, Some(130), "{err}");
    let expected = format!("Resume: baton task get -a {} --wait t-1\n", agent.url);
    assert!(err.ends_with(&expected), "{err}");
}

/// A state that says nothing is waited for, and shown as it came: in a look, in a stream, and until the timeout.
#[test]
fn p09_cli_task_poll_003_unspecified_is_waited_for_and_shown_as_it_came() {
    let user = User::new();
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |_, before| {
            Answer::Result(task(match before {
                0 => "TASK_STATE_UNSPECIFIED",
                1 => "TASK_STATE_DREAMING",
                _ => "TASK_STATE_AUTH_REQUIRED",
            }))
        },
    );
    let said = user.run(&["task", "get", &agent.url, "t-1", "--wait", "--poll-interval", "20ms"]).ok();
    assert_eq!((said.field("State"), agent.calls().len()), ("TASK_STATE_AUTH_REQUIRED", 3));
    for state in ["TASK_STATE_UNSPECIFIED", "TASK_STATE_DREAMING"] {
        let agent = always(task(state));
        assert_eq!(user.run(&["task", "get", &agent.url, "t-1"]).ok().field("State"), state);
        let wait = ["--wait", "--poll-interval", "20ms", "--timeout", "200ms"];
        user.run(&[&["task", "get", &agent.url, "t-1"], &wait[..]].concat()).failed(5);
        let events = vec![
            json!({"task": task(state)}),
            json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": {"state": state}}}),
            json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}}}),
        ];
        let agent = Scripted::start(
            |url| card(url, json!({"capabilities": {"streaming": true}})),
            move |_, _| Answer::Events(events.clone()),
        );
        let said = user.run(&["send", &agent.url, "hi", "--stream"]).ok();
        assert_eq!(said.out.matches(&format!("State: {state}\n")).count(), 2, "{said:?}");
        let lines = user.run(&["send", &agent.url, "hi", "--stream", "-o", "json"]).ok().lines();
        assert_eq!(lines[0]["task"]["status"]["state"], state);
        assert_eq!(lines[1]["statusUpdate"]["status"]["state"], state);
    }
}

/// The stream breaks, the agent takes no subscription, and the task is read until its end.
#[test]
fn p09_cli_task_poll_004_a_broken_stream_is_taken_up_again_until_the_end() {
    let agent = || {
        Scripted::start(
            |url| card(url, json!({"capabilities": {"streaming": true}})),
            |heard, before| match heard.rpc() {
                "SendStreamingMessage" => Answer::Cut(vec![json!({"task": task("TASK_STATE_WORKING")})]),
                "SubscribeToTask" => Answer::Error(-32004, "no subscriptions here"),
                _ if before < 4 => Answer::Result(task("TASK_STATE_WORKING")),
                _ => Answer::Result(task("TASK_STATE_COMPLETED")),
            },
        )
    };
    let user = User::new();
    for form in [&[][..], &["--stream"], &["-o", "json"], &["-o", "json", "--stream"]] {
        let agent = agent();
        let said = user.run(&[&["send", &agent.url, "hi", "--poll-interval", "20ms"], form].concat()).ok();
        match form {
            [] | ["--stream"] => {
                let (_, last) = said.out.rsplit_once("Task: t-1\n").unwrap();
                assert!(last.contains("State: TASK_STATE_COMPLETED\n"), "{said:?}");
            }
            ["-o", "json"] => assert_eq!(said.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED"),
            _ => {
                let last: Value = said.lines().pop().unwrap();
                assert_eq!(last["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{said:?}");
            }
        }
        let calls: Vec<String> = agent.calls().iter().map(|call| call.rpc().to_owned()).collect();
        assert_eq!(calls.iter().filter(|call| call.starts_with("Send")).count(), 1, "{calls:?}");
        assert!(
            calls.contains(&"SubscribeToTask".to_owned()) && calls.last().unwrap() == "GetTask",
            "{calls:?}"
        );
    }
}
