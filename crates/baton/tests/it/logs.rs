use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::{Served, baton, finished, text};

const HANG: Duration = Duration::from_secs(60);

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];

/// Lines about requests, in the order they came.
fn requests(log: &str) -> Vec<Value> {
    let lines =
        log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")));
    lines.filter(|line| line["target"] == "baton_server::request").collect()
}

#[tokio::test]
async fn every_request_has_its_line_when_that_is_asked_for() {
    let server = Served::with(&[&SERVE[..], &["--log-requests", "--log-format", "json"]].concat());
    let message = json!({"message": text("one", "Hello, Baton")});
    server.call_with("SendMessage", message, &[("X-Request-Id", "order-66")]).await;
    server.ask("GetTask", json!({"id": "nope"})).await;
    reqwest::get(format!("{}/tasks/some-id?key=value", server.url)).await.unwrap();
    let events = server.send_stream(text("two", "tell me a story")).await.len();
    reqwest::get(format!("{}/metrics", server.url)).await.unwrap();

    let lines = requests(&server.stop_and_log());
    assert_eq!(lines.len(), 4, "one line each, and none for a scrape: {lines:#?}");
    let of = |line: &Value, names: &[&str]| names.iter().map(|name| line[*name].clone()).collect::<Vec<_>>();
    let said = ["method", "route", "binding", "generation", "operation", "outcome", "status"];
    assert_eq!(
        of(&lines[0], &said),
        [
            json!("POST"),
            json!("/"),
            json!("jsonrpc"),
            json!("1.0"),
            json!("SendMessage"),
            json!("ok"),
            json!(200)
        ]
    );
    assert_eq!(
        of(&lines[0], &["request.id", "agent", "caller", "level", "message"]),
        ["order-66", "default", "anonymous", "INFO", "request"]
    );
    assert!(lines[0]["duration_ms"].as_f64().unwrap() > 0.0, "{lines:#?}");
    assert_eq!(lines[1]["outcome"], "TASK_NOT_FOUND");
    // No path as it was typed, no query.
    assert_eq!(of(&lines[2], &["route", "outcome"]), ["/tasks/{id}", "VERSION_NOT_SUPPORTED"]);
    assert_eq!(of(&lines[3], &["operation", "events"]), [json!("SendStreamingMessage"), json!(events)]);
}

/// Successful requests and client mistakes are not logged at `info`; refusals because of the server's state are.
#[tokio::test]
async fn without_that_only_what_could_not_be_served_has_one() {
    let mut command = baton(&[&SERVE[..], &["--log-format", "json"]].concat());
    let server = Served::of(command.env("BATON_LIMITS_MAX_RUNNING", "1").env("BATON_LIMITS_MAX_QUEUED", "1"));
    let held = server.start_task(text("held", "wait until I cancel")).await;
    server.start_task(text("queued", "Hello, Baton")).await;
    server.ask("GetTask", json!({"id": "nope"})).await;
    let params = json!({"message": text("refused", "Hello, Baton")});
    assert_eq!(server.post("SendMessage", params).await.status(), 503);
    server.cancel(&held).await;
    let lines = requests(&server.stop_and_log());
    let told: Vec<_> =
        lines.iter().map(|line| (&line["outcome"], &line["level"], &line["message"])).collect();
    let expected = (&json!("RESOURCE_EXHAUSTED"), &json!("INFO"), &json!("a request was refused"));
    assert_eq!(told, [expected], "{lines:#?}");
}

#[tokio::test]
async fn a_log_of_level_debug_has_spans_with_the_ids() {
    let mut command = baton(&SERVE);
    let server = Served::of(command.env("BATON_LOG", "debug"));
    let task = server.send(text("one", "Hello, Baton")).await;
    let log = server.stop_and_log();
    let id = task["id"].as_str().unwrap();
    let turn = format!("turn{{task.id={id} task.key=1 attempt=1}}");
    assert!(log.lines().any(|line| line.contains(&turn) && line.contains("the turn has ended")), "{log}");
    let request = log.lines().find(|line| line.contains("baton_server::request: request")).unwrap();
    assert!(
        request.contains("request{request.id=") && request.contains(&format!("task.id={id}")),
        "{request}"
    );
    assert!(!log.contains("otel."), "{log}");
}

#[tokio::test]
async fn metrics_may_have_an_address_of_their_own() {
    let server =
        Served::with(&[&SERVE[..], &["--metrics-listen", "127.0.0.1:0", "--log-format", "json"]].concat());
    server.send(text("one", "Hello, Baton")).await;
    assert_eq!(reqwest::get(format!("{}/metrics", server.url)).await.unwrap().status(), 404);
    let address = address(&server);
    let since = Instant::now();
    loop {
        let scraped = reqwest::get(format!("http://{address}/metrics")).await.unwrap().text().await.unwrap();
        assert!(scraped.contains("operation=\"SendMessage\",outcome=\"ok\"} 1"), "{scraped}");
        // Its own are not counted; one that has just closed may be, for a moment.
        if scraped.contains("\nbaton_connections_open 1.0\n") {
            break;
        }
        assert!(since.elapsed() < HANG, "{scraped}");
    }
    let (code, said) = finished(&mut baton(&[&SERVE[..], &["--metrics-listen", &address]].concat()));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--metrics-listen"), "{said}");

    let (code, said) = finished(&mut baton(&[&SERVE[..], &["--metrics-listen", "0.0.0.0:0"]].concat()));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("read the metrics"), "{said}");
    let mut off = baton(&SERVE);
    let off = Served::of(off.env("BATON_METRICS_ENABLED", "false"));
    assert_eq!(reqwest::get(format!("{}/metrics", off.url)).await.unwrap().status(), 404);
}

/// The log comes through a pipe, so it may be a moment behind.
fn address(server: &Served) -> String {
    let since = Instant::now();
    loop {
        let log = server.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut told = lines.filter(|line| line["message"] == "serving metrics at a separate address");
        if let Some(line) = told.next() {
            return line["address"].as_str().unwrap().to_owned();
        }
        assert!(since.elapsed() < HANG, "{log}");
        std::thread::yield_now();
    }
}

/// The log from start to stop: address and version, a failed task with its reason, and the stop.
#[tokio::test]
async fn a_life_is_told_in_the_log() {
    let server = Served::with(&[&SERVE[..], &["--log-format", "json"]].concat());
    let failed = server.send(text("m-1", "tck-task-failure")).await;
    let log = server.stop_and_log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |message: &str| {
        let found = lines.iter().find(|line| line["message"] == message);
        found.unwrap_or_else(|| panic!("no line {message:?} in {log}"))
    };
    assert_eq!(line("listening")["version"], env!("CARGO_PKG_VERSION"));
    let of_task = line("the task has failed");
    assert_eq!((&of_task["level"], &of_task["task.id"]), (&json!("INFO"), &failed["id"]));
    let reason = failed["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!((&of_task["reason"], &of_task["agent"]), (&json!(reason), &json!("default")));
    line("stopping; signal again to quit immediately");
    assert_eq!(lines.last().unwrap()["message"], "stopped");
}

/// At a terminal, only the welcome, "stopping" and "stopped" are printed, without log lines in between.
#[cfg(target_os = "linux")]
#[test]
fn at_a_terminal_there_is_the_welcome_and_nothing_else() {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    // `script` runs it at a terminal of its own, and passes on what is typed.
    let command = format!("exec {} {}", env!("CARGO_BIN_EXE_baton"), SERVE.join(" "));
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &command, "/dev/null"]).env_remove("BATON_LOG");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut typed, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut screen = Vec::new();
    let mut read_until = |end: &str| {
        let mut byte = [0];
        while !String::from_utf8_lossy(&screen).contains(end) {
            assert_eq!(shown.read(&mut byte).unwrap(), 1, "{:?}", String::from_utf8_lossy(&screen));
            screen.push(byte[0]);
        }
        String::from_utf8_lossy(&screen).into_owned()
    };
    read_until("Hello, Baton");
    // Ctrl-C
    typed.write_all(&[3]).unwrap();
    let screen = read_until("Stopped");
    assert!(screen.starts_with(concat!("Baton ", env!("CARGO_PKG_VERSION"), ": the demo agent")), "{screen}");
    assert!(!screen.contains(" INFO "), "{screen}");
    assert!(screen.contains("Stopping; press Ctrl-C again to stop now"), "{screen}");
    assert!(child.wait().unwrap().success());
}
