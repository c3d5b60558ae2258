//! S-14: `baton push` on a running server and on its store, with a receiver on this machine.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::cli::user::Said;
use crate::served::{Served, baton, text};

const PATIENCE: Duration = Duration::from_secs(60);

/// In the webhook's secrets and in the query of its address.
const CANARY: &str = "canary";

/// A receiver that answers every call with the same status, until the test chooses another.
#[derive(Clone)]
struct Receiver {
    url: String,
    host: String,
    status: Arc<AtomicU16>,
    /// The `webhook-id` and the body of each call.
    got: Arc<Mutex<Vec<(String, String)>>>,
}

impl Receiver {
    async fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let url = format!("http://{host}/hook?key={CANARY}");
        let receiver = Receiver { url, host, status: Arc::new(status.into()), got: Arc::default() };
        let app = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        receiver
    }

    fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// What it got of a task.
    fn of(&self, task: &Value) -> Vec<(String, String)> {
        let id = task["id"].as_str().unwrap();
        self.got.lock().unwrap().iter().filter(|(_, body)| body.contains(id)).cloned().collect()
    }
}

/// Whoever is refused comes back in an hour: a slow test must not see the next attempt.
async fn receive(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1]) {
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    receiver.got.lock().unwrap().push((id, String::from_utf8(body.to_vec()).unwrap()));
    let status = StatusCode::from_u16(receiver.status.load(Ordering::SeqCst)).unwrap();
    (status, [("retry-after", "3600")])
}

/// A command in a folder of its own, with the default store in it.
fn within(folder: &Path, args: &[&str]) -> Command {
    let mut command = baton(args);
    command.current_dir(folder);
    command
}

fn serve(folder: &Path) -> Served {
    Served::of(&mut within(folder, &["serve", "--listen", "127.0.0.1:0"]))
}

/// What `baton push` says; never a secret.
fn push(folder: &Path, args: &[&str]) -> Said {
    let said = Said::of(&mut within(folder, &[&["push"], args].concat()));
    assert!(!said.out.contains(CANARY) && !said.err.contains(CANARY), "{said:?}");
    said
}

/// Starts a task whose events go to a webhook.
async fn start(server: &Served, message: &str, url: &str, headers: &[(&str, &str)]) -> Value {
    let webhook = json!({"url": url, "id": "mine", "token": format!("{CANARY}-token"),
        "authentication": {"scheme": "Bearer", "credentials": format!("{CANARY}-credentials")}});
    let configuration = json!({"taskPushNotificationConfig": webhook, "returnImmediately": true});
    let params = json!({"message": text(message, "Hello, Baton"), "configuration": configuration});
    server.call_with("SendMessage", params, headers).await["task"].take()
}

/// The webhooks that are listed with these flags, once there are so many.
async fn listed(folder: &Path, flags: &[&str], count: usize) -> Vec<Value> {
    let since = Instant::now();
    loop {
        let list = push(folder, &[&["list", "-o", "json"], flags].concat()).ok().json();
        let webhooks = list["webhooks"].as_array().unwrap().clone();
        if webhooks.len() == count {
            return webhooks;
        }
        assert!(since.elapsed() < PATIENCE, "not {count}: {list}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_an_operator_sees_webhooks_and_replays_and_disables_them() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(410).await);
    let folder = folder.path();
    let server = serve(folder);
    let gone = start(&server, "m-1", &receiver.url, &[]).await;
    let name = format!("{}/mine", gone["id"].as_str().unwrap());
    listed(folder, &["--failed"], 1).await;
    server.until(&gone, "TASK_STATE_COMPLETED").await;
    receiver.answers(500);
    let failing = start(&server, "m-2", &receiver.url, &[]).await;
    listed(folder, &["--failing"], 1).await;
    server.until(&failing, "TASK_STATE_COMPLETED").await;

    let [open] = &listed(folder, &["--open"], 1).await[..] else { panic!("one") };
    assert_eq!(
        (&open["task"], &open["state"], &open["attempts"]),
        (&failing["id"], &json!("failing"), &json!(1))
    );
    assert!(open["due"].is_string() && open["failingSince"].is_string(), "{open}");
    assert_eq!(open["reason"], "the webhook answered with status 500");
    let shown = push(folder, &["show", failing["id"].as_str().unwrap()]).ok();
    assert_eq!(shown.field("Reason"), "the webhook answered with status 500");
    assert!(shown.field("Next attempt").ends_with(" UTC"), "{shown:?}");
    let table = push(folder, &["list"]).ok().out;
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows.len() == 3 && rows[0].starts_with("WEBHOOK  "), "{table}");
    let row = rows[2].split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(row.starts_with(&format!("{name} anonymous {} gone 1/", receiver.host)), "{table}");
    assert!(rows[1].ends_with(" UTC  the webhook answered with status 500"), "{table}");
    assert!(row.ends_with(" UTC the webhook answered with status 410"), "{table}");
    for (flags, count) in [
        (&["--owner", "anonymous"][..], 2),
        (&["--owner", "nobody"], 0),
        (&["--task", gone["id"].as_str().unwrap()], 1),
        (&["--host", &receiver.host], 2),
        (&["--host", "example.org"], 0),
    ] {
        listed(folder, flags, count).await;
    }

    let shown = push(folder, &["show", &name]).ok();
    assert_eq!(shown.field("URL"), format!("http://{}/hook?***", receiver.host));
    assert_eq!((shown.field("State"), shown.field("Owner")), ("gone", "anonymous"));
    assert!(shown.field("Switched off").ends_with(" UTC"), "{shown:?}");
    assert_eq!(shown.field("Reason"), "the webhook answered with status 410");
    assert!(shown.field("Next event").starts_with("1 of "), "{shown:?}");
    let json = push(folder, &["show", gone["id"].as_str().unwrap(), "-o", "json"]).ok().json();
    assert_eq!((&json["name"], &json["nextEvent"], &json["kept"]), (&json!(name), &json!(1), &json!(true)));
    assert_eq!(json["state"], "gone");

    let disabled = push(folder, &["disable", failing["id"].as_str().unwrap()]).ok();
    assert!(disabled.out.contains("is disabled; `baton push replay` opens it again"), "{disabled:?}");
    assert_eq!(listed(folder, &["--failed"], 2).await[0]["state"], "disabled");
    let again = push(folder, &["disable", failing["id"].as_str().unwrap()]).failed(1);
    assert_eq!(again.err, "error: the webhook is not open: disabled by the operator\n");
    let calls = receiver.of(&failing);
    assert_eq!(calls.len(), 1);

    receiver.answers(200);
    let all = push(folder, &["replay", "--all-failed", "--host", "example.org"]).ok();
    assert_eq!(all.out, "There are no such webhooks\n");
    let all = push(folder, &["replay", "--all-failed", "--host", &receiver.host, "-o", "json"]).ok().json();
    assert_eq!(all["results"].as_array().unwrap().len(), 1, "what was disabled stays as it is: {all}");
    assert_eq!((&all["results"][0]["done"], &all["delivering"]), (&json!("reopened"), &json!(true)));
    listed(folder, &["--open"], 0).await;
    listed(folder, &["--failed"], 1).await;
    let got = receiver.of(&gone);
    assert!(got[0] == got[1] && got.last().unwrap().1.contains("COMPLETED"), "{got:?}");
    let unknown = push(folder, &["replay", &name]).failed(1);
    assert_eq!(unknown.err, format!("error: there is no webhook `{name}` that is open or failed\n"));

    let name = format!("{}/mine", failing["id"].as_str().unwrap());
    let replayed = push(folder, &["replay", &name]).ok();
    assert_eq!(replayed.out, format!("{name} of owner anonymous is open again; it goes on with event 1\n"));
    listed(folder, &[], 0).await;
    assert_eq!(receiver.of(&failing)[..2], [calls[0].clone(), calls[0].clone()]);
    assert_eq!(push(folder, &["list"]).ok().out, "No webhook is open or failed\n");
    assert_eq!(push(folder, &["list", "--open"]).ok().out, "There are no such webhooks\n");
    let log = server.stop_and_log();
    assert!(!log.contains(CANARY), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_without_a_server_the_next_one_goes_on_with_what_was_replayed() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(410).await);
    let folder = folder.path();
    let server = serve(folder);
    let mut tasks = Vec::new();
    for message in ["m-1", "m-2"] {
        tasks.push(start(&server, message, &receiver.url, &[]).await);
    }
    listed(folder, &["--failed"], 2).await;
    for task in &tasks {
        server.until(task, "TASK_STATE_COMPLETED").await;
    }
    server.terminate();

    receiver.answers(200);
    let table = push(folder, &["list", "--failed"]).ok().out;
    assert!(table.ends_with("\nNothing is delivered now: no server with webhooks runs\n"), "{table}");
    let name = tasks[0]["id"].as_str().unwrap();
    let replayed = push(folder, &["replay", name]).ok();
    assert!(
        replayed.out.ends_with("is open again; it goes on with event 1, once a server runs\n"),
        "{replayed:?}"
    );
    assert_eq!(receiver.of(&tasks[0]).len(), 1);
    let server = serve(folder);
    listed(folder, &["--open"], 0).await;
    let got = receiver.of(&tasks[0]);
    assert!(got[0] == got[1] && got.last().unwrap().1.contains("COMPLETED"), "{got:?}");
    assert_eq!(receiver.of(&tasks[1]).len(), 1);
    server.terminate();

    // A server that has webhooks switched off lists them, and says so.
    let mut off = within(folder, &["serve", "--listen", "127.0.0.1:0"]);
    let _server = Served::of(off.env("BATON_PUSH_ENABLED", "false"));
    let table = push(folder, &["list"]).ok().out;
    assert!(table.ends_with("\nNothing is delivered now: no server with webhooks runs\n"), "{table}");
    for args in [&["replay", tasks[1]["id"].as_str().unwrap()][..], &["replay", "--all-failed"]] {
        let said = push(folder, args).failed(1);
        assert!(said.err.contains("webhooks are switched off on this server"), "{said:?}");
    }
}

/// Clients of 0.1 choose the ids of tasks, so those of two owners may be the same.
#[tokio::test(flavor = "multi_thread")]
async fn s14_a_name_that_several_webhooks_have_is_refused_and_the_owner_tells_them_apart() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(500).await);
    let folder = folder.path();
    let mut command = within(folder, &["serve", "--listen", "127.0.0.1:0"]);
    let server = Served::of(command.env("BATON_AUTH_API_KEY_ENABLED", "true"));
    for owner in ["alice", "bob"] {
        let issued = Said::of(&mut within(folder, &["key", "new", owner, "--json"])).ok().json();
        let said = json!({"role": "user", "parts": [{"type": "text", "text": "Hello, Baton"}]});
        let webhook = json!({"url": receiver.url, "token": format!("{CANARY}-token")});
        let params = json!({"id": "task/1", "message": said, "pushNotification": webhook});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": params});
        let request =
            reqwest::Client::new().post(&server.url).header("X-API-Key", issued["secret"].as_str().unwrap());
        let answer: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["result"]["id"], "task/1", "{answer}");
    }
    listed(folder, &["--task", "task/1"], 2).await;
    for verb in ["show", "replay", "disable"] {
        let said = push(folder, &[verb, "task/1"]).failed(1);
        for words in [
            "several webhooks are called `task/1`",
            "(owner alice, agent default)",
            "(owner bob, agent default)",
        ] {
            assert!(said.err.contains(words), "{said:?}");
        }
    }
    let said = push(folder, &["disable", "task/1/task/1", "--owner", "bob"]).ok();
    assert!(said.out.starts_with("task/1/task/1 of owner bob is disabled"), "{said:?}");
    assert_eq!(push(folder, &["show", "task/1", "--owner", "bob"]).ok().field("State"), "disabled");
    push(folder, &["show", "task/1", "--owner", "carol"]).failed(1);
    push(folder, &["show", "task/1", "--owner", "bob", "--agent", "other"]).failed(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_the_socket_answers_programs_with_json() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(410).await);
    let server = serve(folder.path());
    let task = start(&server, "m-1", &receiver.url, &[]).await;
    listed(folder.path(), &["--failed"], 1).await;
    let socket = folder.path().join("baton-data/demo.db.admin/socket");
    let client = reqwest::Client::builder().unix_socket(socket).build().unwrap();
    let task = task["id"].as_str().unwrap();
    for (path, status, member) in [
        ("webhooks".to_owned(), 200, "webhooks"),
        ("webhooks?state=failed&owner=anonymous".to_owned(), 200, "delivering"),
        (format!("webhooks/{task}%2Fmine"), 200, "state"),
        (format!("webhooks/{task}?agent=default&tenant="), 200, "reason"),
        (format!("webhooks/{task}?owner=bob"), 404, "error"),
        ("webhooks?after=nonsense".to_owned(), 400, "error"),
    ] {
        let answer = client.get(format!("http://localhost/{path}")).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap()),
            (status, "application/json"),
            "{path}"
        );
        let answer: Value = answer.json().await.unwrap();
        assert!(answer.get(member).is_some() && !answer.to_string().contains(CANARY), "{path}: {answer}");
    }
    for (path, expected) in [
        ("webhooks?state=bad", "`state` is `open`, `failing` or `failed`, not `bad`"),
        (
            "webhooks?status=failed",
            "`status` is not a parameter of this call, which has `state`, `owner`, `task`, `host`, `after`",
        ),
        ("webhooks?owner=a&owner=b", "the parameter `owner` is there twice"),
        ("webhooks/t?task=t", "`task` is not a parameter of this call, which has `owner`, `agent`, `tenant`"),
    ] {
        let answer = client.get(format!("http://localhost/{path}")).send().await.unwrap();
        let (status, answer) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
        assert_eq!((status, &answer), (400, &json!({"error": expected})), "{path}");
    }
    let disable = client.post(format!("http://localhost/webhooks/{task}/disable")).send().await.unwrap();
    assert_eq!(disable.status(), 409);
}

/// Callers are told no more than that it is refused.
#[tokio::test]
async fn s14_the_operator_is_told_once_how_a_refused_webhook_could_be_allowed() {
    let server = Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec", "cat"]);
    let answer = async |url: &str| {
        let configuration = json!({"taskPushNotificationConfig": {"url": url}});
        let params = json!({"message": text("m-1", "hi"), "configuration": configuration});
        server.ask("SendMessage", params).await["error"]["message"].as_str().unwrap().to_owned()
    };
    for _ in 0..2 {
        let said = answer("http://127.0.0.1:4000/").await;
        assert_eq!(said, "The webhook URL must begin with https://");
        let said = answer(&format!("https://10.1.2.3/?key={CANARY}")).await;
        assert!(said.contains("must lead to a host on the internet"), "{said}");
    }
    let log = server.stop_and_log();
    for option in ["`[push] development = true` allows", "in `[push] allow`"] {
        assert_eq!(log.matches(option).count(), 1, "{option}: {log}");
    }
    assert!(log.contains("10.1.2.3") && !log.contains(CANARY), "{log}");

    // A name that may be called, with an address that may not.
    let mut command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec", "cat"]);
    let server = Served::of(command.env("BATON_PUSH_ALLOW", "localhost"));
    start(&server, "m-1", "https://localhost:4000/", &[]).await;
    server.log_with("`[push] development = true` allows");
}

#[tokio::test]
async fn s14_what_cannot_be_done_is_said() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    for (args, code, reason) in [
        (&["list"][..], 1, "there is no store at ./baton-data/demo.db; --store names another"),
        (
            &["list", "--store", "memory:"],
            1,
            "webhooks of a store in memory are in the running server only, and",
        ),
        (&["list", "--socket", "./nothing"], 1, "--socket: no server listens at ./nothing"),
        (&["list", "--open", "--failed"], 2, "cannot be used with"),
        (&["show"], 2, "TASK/ID"),
        (&["replay"], 2, "--all-failed"),
        (&["replay", "t", "--all-failed"], 2, "cannot be used with"),
        (&["replay", "t", "--host", "h"], 2, "cannot be used with"),
        (&["disable"], 2, "TASK/ID"),
    ] {
        let said = push(folder, args).failed(code);
        assert!(said.err.contains(reason), "{args:?}: {said:?}");
    }
    assert!(!folder.join("baton-data").exists(), "nothing is made");
    let server = serve(folder);
    server.terminate();
    let said = push(folder, &["replay", "t/x"]).failed(1);
    assert_eq!(said.err, "error: there is no webhook `t/x` that is open or failed\n");
    assert_eq!(push(folder, &["replay", "--all-failed"]).ok().out, "There are no such webhooks\n");
}
