//! The requests, as JSON-RPC of protocol version 1.0, and a blocking call for single requests.

use std::io::{Read, Write};
use std::time::Duration;

use bench_load::{Answer, Calls, MARK, post};
use serde_json::Value;

use crate::server::Server;

/// Contained in a finished task, and in a stream's last event.
pub const COMPLETED: &str = "TASK_STATE_COMPLETED";
/// Contained in every successful reply.
pub const RESULT: &str = "\"result\"";

const PATIENCE: Duration = Duration::from_secs(60);

/// A short message with a new id.
pub fn send(method: &str, text: &str, more: &str) -> String {
    // Message ids must not repeat between points of one run, nor between runs on one store.
    let start = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    format!(
        r#"{{"jsonrpc":"2.0","id":"{MARK}","method":"{method}","params":{{"message":{{"messageId":"{start:019x}-{MARK}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}{more}}}}}"#
    )
}

pub const TEXT: &str = "Please tell me what I have told you.";

pub fn send_calls(server: &Server) -> Calls {
    Calls::stamped(server.path, &server.headers, &send("SendMessage", TEXT, ""))
}

pub fn stream_calls(server: &Server, text: &str) -> Calls {
    Calls::stamped(server.path, &server.headers, &send("SendStreamingMessage", text, ""))
}

pub fn get(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{{"id":"{id}"}}}}"#)
}

pub fn get_calls(server: &Server, ids: &[String]) -> Calls {
    Calls::Listed(ids.iter().map(|id| post(server.path, &server.headers, &get(id))).collect())
}

pub fn subscribe_calls(server: &Server, id: &str) -> Calls {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{{"id":"{id}"}}}}"#);
    Calls::Listed(vec![post(server.path, &server.headers, &body)])
}

pub const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":50}}"#;
pub const LIST_BRIEF: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":50,"historyLength":0}}"#;

pub fn list_calls(server: &Server) -> Calls {
    list_calls_of(server, LIST)
}

pub fn list_calls_of(server: &Server, body: &str) -> Calls {
    Calls::Listed(vec![post(server.path, &server.headers, body)])
}

/// Sends one request on a new connection, and returns the raw body.
pub fn ask(server: &Server, body: &str) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| format!("{}: {error}", server.target.address);
    let mut link = server.target.connect().map_err(said)?;
    link.socket().set_read_timeout(Some(PATIENCE)).map_err(said)?;
    link.write_all(&post(server.path, &server.headers, &body.replace(MARK, "000000000000"))).map_err(said)?;
    let mut answer = Answer::default();
    let mut buffer = vec![0; 65536];
    loop {
        let count = link.read(&mut buffer).map_err(said)?;
        if count == 0 && !answer.ends_with_connection() {
            return Err(format!("{}: closed in the middle of an answer", server.target.address));
        }
        let whole =
            answer.feed(&buffer[..count]).map_err(|_| format!("{}: not HTTP/1.1", server.target.address))?;
        if whole || count == 0 {
            break;
        }
    }
    if answer.status() != 200 {
        let text = String::from_utf8_lossy(answer.body());
        return Err(format!("{}: {} {text}", server.target.address, answer.status()));
    }
    Ok(answer.body().to_vec())
}

/// The id of a new task.
pub fn task_id(server: &Server, text: &str, more: &str) -> Result<String, String> {
    let reply = ask(server, &send("SendMessage", text, more))?;
    let value: Value = serde_json::from_slice(&reply).map_err(|error| error.to_string())?;
    let id = value["result"]["task"]["id"].as_str();
    id.map(str::to_owned).ok_or_else(|| format!("no task in {}", String::from_utf8_lossy(&reply)))
}

pub fn task_ids(server: &Server, count: usize) -> Result<Vec<String>, String> {
    (0..count).map(|_| task_id(server, TEXT, "")).collect()
}
