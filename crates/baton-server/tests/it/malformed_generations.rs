//! Hundreds of faults in every generation and binding, derived from the type of each member: every one gets the right client
//! error, and nothing is stored.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::bad_values::members;
use crate::faces::{Face, Say};
use crate::harness::{TestServer, serve_agent};
use crate::shapes::send_params;
use crate::speakers::{envelope, read, request};

const FACES: [Face; 5] = [Face::V1Http, Face::V1Tenant, Face::V03Rpc, Face::V03Http, Face::V01Rpc];

/// Sends requests that must be refused, and counts them.
struct FaultRunner {
    server: TestServer,
    face: Face,
    count: usize,
}

impl FaultRunner {
    async fn new(face: Face) -> Self {
        FaultRunner { server: serve_agent(obedient).await, face, count: 0 }
    }

    /// Status and code of an error in this face.
    fn expected(&self, reason: &str) -> (u16, i64) {
        let (status, code) = match reason {
            "PARSE_ERROR" => (400, -32700),
            "INVALID_REQUEST" => (400, -32600),
            "INVALID_PARAMS" => (400, -32602),
            "TASK_NOT_FOUND" => (404, -32001),
            "METHOD_NOT_FOUND" => (404, -32601),
            "VERSION_NOT_SUPPORTED" => (400, -32009),
            "" => (415, -32600),
            other => panic!("{other}"),
        };
        let told_by_status = matches!(reason, "PARSE_ERROR" | "");
        if self.face.is_rpc() && !told_by_status { (200, code) } else { (status, code) }
    }

    async fn refused(&mut self, line: &str, headers: &[(&str, &str)], body: String, reason: &str) {
        let (method, path) = line.split_once(' ').unwrap();
        let mut all = self.face.headers();
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| name == other));
        all.extend_from_slice(headers);
        let shown: String = format!("{:?} {line} {headers:?} {body}", self.face).chars().take(400).collect();
        let answer = read(request(&self.server, method.parse().unwrap(), path, &all, body).await).await;
        let (status, code) = self.expected(reason);
        assert_eq!(answer.status, status, "{shown}: {}", answer.body);
        let error = &answer.body["error"];
        if self.face.is_rpc() {
            assert_eq!(error["code"], code, "{shown}: {error}");
        } else {
            let found = error["details"][0]["reason"].as_str().unwrap_or_default();
            assert_eq!(found, reason, "{shown}: {error}");
        }
        let text = error["message"].as_str().unwrap_or_default();
        assert!(!text.is_empty() && text.len() < 1000, "{shown}: {text}");
        self.count += 1;
    }

    /// Makes a call in the JSON of its face, which must be refused.
    async fn call(&mut self, call: &str, headers: &[(&str, &str)], params: &str, reason: &str) {
        if !self.face.is_rpc() {
            let line = call.replacen(" /", &format!(" {}/", self.face.prefix()), 1);
            return self.refused(&line, headers, params.to_owned(), reason).await;
        }
        let body = envelope(call, &Value::Null).replace(":null", &format!(":{params}"));
        self.refused("POST /", headers, body, reason).await;
    }

    fn sends(&self) -> [&'static str; 2] {
        match self.face {
            Face::V03Rpc => ["message/send", "message/stream"],
            Face::V01Rpc => ["tasks/send", "tasks/sendSubscribe"],
            _ => ["POST /message:send", "POST /message:stream"],
        }
    }

    fn good(&self) -> Value {
        let mut params = send_params(self.face, &Say::text("m", "go"));
        if self.face == Face::V01Rpc {
            params["pushNotification"] = Value::Null;
        }
        params
    }

    async fn done(self, at_least: usize) {
        assert!(self.count >= at_least, "{:?}: {}", self.face, self.count);
        assert_eq!(self.server.task_count().await, 0, "{:?}", self.face);
    }
}

#[tokio::test]
async fn p03_members_of_the_wrong_shape_are_invalid_in_every_generation() {
    for face in FACES {
        let mut bench = FaultRunner::new(face).await;
        for call in bench.sends() {
            for (place, kind, may_miss) in members(face) {
                let mut values = kind.bad(face);
                if !may_miss {
                    values.push(Value::Null);
                }
                for value in values {
                    let mut params = bench.good();
                    let (parent, member) = place.rsplit_once('/').unwrap();
                    match params.pointer_mut(parent).unwrap() {
                        Value::Array(items) => items[0] = value,
                        object => object[member] = value,
                    }
                    bench.call(call, &[], &params.to_string(), "INVALID_PARAMS").await;
                }
            }
            for whole in ["[]", "\"x\"", "1", "true", "{}", "null", r#"{"message":null}"#] {
                bench.call(call, &[], whole, "INVALID_PARAMS").await;
            }
        }
        bench.done(180).await;
    }
}

#[tokio::test]
async fn p03_a_body_cut_anywhere_is_a_parse_error_in_every_generation() {
    for face in FACES {
        let mut bench = FaultRunner::new(face).await;
        let call = bench.sends()[0];
        let params = bench.good().to_string();
        let (line, whole) = if face.is_rpc() {
            ("POST /".to_owned(), envelope(call, &bench.good()))
        } else {
            (call.replacen(" /", &format!(" {}/", face.prefix()), 1), params)
        };
        for end in 1..whole.len() {
            bench.refused(&line, &[], whole[..end].to_owned(), "PARSE_ERROR").await;
        }
        for more in ["}", ",", "{}", "\0", "x"] {
            bench.refused(&line, &[], format!("{whole}{more}"), "PARSE_ERROR").await;
        }
        bench.done(80).await;
    }
}

#[tokio::test]
async fn p03_odd_spellings_are_invalid_in_every_generation() {
    for face in FACES {
        let mut bench = FaultRunner::new(face).await;
        let good = bench.good().to_string();
        let role = if matches!(face, Face::V03Rpc | Face::V01Rpc) {
            r#""role":"user""#
        } else {
            r#""role":"ROLE_USER""#
        };
        for (from, to) in [
            (r#""go""#, r#""\ud800""#),
            (r#""go""#, r#""\udc00\ud800""#),
            (role, &format!("{role},{role}")),
            (r#""metadata":{}"#, r#""metadata":{"a":1,"a":2}"#),
            (r#""metadata":{}"#, r#""metadata":{"\ud800":1}"#),
            (r#""text":"go""#, r#""text":"go","text":"go""#),
        ] {
            assert!(good.contains(from), "{good}");
            for call in bench.sends() {
                bench.call(call, &[], &good.replacen(from, to, 1), "INVALID_PARAMS").await;
            }
        }
        bench.done(12).await;
    }
}

#[tokio::test]
async fn p03_ids_headers_and_cursors_that_cannot_be_are_refused_in_every_generation() {
    for face in FACES {
        let mut bench = FaultRunner::new(face).await;
        let long = "x".repeat(300);
        if face.is_rpc() {
            for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
                for id in [
                    r#""a\nb""#,
                    r#""""#,
                    r#""\u0000""#,
                    "1",
                    "[]",
                    "{}",
                    "null",
                    "true",
                    &format!("\"{long}\""),
                ] {
                    bench.call(method, &[], &format!(r#"{{"id":{id}}}"#), "INVALID_PARAMS").await;
                }
                for params in ["[]", "{}", "null", "\"x\"", r#"{"id":"a","id":"b"}"#] {
                    bench.call(method, &[], params, "INVALID_PARAMS").await;
                }
                bench.call(method, &[], r#"{"id":"nobody"}"#, "TASK_NOT_FOUND").await;
            }
            for method in ["tasks/sent", "Tasks/get", "", "message:send", "rpc.on"] {
                let reason = if method.is_empty() { "INVALID_REQUEST" } else { "METHOD_NOT_FOUND" };
                bench.call(method, &[], "{}", reason).await;
            }
        }
        let list = if face.is_rpc() { "tasks/list" } else { "GET /tasks" };
        let tokens = ["x", "AAAA", "-1", "0", "%", "MSAxIDEgMSB4", "../../etc", "'; drop table tasks", &long];
        for token in tokens {
            if face.is_rpc() {
                bench.call(list, &[], &json!({"pageToken": token}).to_string(), "INVALID_PARAMS").await;
            } else {
                let encoded: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
                bench.call(&format!("{list}?pageToken={encoded}"), &[], "", "INVALID_PARAMS").await;
            }
        }
        let [send, stream] = bench.sends();
        let good = bench.good().to_string();
        for version in ["9", "1", "2.0", "x", "1.0, 0.3", "0.3.x", "-1", "1.0.0.0", "ünï"] {
            bench.call(send, &[("a2a-version", version)], &good, "VERSION_NOT_SUPPORTED").await;
        }
        let other = if face.is_v1() { "0.3" } else { "1.0" };
        bench.call(send, &[("a2a-version", other)], &good, "VERSION_NOT_SUPPORTED").await;
        for number in ["x", "-1", "+1", "1.0", "1 2", "0x1", "99999999999999999999", "ünï"] {
            bench.call(stream, &[("last-event-id", number)], &good, "INVALID_PARAMS").await;
        }
        bench.call(stream, &[("last-event-id", "1")], &good, "TASK_NOT_FOUND").await;
        for kind in ["text/plain", "application/xml", "multipart/form-data", "json", "application/", "ünï"]
        {
            bench.call(send, &[("content-type", kind)], &good, "").await;
        }
        bench.done(30).await;
    }
}
