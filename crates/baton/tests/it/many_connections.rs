//! As many connections as the server accepts, and more than the process has file descriptors for: other clients are
//! still served.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::served::{Served, baton, text};

const HANG: Duration = Duration::from_secs(60);

/// Raises the limit on open files for this process and its children.
fn files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, all).unwrap();
    limit.maximum.map_or(usize::MAX, |most| most as usize)
}

fn address(server: &Served) -> String {
    server.url.trim_start_matches("http://").to_owned()
}

/// Connects, asks for the server's health, and stays.
async fn asked(address: String) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 512];
    while !answer.ends_with(b"ok") {
        let count = tokio::time::timeout(HANG, stream.read(&mut buffer)).await.expect("an answer").unwrap();
        assert!(count > 0, "closed: {:?}", answer.escape_ascii().to_string());
        answer.extend_from_slice(&buffer[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{:?}", answer.escape_ascii().to_string());
    stream
}

/// So many at once.
async fn all_asked(address: &str, count: usize) -> Vec<TcpStream> {
    let all: JoinSet<_> = (0..count).map(|_| asked(address.to_owned())).collect();
    all.join_all().await
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Ten thousand silent connections, if the system allows as many; the server accepts no more than that.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections_are_held_and_the_next_are_served() {
    let count = 10_000.min(files().saturating_sub(2_000));
    let mut patient = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    let server = Served::of(patient.env("BATON_CONNECTIONS_FIRST_BYTE", "10m"));
    let address = address(&server);
    let quiet = all_asked(&address, 500).await;
    let with_buffers = resident_kib(server.pid());
    let mut held = Vec::with_capacity(count);
    while held.len() < count {
        held.push(TcpStream::connect(&address).await.unwrap());
        if held.len() % 500 == 0 {
            server.send(text(&format!("honest-{}", held.len()), "hello")).await;
        }
    }
    let silent = (resident_kib(server.pid()) - with_buffers) as f64 / count as f64;
    assert!(silent < 16.0, "{silent:.1} KiB for a silent connection");
    // Newcomers are answered; the longest quiet made room for them.
    let newcomers = all_asked(&address, 500).await;
    let is_gone = |stream: &&TcpStream| matches!(stream.try_read(&mut [0; 16]), Ok(0));
    let gone = quiet.iter().chain(&held).filter(is_gone).count();
    assert!((500..=1_100).contains(&gone), "{gone} made room for 1,000 and an honest client");
    assert_eq!(newcomers.iter().filter(is_gone).count(), 0);
}

async fn logged(server: &Served, wanted: &str) {
    let since = Instant::now();
    while !server.log().contains(wanted) {
        assert!(since.elapsed() < HANG, "no {wanted:?} in\n{}", server.log());
        tokio::task::yield_now().await;
    }
}

/// Without a free file descriptor no connection can be accepted. The server must survive this and recover.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_files_left_recovers() {
    files();
    let command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    let program = command.get_program().to_owned();
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 60; exec \"$0\" \"$@\""]).arg(program).args(command.get_args());
    let server = Served::of(&mut limited);
    logged(&server, "fewer connections than configured").await;
    let address = address(&server);
    let mut busy = Vec::new();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"slow"}]}}}"#;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n";
    let since = Instant::now();
    while !server.log().contains("connections cannot be accepted") {
        assert!(since.elapsed() < HANG, "there are always files left\n{}", server.log());
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // It may be refused before its request was read; it stays open anyway.
        let _ = stream.write_all(format!("{head}Content-Length: 1000\r\n\r\n{body}").as_bytes()).await;
        busy.push(stream);
    }
    drop(busy);
    server.send(text("honest", "hello")).await;
}
