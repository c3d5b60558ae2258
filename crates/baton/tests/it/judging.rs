//! `baton test --as-server` on the command line: exit codes, a command, a client that hangs, mistakes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::baton;

/// Much longer than any test here takes.
const HANG: Duration = Duration::from_secs(60);

fn judge(args: &[&str]) -> Command {
    let mut command = baton(&["test", "--as-server"]);
    command.args(args).stdin(Stdio::null());
    command
}

struct Ended {
    code: Option<i32>,
    out: String,
    said: String,
}

fn ended(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), out: text(stdout), said: text(stderr) }
}

/// One request, by hand.
fn ask(url: &str, method: &str, headers: &str, body: &str) -> (String, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    socket.set_read_timeout(Some(HANG)).unwrap();
    let length = body.len();
    write!(
        socket,
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut all = String::new();
    socket.read_to_string(&mut all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

const RIGHT: &str = "content-type: application/json\r\na2a-version: 1.0\r\n";
const NO_VERSION: &str = "content-type: application/json\r\n";

/// Finds the card, and sends a message to where it says.
fn send(url: &str, headers: &str) -> String {
    let (_, card) = ask(&format!("{url}/.well-known/agent-card.json"), "GET", "", "");
    let card: Value = serde_json::from_str(&card).unwrap();
    let interface = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    let message = json!({"messageId": format!("m-{}", std::process::id()), "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    ask(interface, "POST", headers, &body.to_string()).1
}

/// Serves one script until nobody calls any more; `call` is given its address.
fn while_served(script: &str, call: impl FnOnce(&str)) -> Ended {
    let args = ["--script", script, "--binding", "jsonrpc", "--until-idle", "300ms"];
    let mut child: Child = judge(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find(|line| line.starts_with("http://")).unwrap();
    call(&url);
    let said = lines.collect::<Vec<_>>().join("\n");
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    Ended { code: status.code(), out: String::from_utf8(stdout).unwrap(), said }
}

#[test]
fn exit_codes_tell_right_clients_from_wrong_ones_from_none() {
    let right = while_served("send", |url| {
        assert!(send(url, RIGHT).contains("TASK_STATE_COMPLETED"));
    });
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.said);
    let wrong = while_served("send", |url| drop(send(url, NO_VERSION)));
    assert_eq!(wrong.code, Some(1), "{}{}", wrong.out, wrong.said);
    for said in ["C1-VER-001", "section 3.6.1", "no such header", "remedy", "/1.0-jsonrpc/send/a2a"] {
        assert!(wrong.out.contains(said), "{said}: {}", wrong.out);
    }
    assert!(wrong.said.contains("the client does not conform"), "{}", wrong.said);
    let nobody = ended(&mut judge(&["--timeout", "100ms", "--script", "send"]));
    assert_eq!(nobody.code, Some(2), "{}{}", nobody.out, nobody.said);
    assert!(nobody.said.contains("no client called"), "{}", nobody.said);
}

/// A client as a command: the test binary itself, which the environment tells to act as a client.
fn command(script: &str, manner: &str, more: &[&str]) -> Ended {
    let own = std::env::current_exe().unwrap();
    let mut command = judge(&["--script", script, "--binding", "jsonrpc"]);
    command.args(more).arg("--").arg(own).args(["--exact", "judging::a_client", "--nocapture"]);
    ended(command.env("JUDGED", manner))
}

/// Not a test: this is what [`command`] runs.
#[test]
fn a_client() {
    let (Ok(manner), Ok(url)) = (std::env::var("JUDGED"), std::env::var("A2A_URL")) else { return };
    let reply = send(&url, RIGHT);
    eprintln!("{reply}");
    match manner.as_str() {
        "hangs" => loop {
            std::thread::park();
        },
        "shrugs" => {}
        _ => {
            let reply: Value = serde_json::from_str(&reply).unwrap();
            println!("{}", reply["result"]["task"]["artifacts"][0]["parts"][0]["text"].as_str().unwrap());
        }
    }
}

#[test]
fn a_command_is_run_on_every_script_and_judged_by_its_end() {
    let good = command("send,html,error-version", "reads", &["--format", "json"]);
    assert_eq!(good.code, Some(0), "{}{}", good.out, good.said);
    let report: Value = serde_json::from_str(&good.out).unwrap();
    assert_eq!(report["conformanceLevel"], "full", "{}", good.out);
    for line in ["1.0-jsonrpc send", "1.0-jsonrpc html", "1.0-jsonrpc error-version"] {
        assert!(good.said.contains(line), "{}", good.said);
    }
    let careless = command("send,html", "shrugs", &[]);
    assert_eq!(careless.code, Some(1), "{}{}", careless.out, careless.said);
    assert!(
        careless.out.contains("C1-BAD-001") && !careless.out.contains("FAIL  C1-READ"),
        "{}",
        careless.out
    );
}

#[test]
fn a_client_that_hangs_is_stopped_and_told_of() {
    let began = Instant::now();
    let run = command("send", "hangs", &["--timeout", "1s"]);
    assert!(began.elapsed() < HANG);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.said);
    assert!(run.out.contains("C1-RUN-001") && run.out.contains("did not end within 1 s"), "{}", run.out);
}

#[test]
fn what_there_is_can_be_listed_and_explained_and_mistakes_are_named() {
    let list = ended(&mut judge(&["--list"]));
    assert_eq!(list.code, Some(0));
    for name in ["stream-cut", "C1-SEND-001", "checks"] {
        assert!(list.out.contains(name), "{name}: {}", list.out);
    }
    assert!(!list.out.contains("C03-"), "{}", list.out);
    let explained = ended(&mut baton(&["test", "--explain", "C03-STREAM-004"]));
    assert_eq!(explained.code, Some(0), "{}", explained.said);
    assert!(explained.out.contains("sse-multi-line") && explained.out.contains("0.3"), "{}", explained.out);
    for (args, said) in [
        (&["--as-server", "--script", "steam"][..], "did you mean `stream`"),
        (&["http://127.0.0.1:1", "--select", "C1-SEND-001"], "add --as-server"),
        (&["--as-server", "http://127.0.0.1:1"], "takes no address"),
        (&["--as-server", "--binding", "grpc"], "do not speak gRPC yet"),
        (&["--listen", "127.0.0.1:0", "http://127.0.0.1:1"], "add --as-server"),
        (&["--as-server", "--script", "send", "--", "/no/such/program"], "cannot be run"),
    ] {
        let run = ended(&mut baton(&[&["test"], args].concat()));
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.said);
        assert!(run.said.contains(said), "{args:?}: {}", run.said);
    }
}
