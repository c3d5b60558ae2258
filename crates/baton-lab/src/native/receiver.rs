//! A webhook receiver: a small HTTP server that records its calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::talk::{fresh_id, skip};
use super::v1::card_security::is_loopback;
use crate::native::{Done, fail};
use crate::run::Bench;

/// Largest call that is read.
const MOST: usize = 4 * 1024 * 1024;
/// Most calls that are recorded.
const MOST_CALLS: usize = 1000;
/// How long one call may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for another case that uses the same configured address.
const TURN: Duration = Duration::from_secs(30);

/// One call of the webhook.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Call {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

#[derive(Debug, Default)]
struct Kept {
    calls: Mutex<Vec<Call>>,
    came: Notify,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The URL for the agent to call; different for each case.
    pub(super) url: String,
    path: String,
    kept: Arc<Kept>,
    _stop: DropGuard,
}

impl Receiver {
    /// Listens on loopback, or at the address that the user gave because the agent can reach it.
    pub(super) async fn open(bench: &Bench) -> Done<Self> {
        let given = |name: &str| bench.options().given.get(name).and_then(Value::as_str).map(str::to_owned);
        let (listener, base) = match (given("webhookUrl"), given("webhookListen")) {
            (Some(url), listen) => {
                let address = listen.unwrap_or_else(|| format!("0.0.0.0:{}", port_of(&url)));
                (listen_in_turn(&address).await?, url.trim_end_matches('/').to_owned())
            }
            (None, _) if is_loopback(&bench.target().base) => {
                let listener = listen_in_turn("127.0.0.1:0").await?;
                let address = listener.local_addr().map_err(|error| fail(error.to_string()))?;
                (listener, format!("http://{address}"))
            }
            (None, _) => {
                return Err(skip(
                    "the agent is not on this machine, so it cannot reach a webhook here; give one it can reach: \
                     --var webhookUrl=http://THIS-HOST:PORT (and --var webhookListen=ADDR:PORT behind a tunnel)",
                ));
            }
        };
        let (kept, stop) = (Arc::new(Kept::default()), CancellationToken::new());
        let path = format!("/{}", fresh_id());
        tokio::spawn(stop.clone().run_until_cancelled_owned(listen(listener, Arc::clone(&kept))));
        Ok(Receiver { url: format!("{base}{path}"), path, kept, _stop: stop.drop_guard() })
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Vec<Call> {
        let calls = self.kept.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().filter(|call| call.path.ends_with(&self.path)).cloned().collect()
    }

    /// Waits for a matching call; `None` if there was none in time.
    pub(super) async fn wait(&self, time: Duration, fits: impl Fn(&Call) -> bool) -> Option<Call> {
        let deadline = Instant::now() + time;
        loop {
            let came = self.kept.came.notified();
            if let Some(call) = self.calls().into_iter().find(|call| fits(call)) {
                return Some(call);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            tokio::time::timeout(left, came).await.ok()?;
        }
    }
}

fn port_of(url: &str) -> u16 {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.unwrap_or(if url.starts_with("https://") { 443 } else { 80 })
}

/// A configured address serves one case at a time.
async fn listen_in_turn(address: &str) -> Done<TcpListener> {
    let started = Instant::now();
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && started.elapsed() < TURN => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(skip(format!("no webhook can listen at {address}: {error}"))),
        }
    }
}

async fn listen(listener: TcpListener, kept: Arc<Kept>) {
    // Bounded: an agent that floods its webhook has to wait.
    let slots = Arc::new(tokio::sync::Semaphore::new(64));
    while let (Ok((stream, _)), Ok(slot)) =
        (listener.accept().await, Arc::clone(&slots).acquire_owned().await)
    {
        let kept = Arc::clone(&kept);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, Box::pin(serve(stream, &kept))).await;
            drop(slot);
        });
    }
}

/// One call per connection.
async fn serve(mut stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let call = loop {
        if let Some(call) = parse(&bytes) {
            break call;
        }
        let mut chunk = vec![0; 16 * 1024];
        let count = stream.read(&mut chunk).await?;
        bytes.extend_from_slice(&chunk[..count]);
        if count == 0 || bytes.len() > MOST {
            return Ok(());
        }
    };
    {
        let mut calls = kept.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < MOST_CALLS {
            calls.push(call);
        }
    }
    kept.came.notify_waiters();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    stream.shutdown().await
}

/// The call, if it is complete.
fn parse(bytes: &[u8]) -> Option<Call> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let mut call = Call { method, path, headers, body: Vec::new() };
    let rest = &bytes[end + 4..];
    let chunked =
        call.header("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    call.body = if chunked {
        unchunked(rest)?
    } else {
        let length = call.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        rest.get(..length)?.to_vec()
    };
    Some(call)
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_when_all_of_it_is_there() {
        let plain = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
        let chunked =
            b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n";
        for (call, least) in [(&plain[..], plain.len()), (&chunked[..], chunked.len() - 2)] {
            for cut in 0..least {
                assert!(parse(&call[..cut]).is_none(), "cut at {cut}");
            }
            let parsed = parse(call).unwrap();
            assert_eq!(
                (parsed.method.as_str(), parsed.path.as_str(), parsed.body.as_slice()),
                ("POST", "/a", &b"{}"[..])
            );
        }
        assert_eq!(port_of("http://h:81/x"), 81);
        assert_eq!((port_of("https://h/x"), port_of("http://h")), (443, 80));
    }
}
