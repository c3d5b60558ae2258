//! Cards of hostile servers.

use serde_json::json;

use super::server::{Hostile, Sent, body, head, right, right_card};
use super::watched::Ended;
use super::{BAD_CARD, LATE, LOST, NO_CARD, NO_CREDENTIALS, OK, Row, check, nothing};
use crate::cli::User;

#[test]
fn p09_cards_that_are_none() {
    let rows: &[Row] = &[
        super::card("closed without an answer", LOST, |_| Sent::Bytes(Vec::new())),
        super::card("cut in the body", LOST, |asked| {
            let card = right_card(&asked.url).to_string();
            let length = format!("content-length: {}", card.len());
            Sent::Bytes([head("200 OK", &[&length]), card[..90].into()].concat())
        }),
        super::card("not HTTP", LOST, |_| Sent::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
        super::card("silent", LATE, |_| Sent::Stall(Vec::new())).timeout("1s"),
        super::card("silent in the body", LATE, |_| {
            Sent::Stall([head("200 OK", &[]), b"{".to_vec()].concat())
        })
        .timeout("1s"),
        super::card("a web page", NO_CARD, |_| body("<h1>Welcome</h1>")),
        super::card("not found", NO_CARD, |_| Sent::Bytes(head("404 Not Found", &["content-length: 0"]))),
        super::card("broken", NO_CARD, |_| Sent::Bytes(head("500 Oops", &["content-length: 0"]))),
        super::card("only for some", NO_CREDENTIALS, |_| {
            Sent::Bytes(head("401 Unauthorized", &["content-length: 0"]))
        }),
        super::card("compressed", NO_CARD, |_| {
            Sent::Bytes([&head("200 OK", &["content-encoding: gzip"])[..], b"\x1f\x8b\x08\x00\x00"].concat())
        }),
        super::card("half of the JSON", BAD_CARD, |asked| body(&right_card(&asked.url).to_string()[..90])),
        super::card("a list", BAD_CARD, |_| body("[]")),
        super::card("wrong types", BAD_CARD, |_| body(r#"{"name":7,"skills":"x"}"#)),
        super::card("not UTF-8", BAD_CARD, |asked| {
            let card = right_card(&asked.url).to_string();
            let (before, after) = card.split_once("Scripted").unwrap();
            body([before.as_bytes(), b"\xff", after.as_bytes()].concat())
        }),
        super::card("a body without an end", BAD_CARD, |_| {
            Sent::Endless([head("200 OK", &[]), b"{\"x\":\"".to_vec()].concat(), vec![b'x'; 1 << 16])
        }),
        super::card("a length that nobody can hold", BAD_CARD, |_| {
            Sent::Stall([head("200 OK", &["content-length: 999999999999"]), b"{".to_vec()].concat())
        }),
        super::card("a header without an end", BAD_CARD, |_| {
            Sent::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 1 << 16])
        }),
        super::card("redirected for ever", LOST, |asked| {
            let place = format!("location: {}/.well-known/agent-card.json?{}", asked.url, asked.head.len());
            Sent::Bytes(head("302 Found", &[&place, "content-length: 0"]))
        }),
    ];
    check(rows, &[], nothing);
}

/// The card may lead elsewhere, but neither the credentials nor the user's headers go along.
#[test]
fn p09_a_card_that_leads_elsewhere_gets_no_credentials_there() {
    let elsewhere = Hostile::start(right);
    let (there, place) = (elsewhere.url.clone(), elsewhere.url.clone());
    let named = Hostile::start(move |asked| match asked.is_card() {
        true => {
            let mut card = right_card(&there);
            card["securitySchemes"] = json!({"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
            body(card.to_string())
        }
        false => right(asked),
    });
    let moved = Hostile::start(move |_| {
        let place = format!("location: {place}/.well-known/agent-card.json");
        Sent::Bytes(head("307 Temporary Redirect", &[&place, "content-length: 0"]))
    });
    let user = User::new();
    for server in [&named, &moved] {
        let args = [
            "send",
            "hi",
            "-a",
            &server.url,
            "--bearer",
            "s3cret",
            "--svc-param",
            "X-Mine: s3cret",
            "-o",
            "json",
        ];
        let ended = Ended::of(&mut user.command(&args));
        assert_eq!((ended.code, ended.error().as_str()), (Some(0), OK), "{ended:?}");
        assert!(ended.err.contains("credentials and --svc-param headers are not sent"), "{ended:?}");
    }
    assert!(elsewhere.asked().iter().any(|asked| asked.method() == "SendStreamingMessage"));
    assert!(elsewhere.asked().iter().all(|asked| !asked.head.contains("s3cret")), "{:?}", elsewhere.asked());
}
