//! What every Rust server of the bench has in common, so that only the SDK differs: `NAME PORT`, the number of workers
//! from `WORKERS` (default 1), and orders on standard input if `CONTROLLED` is set.
//!
//! The orders: `go` releases held tasks; `heap` is answered with a line of `allocations reallocations live-bytes`. A
//! controlled server exits at the end of its input, so that none outlives the run that started it.

use std::future::Future;
use std::io::{BufRead, Write};
use std::process::ExitCode;

use tokio::sync::watch;

/// The parameters of a server.
#[derive(Debug, Clone)]
pub struct Host {
    pub port: u16,
    /// Incremented by every `go`.
    pub go: watch::Receiver<u64>,
}

impl Host {
    pub fn address(&self) -> (&'static str, u16) {
        ("127.0.0.1", self.port)
    }

    /// Returns at the next `go`; never on a server without orders.
    pub async fn gone(&self) {
        let mut go = self.go.clone();
        go.mark_unchanged();
        if go.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Heap statistics: allocations, reallocations, bytes in use. `None` in binaries that do not count.
pub type Heap = Option<fn() -> (u64, u64, u64)>;

/// The process's `main`.
pub fn run<F>(heap: Heap, serve: impl FnOnce(Host) -> F) -> ExitCode
where
    F: Future<Output = Result<(), String>>,
{
    let mut args = std::env::args();
    let name = args.next().unwrap_or_default();
    let Some(port) = args.next().and_then(|port| port.parse().ok()) else {
        eprintln!("usage: {name} PORT");
        return ExitCode::from(2);
    };
    let workers = std::env::var("WORKERS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    let (sender, go) = watch::channel(0);
    if std::env::var_os("CONTROLLED").is_some() {
        std::thread::spawn(move || obey(sender, heap));
    }
    // The accept loop runs on a worker: the thread of `block_on` would be an additional thread.
    let served = runtime.block_on(serve(Host { port, go }));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => failed(&reason),
    }
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("{reason}");
    ExitCode::FAILURE
}

fn obey(go: watch::Sender<u64>, heap: Heap) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = match (line.as_str(), heap) {
            ("go", _) => {
                go.send_modify(|times| *times += 1);
                "gone".to_owned()
            }
            ("heap", Some(count)) => {
                let (allocations, reallocations, live) = count();
                format!("{allocations} {reallocations} {live}")
            }
            ("heap", None) => "not counted".to_owned(),
            (other, _) => format!("unknown order {other}"),
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    std::process::exit(0);
}
