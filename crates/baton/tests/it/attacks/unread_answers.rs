//! A4: many clients ask for a large task each and never read the answer. They are several owners, so that they may have
//! more streams than one owner may.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::latency::p99;
use super::owners::{Owners, bearer};
use crate::faults::field::Field;
use crate::faults::runs::{HANG, Run};
use crate::faults::sockets::{address, affordable, resident_kib};
use crate::served::{Served, baton, text};

/// A task of nearly 4 MiB, most of it the message.
const LARGE: usize = 3_900_000;

/// What the server may grow by, in KiB, and what its sockets may hold, whatever the number of readers. In the test command
/// there are few readers and less room.
const MOST_KIB: u64 = 256 * 1024;
const SHORT_ROOM: &str = "8MiB";
const SHORT_KIB: u64 = 40 * 1024;

const ATTACKERS: [&str; 5] = ["attacker-0", "attacker-1", "attacker-2", "attacker-3", "attacker-4"];

/// What lies in the queues of the sockets of a port, on either side.
fn queued_kib(port: u16) -> u64 {
    let (text, port) = (fs::read_to_string("/proc/net/tcp").unwrap(), format!(":{port:04X}"));
    let queued = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (sent, received) = fields[4].split_once(':')?;
        let queue = if fields[1].ends_with(&port) { sent } else { received };
        let ours = fields[1].ends_with(&port) || fields[2].ends_with(&port);
        u64::from_str_radix(queue, 16).ok().filter(|_| ours)
    };
    text.lines().skip(1).filter_map(queued).sum::<u64>() / 1024
}

/// Socket memory of the whole machine.
fn socket_kib() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap();
    let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap();
    line.rsplit(' ').next().unwrap().parse::<u64>().unwrap() * 4
}

/// Sends an owner's question, and reads nothing, ever.
async fn ask_and_leave(address: &str, owner: &str, method: &str, params: &Value) -> TcpStream {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n";
    let request =
        format!("{head}Authorization: {}\r\nContent-Length: {}\r\n\r\n{body}", bearer(owner), body.len());
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_are_bounded() {
    let mut run = Run::begin("attack-unread-answers");
    let readers = affordable(run.count(12, 1000));
    let field = Field::new("");
    let store = format!("sqlite:{}", field.database().display());
    let names = [&ATTACKERS[..], &["honest"]].concat();
    let (owners, honest) = (Owners::new(&names), bearer("honest"));
    let honest_too = [("Authorization", honest.as_str())];
    let config = owners.config();
    let mut command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", &store, "--config", &config]);
    if !run.full {
        command.env("BATON_CONNECTIONS_MAX_ANSWERS", SHORT_ROOM);
        command.env("BATON_CONNECTIONS_CROWDED_STALL", "1s");
    }
    let server = Served::of(&mut command).authorized(&bearer(ATTACKERS[0]));
    let params = json!({"message": text("small", "small")});
    let small = server.call_with("SendMessage", params, &honest_too).await["task"].take();
    let params = json!({"message": text("tck-reject-task-honest", &"x".repeat(LARGE)), "configuration": {"historyLength": 0}});
    let large = server.call_with("SendMessage", params, &honest_too).await["task"].take();
    let mut ids = Vec::new();
    for n in 0..readers {
        // The demo agent refuses it, whatever it says: that makes no second copy. Every third waits for an answer, and can
        // be watched.
        let prefix = if n % 3 == 0 { "tck-input-required" } else { "tck-reject-task" };
        let message = text(&format!("{prefix}-{n}"), &"x".repeat(LARGE));
        let params = json!({"message": message, "configuration": {"historyLength": 0}});
        let owner = bearer(ATTACKERS[n as usize % ATTACKERS.len()]);
        let sent = server.call_with("SendMessage", params, &[("Authorization", &owner)]).await;
        ids.push(sent["task"]["id"].clone());
    }
    let quiet = p99(&server, &honest, &small, run.count(20, 2000)).await;
    let (before, sockets_before) = (resident_kib(server.pid()), socket_kib());
    let at = address(&server);
    let mut asking = JoinSet::new();
    for (n, id) in ids.iter().enumerate() {
        let method = if n % 3 == 0 { "SubscribeToTask" } else { "GetTask" };
        let (at, params, owner) = (at.clone(), json!({"id": id}), ATTACKERS[n % ATTACKERS.len()]);
        asking.spawn(async move { ask_and_leave(&at, owner, method, &params).await });
    }
    let mut unread = asking.join_all().await;
    // Messages whose answers wait for room. One at a time: what it takes to read them is not what is measured.
    for n in 0..run.count(8, 200) {
        let message = text(&format!("tck-reject-task-unread-{n}"), &"y".repeat(LARGE));
        unread.push(ask_and_leave(&at, ATTACKERS[0], "SendMessage", &json!({"message": message})).await);
        let stored = readers.div_ceil(ATTACKERS.len() as u64) + n + 1;
        let count = json!({"pageSize": 1, "historyLength": 0});
        while server.call("ListTasks", count.clone()).await["totalSize"] != stored {}
    }
    let port: u16 = at.rsplit(':').next().unwrap().parse().unwrap();
    let (mut most, mut most_sockets, mut most_queued, mut attacked) = (0, 0, 0, Duration::ZERO);
    let (since, length) = (Instant::now(), Duration::from_secs(run.count(1, 40)));
    while since.elapsed() < length {
        attacked = attacked.max(p99(&server, &honest, &small, run.count(10, 100)).await);
        most = most.max(resident_kib(server.pid()));
        most_sockets = most_sockets.max(socket_kib());
        most_queued = most_queued.max(queued_kib(port));
    }
    // Whoever reads gets a large answer all the same, though it may be told to come back first.
    let asked = Instant::now();
    loop {
        let answer = server.ask_with("GetTask", json!({"id": large["id"]}), &honest_too).await;
        if let Some(shown) = answer["result"]["history"][0]["parts"][0]["text"].as_str() {
            assert_eq!(shown.len(), LARGE);
            break;
        }
        assert!(asked.elapsed() < HANG * 4, "{answer}");
    }
    let (grown, sockets) = (most.saturating_sub(before), most_sockets.saturating_sub(sockets_before));
    run.figure("answers of 4 MiB that nobody reads", unread.len());
    run.figure("resident above idle", format!("{:.0} MiB", grown as f64 / 1024.0));
    run.figure("queued in its sockets", format!("{:.0} MiB", most_queued as f64 / 1024.0));
    run.figure("socket memory above idle", format!("{:.0} MiB", sockets as f64 / 1024.0));
    run.figure("small answers, p99 quiet", format!("{:.1} ms", quiet.as_secs_f64() * 1000.0));
    run.figure("p99 under attack, worst 100 calls", format!("{:.1} ms", attacked.as_secs_f64() * 1000.0));
    run.figure("a large answer to one who reads", format!("{:.1} s", asked.elapsed().as_secs_f64()));
    let allowed = if run.full { MOST_KIB } else { SHORT_KIB };
    assert!(grown < allowed, "{grown} KiB for {readers} readers; {allowed} are allowed");
    assert!(most_queued < allowed, "{most_queued} KiB in sockets; {allowed} are allowed");
    // Others use sockets, too, while the test command runs.
    assert!(!run.full || sockets < MOST_KIB, "{sockets} KiB of socket memory");
    drop(unread);
    run.end();
}
