//! A command whose time and memory are watched.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any of these commands takes on a busy machine; it hangs if it takes longer.
const HANG: Duration = Duration::from_secs(100);
/// Some results are larger than memory should be; the end is enough to see an error.
const KEPT: usize = 1 << 16;

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if it had to be killed.
    pub(super) code: Option<i32>,
    /// The end of its output.
    pub(super) out: String,
    pub(super) err: String,
    /// The most memory that it had, in MiB.
    pub(super) peak: u64,
}

impl Ended {
    pub(super) fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = keep(child.stdout.take().unwrap());
        let err = keep(child.stderr.take().unwrap());
        let status = format!("/proc/{}/status", child.id());
        let since = Instant::now();
        let mut peak = 0;
        let ended = loop {
            peak = peak.max(high_water(&status));
            if let Some(ended) = child.try_wait().unwrap() {
                break Some(ended);
            }
            if since.elapsed() > HANG {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(3)); // tidy: allow-sleep the kernel tells of a peak only who asks
        };
        let code = ended.and_then(|status| status.code());
        Ended { code, out: out.join().unwrap(), err: err.join().unwrap(), peak }
    }

    /// The code of the error that it printed; empty if there is none.
    pub(super) fn error(&self) -> String {
        let last = self.out.lines().last().unwrap_or_default();
        let found = [self.out.as_str(), last].into_iter().find_map(|text| {
            let value: Value = serde_json::from_str(text).ok()?;
            Some(value["error"]["code"].as_str()?.to_owned())
        });
        found.unwrap_or_default()
    }
}

/// Reads everything, and keeps its end.
fn keep(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), vec![0; KEPT]);
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..read]);
            kept.drain(..kept.len().saturating_sub(KEPT));
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// The peak of the process so far, in MiB; 0 where there is no such file, and when the process has ended.
fn high_water(status: &str) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default() >> 10
}
