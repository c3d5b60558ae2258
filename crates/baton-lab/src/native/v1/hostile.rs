//! Malformed input. The agent may refuse it in any way, but it must answer, must not report an internal error, and must
//! keep working: after each input there is a call that must succeed.

use serde_json::{Value, json};

use super::raw_socket;
use super::shape::judge;
use super::talk::{COMPLETE, Say, fresh_id, skip};
use crate::acts::assertion::Mismatch;
use crate::generation::Binding;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, Request, answer};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.hostile.malformed" => malformed,
    "v1.hostile.not-utf8" => not_utf8,
    "v1.hostile.deep" => deep,
    "v1.hostile.huge" => huge,
    "v1.hostile.odd-texts" => odd_texts,
    "v1.hostile.odd-numbers" => odd_numbers,
    "v1.hostile.content-types" => content_types,
    "v1.hostile.odd-ids" => odd_ids,
    "v1.hostile.long-header" => long_header,
    "v1.hostile.half-requests" => half_requests,
    "v1.hostile.no-internals" => no_internals,
    "v1.hostile.duplicate-members" => duplicate_members,
};

/// Sends a raw body to the address for messages.
async fn post(bench: &Bench, content_type: Option<&str>, body: Vec<u8>) -> Done<Answer> {
    let params = Say::text(COMPLETE).params(bench);
    let mut request: Request = bench.request(Operation::SendMessage, &params).map_err(|none| skip(none.0))?;
    request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    request.headers.extend(content_type.map(|kind| ("Content-Type".to_owned(), kind.to_owned())));
    request.body = Some(body);
    ask(bench, &request).await
}

/// Largest part of an answer that is examined; refusals are short, and an echo of the input is not interesting.
const MOST_READ: usize = 256 * 1024;

async fn ask(bench: &Bench, request: &Request) -> Done<Answer> {
    let lost = |error| fail(format!("no answer: {error}"));
    let mut open = bench.probe().open(request).await.map_err(lost)?;
    let body = open.beginning(MOST_READ + 1).await.map_err(lost)?;
    let (status, headers) = (open.received.status, open.received.headers.clone());
    if body.len() > MOST_READ && status < 400 {
        return Ok(Answer::Reply { status, headers, root: None, body: None });
    }
    Ok(answer::read(bench.generation(), bench.binding(), &open.received, &body))
}

/// A complete request with a message, in the form of the binding.
fn framed(bench: &Bench, message: &str) -> Vec<u8> {
    // Asks for an immediate reply, in case the agent accepts it and works for a long time.
    framed_with(bench, &format!("{{\"message\":{message},\"configuration\":{{\"returnImmediately\":true}}}}"))
}

fn framed_with(bench: &Bench, params: &str) -> Vec<u8> {
    match bench.binding() {
        Binding::Jsonrpc => {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"SendMessage\",\"params\":{params}}}")
                .into_bytes()
        }
        Binding::Rest | Binding::Grpc => params.as_bytes().to_vec(),
    }
}

fn message(parts: &str, more: &str) -> String {
    format!("{{\"messageId\":\"{}\",\"role\":\"ROLE_USER\",\"parts\":{parts}{more}}}", fresh_id())
}

/// Checks that the agent still works: it must report an unknown task.
async fn works(bench: &Bench, after: &str) -> Done {
    let mut answer = bench.call(Operation::GetTask, &json!({ "id": fresh_id() })).await;
    if answer.is_err() {
        // A server may close the connection after bad input, at the moment when it is reused.
        answer = bench.call(Operation::GetTask, &json!({ "id": fresh_id() })).await;
    }
    match answer {
        Ok(Answer::Error(error)) if error.status < 500 && error.name.as_deref() != Some("InternalError") => {
            Ok(())
        }
        Ok(other) => Err(differs(format!("a good answer to the call after {after}"), other.summary())),
        Err(_) => Err(fail(format!("the agent does not answer any more after {after}"))),
    }
}

/// True if the error is reported as the client's mistake.
fn blames_the_client(answer: &Answer) -> bool {
    match answer {
        Answer::Error(error) => error.status < 500 && error.name.as_deref() != Some("InternalError"),
        _ => false,
    }
}

/// JSON-RPC has batches: the answer to a list is a list, with an error for each invalid entry.
fn is_refused_batch(binding: Binding, answer: &Answer) -> bool {
    let Answer::Reply { body: Some(Value::Array(answers)), .. } = answer else { return false };
    let refused = |answer: &Value| matches!(answer["error"]["code"].as_i64(), Some(code) if code != -32603);
    binding == Binding::Jsonrpc && !answers.is_empty() && answers.iter().all(refused)
}

fn is_sane(answer: &Answer) -> bool {
    matches!(answer, Answer::Reply { .. } | Answer::Stream { .. }) || blames_the_client(answer)
}

const MALFORMED: &[&str] = &[
    "",
    " ",
    "{",
    "}",
    "[",
    "\"text",
    "{\"jsonrpc\":\"2.0\",",
    "{'jsonrpc': '2.0'}",
    "{\"a\":1,}",
    "{\"a\":}",
    "{\"a\" 1}",
    "{} trailing",
    "nul",
    "NaN",
    "{\"a\":+1}",
    "{\"a\":01}",
    "{\"a\":1e}",
    "{\"a\":\"\u{1}\"}",
    "{\"a\":\"\\x\"}",
    "<xml/>",
    "null",
    "true",
    "42",
    "\"text\"",
    "[]",
    "[1,2]",
];

pub(in crate::native) async fn malformed(bench: &Bench) -> Done {
    let mut found = Vec::new();
    for body in MALFORMED {
        let answer = post(bench, Some("application/json"), body.as_bytes().to_vec()).await?;
        if !blames_the_client(&answer) && !is_refused_batch(bench.binding(), &answer) {
            let path = format!("body {}", json!(body));
            found.push(Mismatch { path, expected: "to be refused".to_owned(), actual: answer.summary() });
        }
        works(bench, &format!("the body {}", json!(body))).await?;
    }
    judge(found)
}

async fn not_utf8(bench: &Bench) -> Done {
    let mut body = framed(bench, &message("[{\"text\":\"@\"}]", ""));
    for byte in &mut body {
        if *byte == b'@' {
            *byte = 0xff;
        }
    }
    let answer = post(bench, Some("application/json"), body).await?;
    works(bench, "a body that is not UTF-8").await?;
    if blames_the_client(&answer) {
        Ok(())
    } else {
        Err(differs("a body that is not UTF-8 to be refused as the client's mistake", answer.summary()))
    }
}

/// Deep enough to overflow the stack of an unbounded recursion.
const DEPTH: usize = 50_000;

async fn deep(bench: &Bench) -> Done {
    let metadata = format!(",\"metadata\":{{\"deep\":{}{}}}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let objects = format!("{}1{}", "{\"a\":".repeat(DEPTH), "}".repeat(DEPTH));
    let data = format!("[{{\"data\":{objects}}}]");
    let text = format!("[{{\"text\":\"{COMPLETE}\"}}]");
    let bodies = [
        ("deep lists in metadata", framed(bench, &message(&text, &metadata))),
        ("deep objects in a part", framed(bench, &message(&data, ""))),
        ("a body of open brackets", "[".repeat(DEPTH * 2).into_bytes()),
    ];
    for (name, body) in bodies {
        let answer = post(bench, Some("application/json"), body).await?;
        works(bench, name).await?;
        if !is_sane(&answer) {
            // The agent reached a limit of its own; it still works, and did not accept the input.
            bench.note(format!("{name} is refused, but as the agent's own mistake: {}", answer.summary()));
        }
    }
    Ok(())
}

const MEBIBYTE: usize = 1024 * 1024;
/// Where the long text goes.
const LONG: &str = "@long@";

async fn huge(bench: &Bench) -> Done {
    let text = format!("[{{\"text\":\"{COMPLETE}\"}}]");
    for (name, message) in [
        ("a text of 1 MiB", message(&format!("[{{\"text\":\"{COMPLETE}\"}},{{\"text\":\"{LONG}\"}}]"), "")),
        ("a metadata key of 1 MiB", message(&text, &format!(",\"metadata\":{{\"{LONG}\":1}}"))),
        ("a contextId of 1 MiB", message(&text, &format!(",\"contextId\":\"{LONG}\""))),
    ] {
        let answer = post(bench, Some("application/json"), lengthened(&framed(bench, &message))).await?;
        works(bench, name).await?;
        if !is_sane(&answer) {
            return Err(differs(format!("{name} taken or refused"), answer.summary()));
        }
    }
    Ok(())
}

/// The body with 1 MiB of text in place of the marker, built in one allocation because of its size.
fn lengthened(body: &[u8]) -> Vec<u8> {
    let at = body.windows(LONG.len()).position(|window| window == LONG.as_bytes()).unwrap_or(body.len());
    let mut long = Vec::with_capacity(body.len() + MEBIBYTE);
    long.extend_from_slice(&body[..at]);
    long.resize(at + MEBIBYTE, b'x');
    long.extend_from_slice(body.get(at + LONG.len()..).unwrap_or_default());
    long
}

async fn odd_texts(bench: &Bench) -> Done {
    for (name, text) in [
        ("NUL", "a\\u0000b"),
        ("a lone high surrogate", "a\\ud800b"),
        ("a lone low surrogate", "\\udc00"),
        ("the end of Unicode", "\\udbff\\udfff"),
        ("text directions", "\\u202e\\u2066"),
        ("control letters", "\\u0001\\u001b[31m\\u007f"),
    ] {
        for body in [
            message(&format!("[{{\"text\":\"{COMPLETE}\"}},{{\"text\":\"{text}\"}}]"), ""),
            message(&format!("[{{\"text\":\"{COMPLETE}\"}}]"), &format!(",\"taskId\":\"{text}\"")),
        ] {
            let answer = post(bench, Some("application/json"), framed(bench, &body)).await?;
            works(bench, name).await?;
            if !is_sane(&answer) {
                return Err(differs(format!("{name} taken or refused"), answer.summary()));
            }
        }
    }
    Ok(())
}

async fn odd_numbers(bench: &Bench) -> Done {
    for number in ["9223372036854775808", "-1", "1.5", "1e400", "\"3\"", "null", "[]", "true"] {
        let configuration = format!("{{\"historyLength\":{number},\"returnImmediately\":true}}");
        let message = message(&format!("[{{\"text\":\"{COMPLETE}\"}}]"), "");
        let params = format!("{{\"message\":{message},\"configuration\":{configuration}}}");
        let answer = post(bench, Some("application/json"), framed_with(bench, &params)).await?;
        works(bench, &format!("historyLength {number}")).await?;
        if !is_sane(&answer) {
            return Err(differs(format!("historyLength {number} taken or refused"), answer.summary()));
        }
    }
    Ok(())
}

async fn content_types(bench: &Bench) -> Done {
    let body = framed(bench, &message(&format!("[{{\"text\":\"{COMPLETE}\"}}]"), ""));
    for kind in [
        None,
        Some("text/plain"),
        Some("application/xml"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
        Some("application/json; charset=utf-16"),
        Some("no media type"),
    ] {
        let answer = post(bench, kind, body.clone()).await?;
        let name = format!("the content type {}", kind.unwrap_or("(none)"));
        works(bench, &name).await?;
        if !is_sane(&answer) {
            return Err(differs(format!("{name} taken or refused"), answer.summary()));
        }
    }
    Ok(())
}

/// Ids with special characters for file systems, routers or databases.
pub(in crate::native) async fn odd_ids(bench: &Bench) -> Done {
    let long = "i".repeat(4000);
    for id in [
        "..",
        "../../etc/passwd",
        "a/b",
        "a:b",
        "a:cancel",
        "%2e%2e",
        "' OR 1=1 --",
        "{id}",
        "*",
        "ä🏃",
        " ",
        &long,
    ] {
        for operation in [Operation::GetTask, Operation::CancelTask] {
            let answer = bench.call(operation, &json!({ "id": id })).await?;
            if !blames_the_client(&answer) {
                let shown: String = id.chars().take(40).collect();
                let wanted = format!("{} of the id {} to be refused", bench.called(operation), json!(shown));
                return Err(differs(wanted, answer.summary()));
            }
        }
    }
    works(bench, "odd task ids").await
}

async fn long_header(bench: &Bench) -> Done {
    let request = bench.request(Operation::GetTask, &json!({ "id": fresh_id() }));
    let mut request = request.map_err(|none| skip(none.0))?;
    let uris: Vec<String> =
        (0..200).map(|number| format!("https://example.com/extensions/{number}/{}", fresh_id())).collect();
    request.headers.push(("A2A-Extensions".to_owned(), uris.join(",")));
    let answer = ask(bench, &request).await?;
    works(bench, "a header of 14 KiB").await?;
    if is_sane(&answer) {
        Ok(())
    } else {
        Err(differs("a header of 14 KiB taken or refused", answer.summary()))
    }
}

async fn half_requests(bench: &Bench) -> Done {
    let url = &bench.interface().url;
    let (address, path, tls) = raw_socket::parts(url)?;
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    const HELLO: &str = "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}";
    let halves = [
        String::new(),
        "POST ".to_owned(),
        head.clone(),
        format!("{head}Content-Length: 1000\r\n\r\n{{\"jsonrpc\":"),
        format!("{head}Content-Length: nonsense\r\n\r\n{{}}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nffff\r\n{{"),
        HELLO.to_owned(),
        "GET http://[ HTTP/9.9\r\n\r\n".to_owned(),
    ];
    for round in 0..3 {
        for half in &halves {
            raw_socket::write_and_leave(bench.probe(), url, half.as_bytes()).await?;
        }
        if tls {
            // Half handshakes, and a request without one.
            for half in ["", HELLO, "GET / HTTP/1.1\r\n\r\n"] {
                raw_socket::write_bare_and_leave(bench.probe(), url, half.as_bytes()).await?;
            }
        }
        works(bench, &format!("round {} of half requests", round + 1)).await?;
    }
    Ok(())
}

/// Typical text of stack traces in many programming languages.
const INTERNALS: &[&str] = &[
    "Traceback (most recent call last)",
    ".py\\\", line ",
    "panicked at",
    "RUST_BACKTRACE",
    "goroutine 1 [",
    "Exception in thread",
    "\\n\\tat ",
    "\\n    at ",
    "node_modules/",
    "System.NullReferenceException",
];

fn internals(text: &str) -> Option<&'static str> {
    INTERNALS.iter().find(|mark| text.contains(**mark)).copied()
}

async fn no_internals(bench: &Bench) -> Done {
    let wrong = message("\"not a list\"", "");
    let bodies = [b"{".to_vec(), framed(bench, &wrong), framed(bench, "7"), b"[]".to_vec()];
    for body in bodies {
        let answer = post(bench, Some("application/json"), body).await?;
        if let Answer::Error(error) = &answer {
            let text = error.body.as_ref().map(Value::to_string).unwrap_or_default();
            if let Some(mark) = internals(&text) {
                return Err(differs("an error without a stack trace", format!("`{mark}` in the body")));
            }
        }
    }
    Ok(())
}

async fn duplicate_members(bench: &Bench) -> Done {
    let twice =
        message(&format!("[{{\"text\":\"{COMPLETE}\",\"text\":\"other\"}}]"), ",\"role\":\"ROLE_USER\"");
    let answer = post(bench, Some("application/json"), framed(bench, &twice)).await?;
    works(bench, "members that are there twice").await?;
    if is_sane(&answer) {
        Ok(())
    } else {
        Err(differs("members that are there twice, taken or refused", answer.summary()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_takes_the_place_of_its_mark() {
        let long = lengthened(format!("{{\"a\":\"{LONG}\"}}").as_bytes());
        assert_eq!(long.len(), MEBIBYTE + r#"{"a":""}"#.len());
        assert!(long.starts_with(br#"{"a":"xx"#) && long.ends_with(br#"xx"}"#));
    }

    #[test]
    fn whatever_is_malformed_is_no_request() {
        for body in MALFORMED {
            let read: Result<Value, _> = serde_json::from_str(body);
            assert!(!read.is_ok_and(|value| value.is_object()), "{body}");
        }
    }

    #[test]
    fn stack_traces_are_known() {
        let trace =
            json!({"message": "Traceback (most recent call last):\n  File \"a.py\", line 1"}).to_string();
        assert!(internals(&trace).is_some());
        let java = json!({"message": "x\n\tat org.a.B.c(B.java:1)"}).to_string();
        assert!(internals(&java).is_some());
        assert!(internals(&json!({"message": "pageSize must be at most 100"}).to_string()).is_none());
    }
}
