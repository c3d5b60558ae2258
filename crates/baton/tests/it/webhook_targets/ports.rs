//! S4: a webhook is no port scanner. What its owner reads is the same to the byte, whatever becomes of its calls.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::iter;

use super::faces::{Answer, Caller, DIALECTS, Dialect, WAITING};
use super::internal::PUBLIC;
use super::names::Zone;
use super::namespace::{BLACK_HOLE, FIGURES, FILTERED_PORT, PROHIBITED, UNREACHABLE, in_own_network};
use super::stage::{Stage, calls};
use crate::faults::runs::say;
use crate::served::Served;

const SILENT: u16 = 9001;
const SPEAKS_FIRST: u16 = 9002;
const HANGS_UP: u16 = 9003;
const PLAIN_HTTP: u16 = 9004;
const CLOSED: u16 = 9005;

/// The operator's own network, which callers of the tests' servers may name.
const ALLOW: &str = "allow = [\"172.16.0.0/12\", \"hooks.corp.internal\"]\nper_host = 64";

/// What becomes of calls to a receiver that takes them.
const DELIVERED: &str = "delivered";

/// Servers at the same time: each is tried with one target.
const AT_ONCE: usize = 8;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn s14_owners_cannot_tell_closed_open_and_filtered_ports_apart() {
    in_own_network(s14_owners_cannot_tell_closed_open_and_filtered_ports_apart, story);
}

/// Hosts with all kinds of ports: on the internet, and in the own network by address and by name.
const HOSTS: [&str; 3] = ["ports.sink.example", "172.16.0.5", "hooks.corp.internal"];

/// URLs, and how the log calls what becomes of their calls. Those that take long come first.
fn targets() -> Vec<(String, &'static str)> {
    let of_hosts = |port: u16, kind| HOSTS.map(|host| (format!("https://{host}:{port}/"), kind));
    let by_port = [
        (SILENT, "timeout"),
        (FILTERED_PORT, "timeout"),
        (CLOSED, "connect"),
        (SPEAKS_FIRST, "tls"),
        (HANGS_UP, "tls"),
        (PLAIN_HTTP, "tls"),
    ];
    let single = [
        ("https://hole.dead.example/", "connect"),
        ("https://unreachable.dead.example/", "connect"),
        ("https://prohibited.dead.example/", "connect"),
        ("https://another.example/", "tls"),
        ("https://no-such.missing.example/", "dns"),
        ("https://no-address.empty.example/", "dns"),
        // A name of an internal host, which may not be called: its ports make no difference either.
        ("https://inside.corp.example:8443/", "refused_target"),
        ("https://inside.corp.example:9005/", "refused_target"),
        ("https://inside.corp.example:9444/", "refused_target"),
        ("https://ports.sink.example/redirect/500/", "status"),
        ("https://ports.sink.example/", DELIVERED),
        ("https://ports.sink.example/redirect/302/https://172.16.0.5:9005/", "status"),
    ];
    let by_port = by_port.into_iter().flat_map(|(port, kind)| of_hosts(port, kind));
    by_port.chain(single.map(|(url, kind)| (url.to_owned(), kind))).collect()
}

async fn story() {
    let stage = Stage::set(HashMap::from([
        ("hole.dead.example".to_owned(), Zone::of(&[BLACK_HOLE])),
        ("unreachable.dead.example".to_owned(), Zone::of(&[UNREACHABLE])),
        ("prohibited.dead.example".to_owned(), Zone::of(&[PROHIBITED])),
        // The receiver has no certificate for it.
        ("another.example".to_owned(), Zone::of(&PUBLIC)),
        ("no-such.missing.example".to_owned(), Zone::NoSuchName),
        ("no-address.empty.example".to_owned(), Zone::of(&[])),
        ("hooks.corp.internal".to_owned(), Zone::of(&["192.168.1.5"])),
        ("ports.sink.example".to_owned(), Zone::of(&PUBLIC[..1])),
    ]));
    open_ports();
    let targets = targets();
    let views = iter(&targets).map(|(url, kind)| owners_view(&stage, url, kind)).buffered(AT_ONCE);
    let views: Vec<Vec<String>> = views.collect().await;
    let (first, rest) = views.split_first().unwrap();
    for (other, (url, _)) in rest.iter().zip(&targets[1..]) {
        assert_eq!(first.len(), other.len(), "{url}");
        for (ours, others) in first.iter().zip(other) {
            assert_eq!(ours, others, "{} and {url} can be told apart", targets[0].0);
        }
    }
    let refusals = refusals_are_alike(&stage).await;
    stage.sink.assert_no_hits().await;
    say(&format!(
        "{FIGURES}: targets of all kinds {}; answers that their owners read about each: {}; different ones: \
         0; refusals of internal addresses: {refusals}; different texts in a dialect: 1",
        targets.len(),
        first.len(),
    ));
}

/// What the owner of webhooks reads before and after their first calls, without ids and times.
async fn owners_view(stage: &Stage, url: &str, kind: &str) -> Vec<String> {
    let server = stage.serve(ALLOW);
    let caller = Caller::of(&server);
    let (mut view, mut tasks, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for dialect in DIALECTS {
        let sent = caller.send(dialect, "echo", url).await;
        assert_eq!(sent.refusal(), None, "{url}");
        // One after the other, or the list of tasks has another order each time.
        caller.until(&sent.task(), "TASK_STATE_COMPLETED").await;
        tasks.push((dialect, sent.task()));
        let task = caller.waiting_task().await;
        caller.until(&task, WAITING).await;
        let created = caller.create(dialect, &task, url).await;
        assert_eq!(created.refusal(), None, "{url}");
        view.push(created);
        tasks.push((dialect, task.clone()));
        waiting.push(task);
    }
    read(&caller, &tasks, &mut view).await;
    for task in &waiting {
        caller.cancel(task).await;
    }
    until_tried(&server, tasks.len(), kind).await;
    read(&caller, &tasks, &mut view).await;
    view.iter().map(|answer| masked(answer, url)).collect()
}

async fn read(caller: &Caller, tasks: &[(Dialect, String)], view: &mut Vec<Answer>) {
    for (dialect, task) in tasks {
        let listed = caller.read(Dialect::Rpc1, task, "any").await.swap_remove(1).json();
        let webhook =
            listed["result"]["configs"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
        view.extend(caller.read(*dialect, task, &webhook).await);
    }
}

/// Waits for the first call of each webhook, which must have ended in this way.
async fn until_tried(server: &Served, webhooks: usize, kind: &str) {
    let since = Instant::now();
    loop {
        let calls = calls(server).await;
        if calls.failed + calls.delivered >= webhooks {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "they are not tried\n{}", server.log());
    }
    if kind == DELIVERED {
        return;
    }
    let log = server.log_with("a webhook could not be delivered");
    let lines = log.lines().filter(|line| line.contains("a webhook could not be delivered; it is"));
    for line in lines {
        assert!(line.contains(&format!("kind=\"{kind}\"")), "not {kind}: {line}");
    }
}

/// Without what differs between any two: ids, times, the URL itself, and the lengths that follow from it.
fn masked(answer: &Answer, url: &str) -> String {
    let headers =
        answer.headers.iter().filter(|line| !line.starts_with("content-length") && !line.starts_with("date"));
    let headers: Vec<&str> = headers.map(String::as_str).collect();
    let text = format!("{} {}\n{}", answer.status, headers.join("\n"), answer.body).replace(url, "URL");
    let words = text.split_inclusive(['"', '/']).map(|word| match word.split_at(word.len() - 1) {
        (id, end) if is_id(id) => format!("ID{end}"),
        (time, end) if is_time(time) => format!("TIME{end}"),
        _ => word.to_owned(),
    });
    words.collect()
}

/// A UUID, the id of a request, or a number that the test has counted.
fn is_id(word: &str) -> bool {
    let counted = word.strip_prefix("m-").or_else(|| word.strip_prefix("task-"));
    let is_counted = counted.is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
    is_counted
        || ([16, 36].contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'))
}

fn is_time(word: &str) -> bool {
    word.starts_with("20") && word.ends_with('Z') && word.as_bytes().get(10) == Some(&b'T')
}

/// Whoever names an internal address is told the same, whatever is there.
async fn refusals_are_alike(stage: &Stage) -> usize {
    let server = stage.serve("");
    let caller = Caller::of(&server);
    let ports = [443, 8443, SILENT, SPEAKS_FIRST, CLOSED, FILTERED_PORT];
    let hosts = ["127.0.0.1", "10.0.0.5", "169.254.169.254", "[::1]", "[fd00:ec2::254]", "db.corp.internal"];
    let mut count = 0;
    for dialect in DIALECTS {
        let mut said = Vec::new();
        for url in hosts.iter().flat_map(|host| ports.map(|port| format!("https://{host}:{port}/"))) {
            let answer = caller.send(dialect, "echo", &url).await;
            assert!(answer.refusal().is_some(), "{url}");
            said.push(masked(&answer, &url));
            count += 1;
        }
        said.dedup();
        assert_eq!(said.len(), 1, "{said:?}");
    }
    count
}

fn open_ports() {
    // Kept open, and never answered.
    let mut silent = Vec::new();
    open(SILENT, move |stream| silent.push(stream));
    open(SPEAKS_FIRST, |mut stream| {
        let _gone = stream.write_all(b"SSH-2.0-sshd\r\n");
    });
    open(HANGS_UP, drop);
    open(PLAIN_HTTP, |mut stream| {
        let _gone = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
}

/// At all addresses.
fn open(port: u16, mut handle: impl FnMut(TcpStream) + Send + 'static) {
    let listener = TcpListener::bind(("::", port)).unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(&mut handle));
}
