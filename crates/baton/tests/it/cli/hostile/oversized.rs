//! Servers that flood: bodies, heads, events and streams without an end, and answers that are small but grow.

use serde_json::{Value, json};

use super::server::{Asked, EVENTS, Sent, body, envelope, head, result, stream, task};
use super::{BAD, LATE, OK, Row, calls, check, each_call, nothing, streams};
use crate::cli::User;
use crate::cli::hostile::server::Hostile;
use crate::cli::hostile::watched::Ended;
use crate::cli::hostile::{MOST_MEMORY, right};

const JSON: &str = "content-type: application/json";

/// More and more of an artifact.
fn chunk(asked: &Asked, text: usize) -> Vec<u8> {
    let artifact = json!({"artifactId": "a", "parts": [{"text": "x".repeat(text)}]});
    let update = json!({"taskId": "t-1", "contextId": "c-1", "append": true, "artifact": artifact});
    format!("data: {}\n\n", envelope(asked, &json!({"artifactUpdate": update}))).into_bytes()
}

#[test]
fn p09_floods_are_cut_off() {
    let rows: &[Row] = &[
        calls("a body without an end", BAD, |_| {
            Sent::Endless([head("200 OK", &[JSON]), b"{\"x\":\"".to_vec()].concat(), vec![b'x'; 1 << 16])
        }),
        calls("spaces without an end", BAD, |_| Sent::Endless(head("200 OK", &[JSON]), vec![b' '; 1 << 16])),
        calls("a length that nobody can hold", BAD, |_| {
            Sent::Stall([head("200 OK", &[JSON, "content-length: 999999999999"]), b"{".to_vec()].concat())
        }),
        calls("a header without an end", BAD, |_| {
            Sent::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 1 << 16])
        }),
        calls("headers without an end", BAD, |_| {
            Sent::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".repeat(999))
        }),
        streams("a line without an end", [BAD, BAD, BAD], |asked| {
            Sent::Endless([stream(asked, &[]), b"data: ".to_vec()].concat(), vec![b'x'; 1 << 16])
        }),
        streams("lines without an end", [BAD, BAD, BAD], |asked| {
            Sent::Endless(stream(asked, &[]), b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(999))
        }),
        streams("ids without an end", [LATE, LATE, LATE], |asked| {
            Sent::Endless(stream(asked, &[]), b"id: xxxxxxxxxxxxxxxx\n\n".repeat(999))
        })
        .timeout("2s"),
    ];
    check(rows, &[], nothing);
}

/// What the events add up to is bounded, too; then the task itself tells.
#[test]
fn p09_streams_that_grow_without_an_end() {
    let rows: &[Row] = &[
        streams("an artifact", [OK, OK, OK], |asked| {
            Sent::Endless(stream(asked, &[json!({"task": task("WORKING")})]), chunk(asked, 1 << 20))
        }),
        // Nothing adds up: it is the user who has had enough.
        streams("status after status", [LATE, LATE, LATE], |asked| {
            let update = format!("data: {}\n\n", envelope(asked, &super::server::status("WORKING")));
            Sent::Endless(stream(asked, &[json!({"task": task("WORKING")})]), update.into_bytes())
        })
        .timeout("2s"),
    ];
    check(rows, &[], nothing);
}

/// Answers of a size that is accepted, made to take as much memory as they can: at most sixty times
/// their size, beside 80 MiB.
#[test]
fn p09_answers_that_grow_in_memory() {
    const BYTES: usize = 1 << 19;
    const MOST: u64 = 80 + 60 * BYTES as u64 / (1 << 20);
    /// A task with as many of these parts as there is room for.
    fn with_parts(asked: &Asked, part: &str) -> Sent {
        let mut task = task("COMPLETED");
        task["artifacts"] = json!([{"artifactId": "a", "parts": ["PARTS"]}]);
        let value = match asked.method() {
            "ListTasks" => json!({"tasks": [task]}),
            "GetTask" => task,
            _ => json!({"task": task}),
        };
        let parts = vec![part; (BYTES / (part.len() + 1)).max(1)].join(",");
        let text = envelope(asked, &value).replacen("\"PARTS\"", &parts, 1);
        match asked.streams() {
            true => Sent::Bytes([head("200 OK", &[EVENTS]), format!("data: {text}\n\n").into()].concat()),
            false => body(text),
        }
    }
    let rows: &[Row] = &[
        calls("empty parts", OK, |asked| with_parts(asked, r#"{"text":""}"#)),
        calls("parts of an unknown kind", OK, |asked| with_parts(asked, r#"{"x":1}"#)),
        calls("nested data", OK, |asked| {
            let numbers = vec!["0"; BYTES / 2].join(",");
            with_parts(asked, &format!(r#"{{"data":{}{numbers}{}}}"#, "[".repeat(90), "]".repeat(90)))
        }),
    ];
    let user = User::new();
    for row in rows {
        for words in
            [&["task", "get", "t-1"][..], &["task", "list", "-o", "json"], &["send", "hi", "--stream"]]
        {
            let server = row.serve();
            let ended = Ended::of(&mut user.command(&[words, &["-a", &server.url]].concat()));
            assert_eq!(ended.code, Some(0), "{}: {words:?}: {}", row.name, ended.err);
            assert!(ended.peak <= MOST, "{} {words:?}: {} MiB", row.name, ended.peak);
        }
    }
}

/// A member that nobody knows, nested as deep as the answer is long: whoever reads what is printed could not read it either.
#[test]
fn p09_nesting_without_an_end() {
    fn deep(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }
    let rows: &[Row] = &[
        super::card("a card", OK, |asked| {
            let text = super::server::right_card(&asked.url).to_string();
            body(format!("{{\"x\":{},{}", deep(200_000), &text[1..]))
        }),
        calls("a member of the answer", BAD, |asked| match right(asked) {
            Sent::Bytes(bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                let text =
                    text.replace("\"t-1\",\"status", &format!("\"t-1\",\"x\":{},\"status", deep(200_000)));
                let (_, inside) = text.split_once("\r\n\r\n").unwrap();
                match asked.streams() {
                    true => Sent::Bytes([head("200 OK", &[EVENTS]), inside.into()].concat()),
                    false => body(inside),
                }
            }
            other => other,
        }),
        each_call("metadata", [BAD, BAD, BAD, BAD, BAD], |asked| {
            let text = envelope(
                asked,
                &match asked.method() {
                    "ListTasks" => json!({"tasks": [{"id": "t-1", "metadata": "DEEP"}]}),
                    "GetTask" => {
                        json!({"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}, "metadata": "DEEP"})
                    }
                    _ => {
                        json!({"task": {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}, "metadata": "DEEP"}})
                    }
                },
            );
            body(text.replace("\"DEEP\"", &format!("{{\"x\":{}}}", deep(200_000))))
        }),
    ];
    check(rows, &[], nothing);
}

/// `--all` asks for page after page.
#[test]
fn p09_lists_without_an_end() {
    let user = User::new();
    type MakePage = fn(&Asked) -> Value;
    let pages: [(&str, MakePage); 3] = [
        ("empty pages", |asked| json!({"tasks": [], "nextPageToken": asked.before.to_string()})),
        (
            "the same pages",
            |asked| json!({"tasks": [task("COMPLETED")], "nextPageToken": (asked.before % 3).to_string()}),
        ),
        ("large pages", |asked| {
            let large = json!({"id": "t-1", "metadata": {"x": "x".repeat(8 << 20)}});
            json!({"tasks": [large], "nextPageToken": asked.before.to_string()})
        }),
    ];
    for (name, page) in pages {
        let server = Hostile::start(
            move |asked| if asked.is_card() { right(asked) } else { result(asked, &page(asked)) },
        );
        for form in [&["-o", "json"][..], &["-o", "json", "--stream"]] {
            // Large pages that are printed as they come have no end but the user's.
            let is_endless = name == "large pages" && form.contains(&"--stream");
            let also: &[&str] = if is_endless { &["--timeout", "3s"] } else { &[] };
            let args = [&["task", "list", "--all", "-a", &server.url], form, also].concat();
            let ended = Ended::of(&mut user.command(&args));
            let expected = if is_endless { LATE } else { BAD };
            assert_eq!(ended.error(), expected, "{name} {form:?}: {}", ended.err);
            assert!(ended.peak <= MOST_MEMORY, "{name}: {} MiB", ended.peak);
        }
    }
}
