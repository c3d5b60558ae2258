//! Cut, stalled and slow servers. A cut stream is taken up again, and a task whose stream fails is read instead.

use std::time::Duration;

use serde_json::json;

use super::server::{Asked, Sent, envelope, head, right, stream, task};
use super::{LATE, LOST, OK, Row, calls, check, each_call, nothing, streams};

/// An answer that promises more than comes.
fn part(bytes: &str) -> Vec<u8> {
    [head("200 OK", &["content-type: application/json", "content-length: 5000"]), bytes.into()].concat()
}

#[test]
fn p09_cut_answers_are_lost_connections() {
    let rows: &[Row] = &[
        calls("closed without an answer", LOST, |_| Sent::Bytes(Vec::new())),
        calls("cut in the status line", LOST, |_| Sent::Bytes(b"HTTP/1.1 20".to_vec())),
        calls("cut in the head", LOST, |_| Sent::Bytes(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec())),
        calls("cut in the body", LOST, |asked| Sent::Bytes(part(&envelope(asked, &task("COMPLETED"))[..40]))),
        calls("cut in a chunk", LOST, |_| {
            let chunked = head("200 OK", &["content-type: application/json", "transfer-encoding: chunked"]);
            Sent::Bytes([chunked, b"40\r\n{\"json".to_vec()].concat())
        }),
        // Nothing is known of the task yet, so there is nothing to go on with.
        streams("cut before the first event", [LOST, LOST, OK], |asked| match asked.before {
            0 => Sent::Bytes([stream(asked, &[]), b"data: {\"jsonrpc".to_vec()].concat()),
            _ => right(asked),
        }),
        streams("cut in the second event", [OK, OK, OK], |asked| match asked.before {
            0 => Sent::Bytes(
                [stream(asked, &[json!({"task": task("WORKING")})]), b"data: {\"json".to_vec()].concat(),
            ),
            _ => right(asked),
        }),
        streams("closed after the first event", [OK, OK, OK], |asked| {
            Sent::Bytes(stream(asked, &[json!({"task": task("WORKING")})]))
        }),
        each_call("cut for good", [LATE, LATE, LOST, LATE, LOST], |asked| {
            match (asked.before, asked.streams()) {
                (0, true) => Sent::Bytes(stream(asked, &[json!({"task": task("WORKING")})])),
                _ => Sent::Bytes(Vec::new()),
            }
        })
        .timeout("3s"),
    ];
    check(rows, &[], nothing);
}

#[test]
fn p09_silent_servers_are_given_up() {
    let rows: &[Row] = &[
        calls("no answer", LATE, |_| Sent::Stall(Vec::new())),
        calls("silent in the head", LATE, |_| Sent::Stall(b"HTTP/1.1 200 OK\r\ncontent-".to_vec())),
        calls("silent in the body", LATE, |_| Sent::Stall(part("{\"jsonrpc\""))),
        calls("informational for ever", LATE, |_| {
            Sent::Drip(b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5000), Duration::from_millis(1))
        }),
        streams("silent after the head", [LATE; 3], |asked| Sent::Stall(stream(asked, &[]))),
        streams("silent after an event", [LATE; 3], |asked| {
            Sent::Stall(stream(asked, &[json!({"task": task("WORKING")})]))
        }),
        streams("nothing but comments", [LATE; 3], |asked| {
            Sent::Endless(stream(asked, &[]), b": \n".repeat(99))
        }),
        calls("a byte now and then", LATE, |_| {
            Sent::Drip(part(&" ".repeat(5000)), Duration::from_millis(20))
        }),
    ];
    let rows: Vec<Row> = rows.iter().map(|row| Row { timeout: "1s", ..*row }).collect();
    check(&rows, &[], nothing);
}

#[test]
fn p09_slow_servers_are_waited_for() {
    fn slowly(asked: &Asked) -> Sent {
        match right(asked) {
            Sent::Bytes(bytes) => Sent::Drip(bytes, Duration::from_micros(200)),
            other => other,
        }
    }
    let rows: &[Row] = &[calls("calls", OK, slowly), super::card("the card", OK, slowly)];
    check(rows, &[], nothing);
}
