//! A crowd that connects in the same moment: the kernel completes the connections while the server is busy, and nobody
//! has to try again a second later.

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::faults::runs::{HANG, Run};
use crate::faults::sockets::{address, affordable};
use crate::served::Served;

const ASK: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// What the kernel lets a server ask for.
fn most() -> u64 {
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    most.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_connects_while_the_server_is_busy() {
    let mut run = Run::begin("attack-connects");
    let crowd = affordable(run.count(1500, 4000)).min(most());
    let server = Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    // It serves; the welcome comes a moment before that.
    assert_eq!(server.probe("/healthz").await.0, 200);
    // As busy as can be: it does not accept a single one of them.
    server.signal("-STOP");
    let (at, since) = (address(&server), Instant::now());
    let mut connecting = JoinSet::new();
    for _ in 0..crowd {
        connecting.spawn(TcpStream::connect(at.clone()));
    }
    let connected = tokio::time::timeout(HANG, connecting.join_all()).await;
    let took = since.elapsed();
    server.signal("-CONT");
    let connected = connected.expect("the kernel takes them all");
    let mut asking = JoinSet::new();
    for stream in connected {
        let mut stream = stream.unwrap();
        asking.spawn(async move {
            let mut answer = String::new();
            stream.write_all(ASK).await.unwrap();
            tokio::time::timeout(HANG, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
            answer.starts_with("HTTP/1.1 200")
        });
    }
    let answered = asking.join_all().await.into_iter().filter(|served| *served).count() as u64;
    assert_eq!(answered, crowd);
    run.figure("connects at once", crowd);
    run.figure("all connected in", format!("{:.2} s", took.as_secs_f64()));
    run.figure("answered", answered);
    run.end();
}
