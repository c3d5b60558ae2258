//! `baton bench` with agents whose faults are known: the report must say exactly those.

use std::collections::HashSet;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Heard, Scripted, card};

/// An agent that streams.
fn agent(answer: impl Fn(&Heard, usize) -> Answer + Send + Sync + 'static) -> Scripted {
    Scripted::start(|url| card(url, json!({"capabilities": {"streaming": true}})), answer)
}

/// Runs a bench, and returns its report.
fn bench(agent: &Scripted, args: &[&str]) -> Value {
    let all: Vec<&str> = ["bench", &agent.url, "-o", "json"].iter().chain(args).copied().collect();
    User::new().run(&all).ok().json()
}

fn completed() -> Answer {
    Answer::Result(json!({"task": task("t-1", "TASK_STATE_COMPLETED")}))
}

fn task(id: &str, state: &str) -> Value {
    json!({"id": id, "contextId": "c-1", "status": {"state": state}, "artifacts": []})
}

fn status(id: &str, state: &str) -> Value {
    json!({"statusUpdate": {"taskId": id, "contextId": "c-1", "status": {"state": state}}})
}

/// A stream of five events: the task, three times working, completed.
fn five(id: &str) -> Vec<(u64, Value)> {
    let working = |number| (number, status(id, "TASK_STATE_WORKING"));
    vec![
        (1, json!({"task": task(id, "TASK_STATE_SUBMITTED")})),
        working(2),
        working(3),
        working(4),
        (5, status(id, "TASK_STATE_COMPLETED")),
    ]
}

/// Those of the five that follow the `Last-Event-ID` of a request.
fn rest(heard: &Heard, id: &str) -> Vec<(u64, Value)> {
    let last: u64 = heard.header("last-event-id").expect("it resumes").parse().unwrap();
    five(id).into_iter().filter(|(number, _)| *number > last).collect()
}

/// The id of the task that a request names.
fn named(heard: &Heard) -> String {
    heard.body["params"]["id"].as_str().unwrap_or_default().to_owned()
}

/// An agent whose streams are what `spoil` makes of the five events, and that tells the truth if it is asked later.
fn spoiled(spoil: impl Fn(Vec<(u64, Value)>) -> Vec<(u64, Value)> + Send + Sync + 'static) -> Scripted {
    agent(move |heard, at| match heard.rpc() {
        "SendStreamingMessage" => Answer::Numbered(spoil(five(&format!("t-{at}")))),
        "SubscribeToTask" => Answer::Numbered(rest(heard, &named(heard))),
        _ => Answer::Result(task(&named(heard), "TASK_STATE_COMPLETED")),
    })
}

fn ms(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no time: {value}"))
}

#[test]
fn every_request_is_sent_and_counted_once() {
    let agent = agent(|_, _| completed());
    let report = bench(&agent, &["--rate", "200", "--requests", "100"]);
    let requests = &report["requests"];
    assert_eq!(
        (&requests["sent"], &requests["answered"], &requests["failed"]),
        (&json!(100), &json!(100), &json!(0))
    );
    assert_eq!(requests["outcomes"], json!({"TASK_STATE_COMPLETED": 100}));
    assert_eq!(report["latency"]["send"]["fromDue"]["count"], json!(100));
    // 99 of 100 is a sample; 999 of 1000 is not.
    assert!(report["latency"]["send"]["fromDue"]["p99Ms"].is_number());
    assert_eq!(report["latency"]["send"]["fromDue"]["p99_9Ms"], Value::Null);
    let ids: Vec<Value> =
        agent.calls().iter().map(|heard| heard.body["params"]["message"]["messageId"].clone()).collect();
    assert_eq!(ids.len(), 101, "one to warm up");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 101, "each message is a new one");
}

#[test]
fn a_delay_of_the_agent_is_in_every_share() {
    let delay = Duration::from_millis(30);
    let agent = agent(move |_, _| Answer::Late(delay, Box::new(completed())));
    let report = bench(&agent, &["--rate", "100", "--requests", "100"]);
    for share in ["p50Ms", "p90Ms", "p99Ms", "maxMs"] {
        assert!(ms(&report["latency"]["send"]["fromDue"][share]) >= 30.0, "{share}: {report}");
        assert!(ms(&report["latency"]["send"]["fromSent"][share]) >= 30.0, "{share}: {report}");
    }
}

#[test]
fn slow_answers_that_are_rare_are_in_the_share_that_has_them() {
    let slow = Duration::from_millis(300);
    // Every twentieth of the load: five of a hundred are within the last tenth, and not all beyond the last hundredth.
    let agent = agent(move |_, at| match at % 20 {
        7 => Answer::Late(slow, Box::new(completed())),
        _ => completed(),
    });
    let report = bench(&agent, &["--rate", "100", "--requests", "100"]);
    assert!(ms(&report["latency"]["send"]["fromDue"]["p99Ms"]) >= 300.0, "{report}");
}

/// A closed loop would send nothing while the agent stalls, and see one slow answer. Users are not that patient.
#[test]
fn a_stall_counts_for_every_request_that_was_due_meanwhile() {
    const STALL: Duration = Duration::from_secs(1);
    let until: Mutex<Option<Instant>> = Mutex::new(None);
    let agent = agent(move |_, at| {
        let mut until = until.lock().unwrap();
        if at == 10 {
            *until = Some(Instant::now() + STALL);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default();
        Answer::Late(left, Box::new(completed()))
    });
    // One at a time, due every 20 ms: about 50 are due within the second.
    let report =
        bench(&agent, &["--rate", "50", "--requests", "100", "--duration", "20s", "--concurrency", "1"]);
    let (due, sent) = (&report["latency"]["send"]["fromDue"], &report["latency"]["send"]["fromSent"]);
    // 25 of the 100 were due in the first half of the stall.
    assert!(ms(&due["p90Ms"]) >= 500.0, "{report}");
    assert!(ms(&due["maxMs"]) >= 1000.0 && ms(&sent["maxMs"]) >= 1000.0, "{report}");
    assert!(ms(&due["p90Ms"]) > ms(&sent["p90Ms"]), "{report}");
    assert!(report["requests"]["sentLate"].as_u64().unwrap() >= 45, "{report}");
    let text = User::new().run(&["bench", &agent.url, "--rate", "20", "--requests", "5"]).ok();
    assert!(text.out.contains("Times count from the moment a request was due"), "{}", text.out);
}

#[test]
fn what_finds_no_place_before_the_end_is_not_sent_and_said() {
    let agent = agent(|_, at| match at {
        0 => completed(),
        _ => Answer::Late(Duration::from_secs(2), Box::new(completed())),
    });
    let report = bench(&agent, &["--rate", "20", "--duration", "1s", "--concurrency", "2"]);
    let requests = &report["requests"];
    assert_eq!(
        (&requests["sent"], &requests["answered"], &requests["notSent"]),
        (&json!(2), &json!(2), &json!(18))
    );
    assert_eq!(requests["sentLate"], json!(0));
    assert!(report["notes"].to_string().contains("18 requests were due and never sent"), "{report}");
}

#[test]
fn lost_events_are_counted_exactly() {
    let agent = spoiled(|events| events.into_iter().filter(|(number, _)| *number != 3).collect());
    let report =
        bench(&agent, &["--operation", "stream", "--rate", "100", "--requests", "50", "--warm-up", "0"]);
    let streams = &report["streams"];
    assert_eq!((&streams["count"], &streams["events"]), (&json!(50), &json!(200)));
    assert_eq!(
        (&streams["lost"], &streams["doubled"], &streams["outOfOrder"]),
        (&json!(50), &json!(0), &json!(0))
    );
    assert_eq!(streams["checked"]["replayed"], json!(50));
}

#[test]
fn doubled_events_are_counted_exactly_also_behind_the_end() {
    let agent = spoiled(|mut events| {
        let (second, last) = (events[1].clone(), events[4].clone());
        events.insert(2, second);
        events.push(last);
        events
    });
    let report =
        bench(&agent, &["--operation", "stream", "--rate", "100", "--requests", "50", "--warm-up", "0"]);
    let streams = &report["streams"];
    assert_eq!((&streams["lost"], &streams["doubled"]), (&json!(0), &json!(100)));
    assert_eq!((&streams["events"], &streams["afterEnd"]), (&json!(350), &json!(50)));
    assert_eq!(streams["endings"], json!({"with their task": 50}));
}

#[test]
fn events_out_of_order_are_counted() {
    let agent = spoiled(|mut events| {
        events.swap(1, 2);
        events
    });
    let report =
        bench(&agent, &["--operation", "stream", "--rate", "100", "--requests", "10", "--warm-up", "0"]);
    let streams = &report["streams"];
    assert_eq!(
        (&streams["outOfOrder"], &streams["lost"], &streams["doubled"]),
        (&json!(10), &json!(0), &json!(0))
    );
}

#[test]
fn without_ids_nothing_is_claimed_about_single_events() {
    let agent = agent(|heard, _| match heard.rpc() {
        "SendStreamingMessage" => Answer::Events(five("t-1").into_iter().map(|(_, event)| event).collect()),
        _ => Answer::Result(task("t-1", "TASK_STATE_FAILED")),
    });
    let report = bench(&agent, &["--operation", "stream", "--requests", "5", "--rate", "100"]);
    let streams = &report["streams"];
    assert_eq!((&streams["lost"], &streams["doubled"]), (&Value::Null, &Value::Null));
    assert_eq!(streams["eventsWithoutId"], json!(25));
    // The task at the end is what can still be compared.
    assert_eq!((&streams["checked"]["agreeing"], &streams["checked"]["differing"]), (&json!(0), &json!(5)));
    let said = User::new()
        .run(&["bench", &agent.url, "--operation", "stream", "--requests", "2", "--rate", "50"])
        .ok();
    assert_eq!(said.field("Events lost"), "unknown: they have no ids");
    assert_eq!(said.field("Tasks compared"), "0 of 2 agree with GetTask");
    assert!(
        said.out.contains("its events end with TASK_STATE_COMPLETED, GetTask says TASK_STATE_FAILED"),
        "{}",
        said.out
    );
}

#[test]
fn an_agent_that_does_not_repeat_events_is_not_accused() {
    let agent = agent(|heard, at| match heard.rpc() {
        "SendStreamingMessage" => Answer::Numbered(
            five(&format!("t-{at}")).into_iter().filter(|(number, _)| *number != 3).collect(),
        ),
        "SubscribeToTask" => Answer::Error(-32004, "ended"),
        _ => Answer::Result(task(&named(heard), "TASK_STATE_COMPLETED")),
    });
    let report =
        bench(&agent, &["--operation", "stream", "--requests", "5", "--rate", "100", "--warm-up", "0"]);
    let streams = &report["streams"];
    assert_eq!((&streams["lost"], &streams["numbersSkipped"]), (&Value::Null, &json!(5)));
    assert!(report["notes"].to_string().contains("Lost events cannot be counted"), "{report}");
}

#[test]
fn errors_are_counted_by_their_names() {
    let agent = agent(|heard, at| match (heard.rpc(), at % 5) {
        (_, 0) => completed(),
        (_, 1) => Answer::Error(-32005, "not that"),
        (_, 2) => Answer::Plain(503, "text/plain", "full".to_owned()),
        (_, 3) => Answer::Plain(200, "application/json", "{".to_owned()),
        _ => Answer::Late(Duration::from_secs(60), Box::new(completed())),
    });
    let report = bench(&agent, &["--rate", "50", "--requests", "50", "--timeout", "4s", "--warm-up", "1"]);
    let errors = report["errors"].as_array().unwrap();
    let count = |name: &str| {
        let found = errors.iter().find(|error| error["name"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("no {name}: {report}"))["count"].as_u64().unwrap()
    };
    for name in ["ContentTypeNotSupportedError", "HTTP 503", "answer cannot be read", "timeout"] {
        assert_eq!(count(name), 10, "{name}: {report}");
    }
    assert_eq!((&report["requests"]["answered"], &report["requests"]["failed"]), (&json!(10), &json!(40)));
}

/// The wait for the last answers must be longer than the timeout of the last request, which begins a little later.
#[test]
fn a_timeout_of_the_last_request_is_counted_as_one() {
    let agent = agent(|_, _| Answer::Late(Duration::from_secs(60), Box::new(completed())));
    for operation in ["send", "stream"] {
        let args = ["--operation", operation, "--requests", "1", "--timeout", "300ms", "--warm-up", "0"];
        let report = bench_failing(&agent, &args);
        let requests = &report["requests"];
        assert_eq!((&requests["failed"], &requests["unanswered"]), (&json!(1), &json!(0)), "{report}");
        assert_eq!(report["errors"][0]["name"], json!("timeout"), "{report}");
    }
}

#[test]
fn streams_that_break_are_told_apart() {
    let first = |at: usize| json!({"task": task(&format!("t-{at}"), "TASK_STATE_WORKING")});
    let agent = agent(move |heard, at| match (heard.rpc(), at % 2) {
        ("SendStreamingMessage", 0) => Answer::Cut(vec![first(at)]),
        ("SendStreamingMessage", _) => Answer::Events(vec![first(at)]),
        _ => Answer::Error(-32001, "gone"),
    });
    let report = bench_failing(
        &agent,
        &["--operation", "stream", "--rate", "50", "--requests", "10", "--warm-up", "0"],
    );
    assert_eq!(report["streams"]["endings"], json!({"closed early": 5, "cut": 5}));
    assert_eq!(report["requests"]["failed"], json!(10));
}

/// Every request fails: the report is there, and so is the exit status.
fn bench_failing(agent: &Scripted, args: &[&str]) -> Value {
    let all: Vec<&str> = ["bench", &agent.url, "-o", "json"].iter().chain(args).copied().collect();
    User::new().run(&all).failed(1).json()
}

/// An agent whose streams stay open after their first event. Whoever returns gets what `resumed` says; asked once more,
/// the agent tells the truth.
fn interrupted(resumed: impl Fn(&Heard, &str) -> Vec<(u64, Value)> + Send + Sync + 'static) -> Scripted {
    let returned: Mutex<HashSet<String>> = Mutex::default();
    agent(move |heard, at| match heard.rpc() {
        "SendStreamingMessage" => Answer::Open(five(&format!("t-{at}")).into_iter().take(1).collect()),
        "SubscribeToTask" => {
            let id = named(heard);
            let is_first = returned.lock().unwrap().insert(id.clone());
            Answer::Numbered(if is_first { resumed(heard, &id) } else { rest(heard, &id) })
        }
        _ => Answer::Result(task(&named(heard), "TASK_STATE_COMPLETED")),
    })
}

#[test]
fn after_a_storm_everybody_is_back_and_what_is_missing_is_counted() {
    let storm = |agent: &Scripted| bench(agent, &["--storm", "30", "--duration", "20s"])["streams"].clone();
    let right = storm(&interrupted(rest));
    assert_eq!(right["storm"]["cut"], json!(30));
    assert_eq!(right["storm"]["back"], json!(30));
    assert!(right["storm"]["allBackAfterMs"].is_number(), "{right}");
    assert_eq!((&right["lost"], &right["doubled"], &right["events"]), (&json!(0), &json!(0), &json!(150)));
    let loses = storm(&interrupted(|heard, id| rest(heard, id).into_iter().skip(1).collect()));
    assert_eq!((&loses["lost"], &loses["doubled"]), (&json!(30), &json!(0)));
    let repeats = storm(&interrupted(|_, id| five(id)));
    assert_eq!((&repeats["lost"], &repeats["doubled"]), (&json!(0), &json!(30)));
}

#[test]
fn held_streams_are_canceled_at_the_end_and_say_so() {
    let served = crate::served::Served::start();
    let report = User::new()
        .run(&[
            "bench",
            &served.url,
            "wait until I cancel",
            "--streams",
            "20",
            "--hold",
            "1s",
            "--rate",
            "50",
            "--operation",
            "get",
            "-o",
            "json",
        ])
        .ok()
        .json();
    let streams = &report["streams"];
    assert_eq!((&streams["held"]["opened"], &streams["held"]["openAtTheEnd"]), (&json!(20), &json!(20)));
    assert_eq!(streams["endings"], json!({"with their task": 20}));
    assert_eq!((&streams["lost"], &streams["checked"]["agreeing"]), (&json!(0), &json!(20)));
    assert_eq!(report["requests"]["answered"], json!(50));
    let left = User::new().run(&["task", "list", &served.url, "--status", "working"]).ok();
    assert_eq!(left.field("Total"), "0", "{}", left.out);
}

#[test]
fn an_agent_elsewhere_is_left_alone_without_permission() {
    // The card is here, and leads to an address that nobody has.
    let mut elsewhere =
        json!([{"url": "http://192.0.2.1:9/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    let interfaces = elsewhere.take();
    let agent =
        Scripted::start(|url| card(url, json!({"supportedInterfaces": interfaces})), |_, _| completed());
    let said = User::new().run(&["bench", &agent.url]).failed(2);
    assert!(said.err.contains("192.0.2.1 is not this machine"), "{}", said.err);
    assert!(said.err.contains("--i-may-load-test-this-agent"), "{}", said.err);
    assert_eq!(agent.calls().len(), 0);
}

#[test]
fn many_requests_must_be_asked_for() {
    let agent = agent(|_, _| completed());
    let said = User::new().run(&["bench", &agent.url, "--rate", "2000"]).failed(2);
    assert!(said.err.contains("this would send 20000 requests"), "{}", said.err);
    assert!(said.err.contains("--requests 20000"), "{}", said.err);
    for wrong in [
        &["--storm", "5", "--streams", "3"][..],
        &["--rate", "0"],
        &["--operation", "sned"],
        &["--concurrency", "0"],
        &["--duration", "soon"],
    ] {
        let all: Vec<&str> = ["bench", &agent.url].iter().chain(wrong).copied().collect();
        User::new().run(&all).failed(2);
    }
    assert_eq!(agent.heard().len(), 0);
}

#[test]
fn what_is_wrong_from_the_start_ends_the_run_with_its_own_status() {
    let refused = agent(|_, _| Answer::Plain(401, "application/json", String::new()));
    let said = User::new().run(&["bench", &refused.url]).failed(4);
    assert!(said.err.contains("A2ACLI_ERR_CREDENTIALS_MISSING"), "{}", said.err);
    assert_eq!(refused.calls().len(), 1, "the load was not begun");
    User::new().run(&["bench", &refused.url, "--streams", "50"]).failed(4);
    assert_eq!(refused.calls().len(), 2, "one stream was tried");
    let no_streams = Scripted::start(|url| card(url, json!({})), |_, _| completed());
    let said = User::new().run(&["bench", &no_streams.url, "--operation", "stream"]).failed(1);
    assert!(said.err.contains("does not offer streaming"), "{}", said.err);
    User::new().run(&["bench", "http://127.0.0.1:9"]).failed(3);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_run_with_a_report() {
    let (heard, hears) = std::sync::mpsc::sync_channel::<()>(1000);
    let agent = agent(move |_, _| {
        let _ = heard.try_send(());
        completed()
    });
    let user = User::new();
    let mut child = user
        .command(&["bench", &agent.url, "--rate", "50", "--duration", "100s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (0..20).for_each(|_| hears.recv().unwrap());
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let status = child.wait().unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(status.code(), Some(130), "{out}");
    assert!(out.contains("\nStopped: by Ctrl-C after "), "{out}");
    assert!(out.contains("TASK_STATE_COMPLETED"), "{out}");
    assert!(agent.calls().len() < 4000, "it has stopped sending");
}
