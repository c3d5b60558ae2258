//! `baton listen`: what it shows of the calls of agents, what it checks, and how it answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_protocol::signature::webhook::{WebhookSecret, sign};

use super::snapshots::compare;
use super::{Said, User};
use crate::served::{Served, baton, text};

/// Longer than any healthy step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const V1: &str = r#"{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-08-20T09:14:07.212Z"}}}"#;

/// A running `baton listen`. It is killed when dropped.
struct Listening {
    child: Child,
    address: String,
    welcome: String,
    stderr: BufReader<ChildStderr>,
}

impl Listening {
    fn start(user: &User, args: &[&str]) -> Self {
        Self::with(user.command(&[&["listen"], args].concat()))
    }

    fn with(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut welcome = String::new();
        while !welcome.contains("Ctrl-C") {
            assert!(stderr.read_line(&mut welcome).unwrap() > 0, "{welcome}");
        }
        let address =
            welcome.split("listening  http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Listening { child, address, welcome, stderr }
    }

    /// The status and the body of the answer.
    fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        self.send(&format!("{method} {path}"), headers, body.len(), body)
    }

    /// The answer to a body of this length, before it comes.
    fn announce(&self, headers: &[(&str, &str)], length: usize) -> u16 {
        self.send("POST /", headers, length, b"").0
    }

    fn send(&self, what: &str, headers: &[(&str, &str)], length: usize, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("{what} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {length}\r\n\r\n");
        stream.write_all(&[request.as_bytes(), body].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn post(&self, headers: &[(&str, &str)], body: &str) -> u16 {
        self.call("POST", "/hook", headers, body.as_bytes()).0
    }

    /// A call that the agent has signed.
    fn signed(&self, id: &str, body: &str) -> u16 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let signature = sign([&WebhookSecret::parse(SECRET).unwrap()], id, now, body.as_bytes());
        let now = now.to_string();
        self.post(&[("webhook-id", id), ("webhook-timestamp", &now), ("webhook-signature", &signature)], body)
    }

    /// Waits for a note with these words.
    fn notes(&mut self, words: &str) {
        let mut said = String::new();
        while !said.contains(words) {
            assert!(self.stderr.read_line(&mut said).unwrap() > 0, "{said}");
        }
    }

    /// Waits for its end.
    fn ended(mut self) -> Said {
        let mut err = String::new();
        self.stderr.read_to_string(&mut err).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        Said { code: self.child.wait().unwrap().code(), out, err }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Events of every generation, hostile text among them, as people see them.
#[test]
fn p09_cli_push_002_calls_are_shown() {
    let user = User::new();
    let listening = Listening::start(&user, &["--count", "5", "--token", "tok"]);
    let shown = listening.welcome.replace(&listening.address, "127.0.0.1:4000");
    for body in [
        V1,
        r#"{"kind":"task","id":"t-2","contextId":"c-2","status":{"state":"input-required","message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"Which day?"}]}},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"\u001b[31mred\u202e"}]}]}"#,
        r#"{"taskId":"t-3","eventType":"artifact","status":{"state":"working"},"artifact":{"parts":[{"type":"text","text":"part one\nState: fake"}],"index":0},"timestamp":"2026-08-20T09:14:07.212Z"}"#,
        r#"{"taskId":"t-3","eventType":"status","status":{"state":"paused"},"timestamp":"2026-08-20T09:14:07.212Z"}"#,
        r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hello"}]}}"#,
    ] {
        assert_eq!(
            listening
                .post(&[("x-a2a-notification-token", "tok"), ("webhook-id", &body.len().to_string())], body),
            200
        );
    }
    let Said { out, err, .. } = listening.ended().ok();
    assert_eq!(out.chars().find(|c| c.is_control() && *c != '\n'), None, "{out}");
    compare("listen", &format!("$ baton listen --count 5 --token tok\nstderr:\n{shown}{err}stdout:\n{out}"));
}

/// Both lines for the agent, once their words in upper case are replaced, lead to a call that is verified.
#[test]
fn p09_cli_push_002_what_is_printed_for_the_agent_can_be_pasted() {
    let (user, server) = (User::new(), Served::start());
    for (args, variable, secret) in [
        (&[][..], None, ""),
        (&["--token", "t0k"], None, "t0k"),
        (&["--secret", SECRET], None, SECRET),
        (&[], Some(("BATON_WEBHOOK_TOKEN", "t0k")), ""),
        (&[], Some(("BATON_WEBHOOK_SECRET", SECRET)), ""),
    ] {
        for label in ["use", "or"] {
            let mut command = user.command(&[&["listen", "--count", "1"], args].concat());
            command.envs(variable);
            let listening = Listening::with(command);
            assert!(!listening.welcome.contains("t0k") && !listening.welcome.contains(SECRET));
            let line = listening.welcome.lines().find_map(|line| line.strip_prefix(label)).unwrap();
            let task = user.run(&["send", &server.url, "wait until I cancel", "--async"]).ok();
            let mut line = line.trim().to_owned();
            for (word, meant) in [
                ("AGENT", server.url.as_str()),
                ("TEXT", "hello"),
                ("TASK_ID", task.field("Task")),
                (" TOKEN", &format!(" {}", secret)),
                (" SECRET", &format!(" {secret}")),
            ] {
                line = line.replace(word, meant);
            }
            Said::of(user.paste(&line).envs(variable)).ok();
            user.run(&["task", "cancel", &server.url, task.field("Task")]).ok();
            let said = listening.ended().ok();
            let is_checked = !args.is_empty() || variable.is_some();
            assert_eq!(said.field("Verified"), if is_checked { "yes" } else { "no" }, "{line}");
        }
    }
    // An address that stands for all of them is none to be called.
    let listening = Listening::start(&user, &["--listen", "0.0.0.0:0", "--allow-public"]);
    assert!(listening.welcome.contains("--push-url http://HOST:"), "{}", listening.welcome);
    // No webhook of Baton's has a token and another secret.
    let listening = Listening::start(&user, &["--token", "t0k", "--secret", SECRET]);
    assert!(listening.welcome.contains("another secret") && !listening.welcome.contains("baton send"));
    user.run(&["listen", "--token", ""]).failed(2);
}

#[test]
fn calls_as_lines_of_json() {
    let user = User::new();
    let listening = Listening::start(&user, &["-o", "json", "--count", "2"]);
    assert_eq!(
        listening.post(&[("webhook-id", "wh_1")], &V1.replace("t-1", "t\u{9b}1")),
        400,
        "ids are visible ASCII"
    );
    assert_eq!(listening.post(&[("webhook-id", "wh_1")], V1), 200);
    let legacy = r#"{"taskId":"t-3","eventType":"status","status":{"state":"working","message":{"role":"agent","parts":[{"type":"text","text":"\u009b2J"}]}}}"#;
    assert_eq!(listening.post(&[], legacy), 200);
    let said = listening.ended().ok();
    let lines = said.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[0],
        serde_json::json!({"call": 1, "id": "wh_1", "version": "1.0", "verified": false, "answer": 200,
            "event": serde_json::from_str::<serde_json::Value>(V1).unwrap()})
    );
    assert_eq!((&lines[1]["version"], &lines[1]["id"]), (&"0.1".into(), &serde_json::Value::Null));
    assert_eq!(lines[1]["event"]["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    assert!(said.out.contains(r"\u009b2J"), "escaped, and the same value: {}", said.out);
}

/// Only calls that were signed for this webhook are shown and counted; a repeated one is answered, not shown.
#[test]
fn p09_cli_push_002_signatures_are_verified() {
    let user = User::new();
    let listening = Listening::start(&user, &["--secret", SECRET, "--count", "2", "-o", "json"]);
    assert_eq!(listening.post(&[], V1), 401);
    assert_eq!(
        listening
            .post(&[("webhook-id", "a"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,AAAA")], V1),
        401
    );
    assert_eq!(listening.signed("wh_1", V1), 200);
    assert_eq!(listening.signed("wh_1", V1), 200);
    assert_eq!(listening.signed("wh_2", "{}"), 400);
    assert_eq!(listening.signed("wh_2", V1), 200);
    let said = listening.ended().ok();
    let shown: Vec<_> =
        said.lines().iter().map(|line| (line["id"].clone(), line["verified"].clone())).collect();
    assert_eq!(shown, [("wh_1".into(), true.into()), ("wh_2".into(), true.into())]);
    for part in [
        "401: the webhook is not signed",
        "401: the webhook's signature does not fit",
        "200: the event was received before",
        "400: the body is not",
    ] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

/// A server that signs its calls, and receivers that know its keys: by their address, and from a file.
#[tokio::test]
async fn s14_jwts_of_a_server_are_verified() {
    let user = User::new();
    let mut serve = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    let server = Served::of(serve.env("BATON_PUSH_JWT", "true"));
    let url = format!("{}/.well-known/jwks.json", server.url);
    let published = reqwest::get(&url).await.unwrap().text().await.unwrap();
    std::fs::write(user.folder().join("keys.json"), &published).unwrap();
    let call = async |listening: &Listening| {
        let push = serde_json::json!({"url": format!("http://{}/", listening.address)});
        let configuration = serde_json::json!({"taskPushNotificationConfig": push});
        let message = text(&format!("to-{}", listening.address), "Hello, Baton");
        server
            .call("SendMessage", serde_json::json!({"message": message, "configuration": configuration}))
            .await
    };
    for jwks in [&url, "keys.json"] {
        let listening = Listening::start(&user, &["--jwks", jwks, "--count", "1", "-o", "json"]);
        assert!(listening.welcome.contains("verifying  the JWT\n"), "{}", listening.welcome);
        assert_eq!(listening.post(&[], V1), 401);
        assert_eq!(listening.post(&[("authorization", "Bearer a.b.c"), ("webhook-id", "wh_1")], V1), 401);
        let task = call(&listening).await;
        let said = listening.ended().ok();
        assert_eq!(said.lines()[0]["verified"], true);
        assert_eq!(said.lines()[0]["event"]["task"]["id"], task["task"]["id"]);
        assert!(said.err.contains("401: the webhook's JWT does not fit: there is none"), "{}", said.err);
        assert!(
            said.err.contains("401: the webhook's JWT does not fit: it is not a signed JWT"),
            "{}",
            said.err
        );
    }
    let mut elsewhere =
        Listening::start(&user, &["--jwks", &url, "--audience", "https://hooks.example", "--token", "t"]);
    assert!(elsewhere.welcome.contains("verifying  the token and the JWT\n"), "{}", elsewhere.welcome);
    call(&elsewhere).await;
    elsewhere.notes("401: the notification token is missing");
    drop(elsewhere);
    let mut elsewhere = Listening::start(&user, &["--jwks", &url, "--audience", "https://hooks.example"]);
    call(&elsewhere).await;
    elsewhere.notes("401: the webhook's JWT does not fit: it is for another receiver");
    let others = published.replace("\"kid\":\"", "\"kid\":\"other-");
    std::fs::write(user.folder().join("keys.json"), others).unwrap();
    let mut elsewhere = Listening::start(&user, &["--jwks", "keys.json"]);
    call(&elsewhere).await;
    elsewhere.notes("401: the webhook's JWT does not fit: its key is none of the agent's");
}

/// The agent may start after the receiver. Until then nobody is believed.
#[test]
fn s14_keys_that_are_not_there_yet_are_told_and_calls_are_refused() {
    let user = User::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listening = Listening::start(&user, &["--jwks", &format!("http://{free}/keys")]);
    assert!(
        listening.welcome.contains("calls are refused until the keys can be fetched"),
        "{}",
        listening.welcome
    );
    let header = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ";
    assert_eq!(listening.post(&[("authorization", &format!("Bearer {header}.e30.AAAA"))], V1), 503);
    assert_eq!(listening.post(&[], V1), 401);
    for (args, words) in [
        (&["--jwks", "missing.json"][..], "missing.json"),
        (&["--jwks", "http://agent.example/keys"], "give an https address"),
        (&["--jwks", "ftp://agent.example/keys"], "not an http or https address"),
        (&["--audience", "https://hooks.example"], "--jwks"),
    ] {
        let said = user.run(&[&["listen"], args].concat()).failed(2);
        assert!(said.err.contains(words), "{said:?}");
    }
}

/// The statuses in turn, the last one for ever; an event that was answered with a failure may come again.
#[test]
fn p09_cli_push_002_answers_are_chosen() {
    let user = User::new();
    let args =
        ["--secret", SECRET, "--answer", "500,503,204", "--count", "4", "-o", "json", "--delay", "1ms"];
    let listening = Listening::start(&user, &args);
    let answers: Vec<u16> = ["wh_1", "wh_1", "wh_1", "wh_2"].map(|id| listening.signed(id, V1)).into();
    assert_eq!(answers, [500, 503, 204, 204]);
    let said = listening.ended().ok();
    let shown: Vec<_> = said.lines().iter().map(|line| line["answer"].as_u64().unwrap()).collect();
    assert_eq!(shown, [500, 503, 204, 204]);
}

#[test]
fn other_requests_are_refused() {
    let user = User::new();
    let listening = Listening::start(&user, &["--token", "tok", "--count", "1"]);
    let refused = [("x-a2a-notification-token", "other")];
    assert_eq!(listening.post(&refused, V1), 401);
    assert_eq!(listening.post(&[], V1), 401);
    let good = [("a2a-notification-token", "tok")];
    for body in ["", "hello", "[]", r#"{"a":1}"#] {
        assert_eq!(listening.post(&good, body), 400, "{body}");
    }
    assert_eq!(listening.announce(&good, 16 * 1024 * 1024 + 1), 413);
    assert_eq!(listening.call("PUT", "/", &good, V1.as_bytes()).0, 405);
    assert_eq!(listening.call("GET", "/", &[], b"").0, 405);
    assert_eq!(listening.call("GET", "/hook?validationToken=a%0Ab", &[], b"").0, 405);
    let challenged = listening.call("GET", "/hook?a=b&validationToken=abc-123", &[], b"");
    assert_eq!(challenged, (200, "abc-123".to_owned()), "agents of 0.3 may ask for this");
    assert_eq!(listening.post(&good, V1), 200);
    let said = listening.ended().ok();
    assert_eq!(said.field("Call"), "1");
}

#[test]
fn mistakes_are_told_without_secrets() {
    let user = User::new();
    let said = user.run(&["listen", "--secret", "whsec_s3cret"]).failed(2);
    assert!(said.err.contains("24 to 64 bytes") && !said.err.contains("s3cret"), "{said:?}");
    let said = user.run(&["listen", "--listen", "0.0.0.0:0"]).failed(2);
    assert!(said.err.contains("--allow-public"), "{said:?}");
    for bad in
        [["--answer", "99"], ["--answer", "200,x"], ["--delay", "soon"], ["--count", "0"], ["-o", "yaml"]]
    {
        user.run(&["listen", bad[0], bad[1]]).failed(2);
    }
    let mut command = user.command(&["listen", "--listen", "127.0.0.1:0"]);
    let said = Said::of(command.env("BATON_WEBHOOK_SECRET", "s3cret")).failed(2);
    assert!(!said.err.contains("s3cret"), "{said:?}");
}
