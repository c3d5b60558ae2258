//! Clients that try to fill the log: frames that some library warns about, and requests that are refused.

use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::faults::runs::{HANG, Run};
use crate::faults::sockets::address;
use crate::served::{Served, baton, text};

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];

/// What a log may hold beside what an attack is allowed.
const USUAL_LINES: usize = 20;
/// Lines of one cause in ten seconds, and the one that counts the others.
const LIMITED_LINES: usize = 21;

/// Frames of one kind, until the server ends the connection or there have been so many.
async fn flood(server: &Served, frame: &[u8], count: u64) {
    let mut stream = TcpStream::connect(address(server)).await.unwrap();
    // The preface, and empty settings.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let many = frame.repeat(1000);
    let flooding = tokio::spawn(async move {
        for _ in 0..count / 1000 {
            if writer.write_all(&many).await.is_err() {
                break;
            }
        }
        // Not closed before the server does.
        writer
    });
    let mut buffer = [0; 4096];
    let ended = async { while let Ok(1..) = reader.read(&mut buffer).await {} };
    tokio::time::timeout(HANG, ended).await.expect("the server ends the connection");
    drop(flooding.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_owe_nothing_do_not_fill_the_log() {
    let mut run = Run::begin("attack-log-frames");
    let count = run.count(200_000, 2_500_000);
    let server = Served::with(&SERVE);
    for (name, frame) in [
        ("PING acknowledgements", &b"\0\0\x08\x06\x01\0\0\0\0abcdefgh"[..]),
        ("SETTINGS acknowledgements", b"\0\0\0\x04\x01\0\0\0\0"),
        ("WINDOW_UPDATEs of 1", b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01"),
    ] {
        flood(&server, frame, count).await;
        run.figure(&format!("{name} sent"), count);
    }
    let log = server.stop_and_log();
    let lines = log.lines().count();
    assert!(lines <= USUAL_LINES, "{lines} lines: {}", &log[..log.len().min(4000)]);
    run.figure("lines in the log", lines);
    run.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_do_not_fill_the_log() {
    let mut run = Run::begin("attack-log-requests");
    let count = run.count(300, 20_000);
    let mut command = baton(&SERVE);
    let server = Served::of(command.env("BATON_LIMITS_MAX_RUNNING", "1").env("BATON_LIMITS_MAX_QUEUED", "1"));
    let held = server.start_task(text("held", "wait until I cancel")).await;
    server.start_task(text("queued", "Hello, Baton")).await;
    let since = Instant::now();
    for n in 0..count {
        let params = json!({"message": text(&format!("refused-{n}"), "Hello, Baton")});
        assert_eq!(server.post("SendMessage", params).await.status(), 503);
    }
    let whiles = 1 + since.elapsed().as_secs() as usize / 10;
    server.cancel(&held).await;
    let log = server.stop_and_log();
    let about = log.lines().filter(|line| line.contains("a request was refused")).count();
    assert!(about <= LIMITED_LINES * whiles, "{about} lines for {count} requests");
    let counted: u64 = log.lines().filter(|line| line.contains("were left out")).map(left_out).sum();
    let said =
        log.lines().filter(|line| line.contains("baton_server::request: a request was refused")).count();
    assert_eq!(counted + said as u64, count, "every one is said or counted");
    run.figure("refused requests", count);
    run.figure("lines about them", about);
    run.end();
}

/// What `lines=` says.
fn left_out(line: &str) -> u64 {
    let rest = line.split_once("lines=").unwrap().1;
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}
