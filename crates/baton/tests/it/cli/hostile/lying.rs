//! Servers that lie: about another task, about numbers and lengths, about who may read what and where to go.

use serde_json::{Value, json};

use super::server::{Asked, EVENTS, Hostile, Sent, envelope, head, result, right, status, stream, task};
use super::watched::Ended;
use super::{
    AUTH_FAILED, BAD, LATE, LOST, NO_CREDENTIALS, OK, Row, calls, check, each_call, exit_status, nothing,
    streams,
};
use crate::cli::User;

fn other_task() -> Value {
    let mut task = task("COMPLETED");
    task["id"] = json!("t-9");
    task
}

/// An update with some other members.
fn status_with(member: &str, value: &str) -> Value {
    let mut update = status("COMPLETED");
    update["statusUpdate"][member] = json!(value);
    update
}

fn artifact(text: &str) -> Value {
    let artifact = json!({"artifactId": "a", "parts": [{"text": text}]});
    json!({"artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "append": true, "artifact": artifact}})
}

/// Events with these numbers.
fn numbered(asked: &Asked, events: &[(u64, Value)]) -> Sent {
    let frames: String =
        events.iter().map(|(id, event)| format!("id: {id}\ndata: {}\n\n", envelope(asked, event))).collect();
    Sent::Bytes([head("200 OK", &[EVENTS]), frames.into_bytes()].concat())
}

/// Nobody takes another task for the one that was asked for. A stream that lies is of no use; then the task itself is read.
#[test]
fn p09_what_is_said_of_another_task_is_not_believed() {
    let rows: &[Row] = &[
        each_call("another task", [OK, OK, BAD, BAD, OK], |asked| match asked.method() {
            // Here nobody knows yet which task it will be.
            "SendStreamingMessage" => Sent::Bytes(stream(asked, &[json!({"task": task("COMPLETED")})])),
            "SubscribeToTask" => Sent::Bytes(stream(asked, &[json!({"task": other_task()})])),
            "GetTask" if asked.before == 0 => result(asked, &other_task()),
            _ => right(asked),
        }),
        each_call("another task in the end", [BAD, OK, BAD, OK, OK], |asked| match asked.method() {
            "GetTask" => result(asked, &other_task()),
            _ => right(asked),
        }),
        streams("events of another task", [OK, OK, OK], |asked| {
            Sent::Bytes(stream(asked, &[json!({"task": task("WORKING")}), status_with("taskId", "t-9")]))
        }),
        streams("another task in the middle", [OK, OK, OK], |asked| {
            Sent::Bytes(stream(asked, &[json!({"task": task("WORKING")}), json!({"task": other_task()})]))
        }),
        streams("events of another context", [OK, OK, OK], |asked| {
            Sent::Bytes(stream(asked, &[json!({"task": task("WORKING")}), status_with("contextId", "c-9")]))
        }),
        calls("every answer is about another task", BAD, |asked| match asked.method() {
            "SendStreamingMessage" => {
                Sent::Bytes(stream(asked, &[json!({"task": task("WORKING")}), json!({"task": other_task()})]))
            }
            "SubscribeToTask" => Sent::Bytes(stream(asked, &[json!({"task": other_task()})])),
            "ListTasks" => result(asked, &json!({"tasks": [{"contextId": "c-1"}]})),
            _ => result(asked, &other_task()),
        }),
    ];
    check(rows, &[], |row, _, ended| {
        assert!(!ended.out.contains("\"t-9\""), "{}: {ended:?}", row.name);
    });
}

/// A message to a task is answered by that task.
#[test]
fn p09_a_reply_of_another_task_is_not_believed() {
    let server = Hostile::start(|asked| match asked.streams() {
        true => Sent::Bytes(stream(asked, &[json!({"task": other_task()})])),
        false if asked.is_card() => right(asked),
        false => result(asked, &json!({"task": other_task()})),
    });
    let user = User::new();
    for words in [&["send", "hi"][..], &["send", "hi", "--stream"], &["send", "hi", "--async"]] {
        let args = [words, &["--task-id", "t-1", "-o", "json", "-a", &server.url]].concat();
        let ended = Ended::of(&mut user.command(&args));
        assert_eq!((ended.error().as_str(), ended.code), (BAD, Some(1)), "{words:?}: {ended:?}");
    }
}

/// Whatever the numbers say, every event is shown as it came, and at the end the task is read once more.
#[test]
fn p09_numbers_that_do_not_rise_lose_nothing() {
    fn whole() -> Value {
        let mut task = task("COMPLETED");
        task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "one"}, {"text": "two"}]}]);
        task
    }
    fn answer(asked: &Asked, numbers: [u64; 4]) -> Sent {
        let events =
            [json!({"task": task("WORKING")}), artifact("one"), artifact("two"), status("COMPLETED")];
        match asked.method() {
            "GetTask" => result(asked, &whole()),
            "ListTasks" => right(asked),
            _ => numbered(asked, &numbers.into_iter().zip(events).collect::<Vec<_>>()),
        }
    }
    let rows: &[Row] = &[
        calls("back", OK, |asked| answer(asked, [7, 3, 2, 1])),
        calls("the same", OK, |asked| answer(asked, [1, 1, 1, 1])),
        calls("huge", OK, |asked| answer(asked, [1, 2, u64::MAX, 3])),
        calls("an event twice", OK, |asked| match asked.method() {
            "GetTask" => result(asked, &whole()),
            "ListTasks" => right(asked),
            _ => numbered(
                asked,
                &[
                    (1, json!({"task": task("WORKING")})),
                    (2, artifact("one")),
                    (2, artifact("one")),
                    (3, artifact("two")),
                    (4, status("COMPLETED")),
                ],
            ),
        }),
    ];
    check(rows, &[], |row, server, ended| {
        let streamed = server.asked().iter().any(Asked::streams);
        let shown = ended.out.contains("\"one\"") && ended.out.contains("\"two\"");
        assert!(!streamed || shown, "{}: {ended:?}", row.name);
        if streamed {
            assert!(
                server.asked().iter().any(|asked| asked.method() == "GetTask"),
                "{}: {ended:?}",
                row.name
            );
        }
    });
}

#[test]
fn p09_nothing_changes_behind_the_end() {
    let rows: &[Row] = &[
        streams("more events", [OK, OK, OK], |asked| {
            let mut late = status("FAILED");
            late["statusUpdate"]["status"]["message"] =
                json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "late"}]});
            Sent::Bytes(stream(
                asked,
                &[json!({"task": task("WORKING")}), status("COMPLETED"), late, artifact("late")],
            ))
        }),
        streams("no end of the connection", [OK, OK, OK], |asked| {
            Sent::Stall(stream(asked, &[json!({"task": task("WORKING")}), status("COMPLETED")]))
        }),
        streams("a message and more", [OK, OK, OK], |asked| {
            let message =
                json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}});
            Sent::Bytes(stream(asked, &[message, json!({"task": other_task()}), artifact("late")]))
        }),
    ];
    check(rows, &[], |row, _, ended| {
        assert!(!ended.out.contains("late") && !ended.out.contains("t-9"), "{}: {ended:?}", row.name);
    });
}

#[test]
fn p09_lengths_that_are_wrong() {
    fn with_length(asked: &Asked, change: i64) -> Sent {
        match right(asked) {
            Sent::Bytes(bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                let (_, inside) = text.split_once("\r\n\r\n").unwrap();
                let length = format!("content-length: {}", inside.len() as i64 + change);
                let kind = if asked.streams() { EVENTS } else { "content-type: application/json" };
                Sent::Bytes([head("200 OK", &[kind, &length]), inside.as_bytes().to_vec()].concat())
            }
            other => other,
        }
    }
    let rows: &[Row] = &[
        // A stream is whole with its last event, whatever follows; and that is enough if the task cannot be read.
        each_call("too long", [OK, OK, LOST, OK, LOST], |asked| with_length(asked, 100)),
        // The end of a stream is missing, each time anew.
        each_call("too short", [LATE, LATE, BAD, LATE, BAD], |asked| with_length(asked, -10)).timeout("3s"),
    ];
    check(rows, &[], nothing);
}

/// Neither the credentials nor the message go where a server sends them.
#[test]
fn p09_calls_are_not_redirected() {
    use std::sync::OnceLock;
    static ELSEWHERE: OnceLock<Hostile> = OnceLock::new();
    ELSEWHERE.get_or_init(|| Hostile::start(right));
    fn redirect(status: &str, place: &str) -> Sent {
        Sent::Bytes(head(status, &[&format!("location: {place}"), "content-length: 0"]))
    }
    let rows: &[Row] = &[
        calls("307", LOST, |_| redirect("307 Temporary Redirect", &ELSEWHERE.get().unwrap().url)),
        calls("302", LOST, |_| redirect("302 Found", &ELSEWHERE.get().unwrap().url)),
        calls("to itself", LOST, |asked| redirect("308 Permanent Redirect", &format!("{}/rpc", asked.url))),
        calls("to nowhere", LOST, |_| redirect("301 Moved Permanently", "\\\\")),
    ];
    check(rows, &["--bearer", "s3cret"], |row, server, ended| {
        assert!(server.asked().len() <= 2, "{}: followed, or sent again: {ended:?}", row.name);
    });
    assert!(ELSEWHERE.get().unwrap().asked().is_empty());
}

/// A challenge is answered once at most.
#[test]
fn p09_challenges_without_an_end() {
    fn challenge(asked: &Asked, scheme: &str) -> Sent {
        let header =
            format!("www-authenticate: {scheme} realm=\"r\", nonce=\"n{}\", stale=true", asked.before);
        Sent::Bytes(head("401 Unauthorized", &[&header, "content-length: 0"]))
    }
    let rows: &[Row] = &[
        calls("bearer", NO_CREDENTIALS, |asked| challenge(asked, "Bearer")),
        calls("digest", NO_CREDENTIALS, |asked| challenge(asked, "Digest")),
        calls("unknown", NO_CREDENTIALS, |asked| challenge(asked, "Riddle")),
    ];
    let few = |row: &Row, server: &Hostile, ended: &Ended| {
        assert!(server.asked().len() <= 3, "{}: {ended:?}", row.name);
    };
    check(rows, &[], few);
    let refused: Vec<Row> = rows
        .iter()
        .map(|row| Row {
            expected: row.expected.map(|code| if code == OK { OK } else { AUTH_FAILED }),
            ..*row
        })
        .collect();
    check(&refused, &["--bearer", "s3cret"], few);
}

/// "Come back later" for ever: some tries, then the answer is told.
#[test]
fn p09_a_server_that_is_always_busy() {
    let user = User::new();
    for (status, after, most) in [("503 Busy", "0", 5), ("429 Slow", "0", 5), ("503 Busy", "999999999999", 2)]
    {
        let server = Hostile::start(move |asked| match asked.is_card() {
            true => right(asked),
            false => Sent::Bytes(head(status, &[&format!("retry-after: {after}"), "content-length: 0"])),
        });
        let ended = Ended::of(&mut user.command(&["task", "get", "t-1", "-o", "json", "-a", &server.url]));
        assert_eq!(ended.code, Some(exit_status(&ended.error())), "{ended:?}");
        assert!(ended.code != Some(0) && server.asked().len() <= most, "{ended:?} {:?}", server.asked());
    }
}

/// Every subscription shows the task as it was and is closed; `retry: 0` asks to come back at once.
#[test]
fn p09_a_stream_that_calls_back_at_once_is_not_a_busy_loop() {
    let server = Hostile::start(|asked| match asked.streams() {
        true => {
            let first = format!("retry: 0\ndata: {}\n\n", envelope(asked, &json!({"task": task("WORKING")})));
            Sent::Bytes([head("200 OK", &[EVENTS]), first.into_bytes()].concat())
        }
        false if asked.is_card() => right(asked),
        false => result(asked, &task("WORKING")),
    });
    let args = ["send", "hi", "--stream", "--timeout", "3s", "--poll-interval", "500ms", "-a", &server.url];
    let ended = Ended::of(&mut User::new().command(&args));
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(server.asked().len() < 20, "{} requests", server.asked().len());
}
