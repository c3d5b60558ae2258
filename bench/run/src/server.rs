//! A server under test: a new process for every point, on its own core, killed by its process id.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bench_load::Target;

use crate::cores::{Cores, Place};
use crate::guard::Guard;
use crate::subjects::Subject;

/// Python takes several seconds for its imports.
const START: Duration = Duration::from_secs(60);
const FIRST_PORT: u16 = 4000;
const PORTS: u16 = 100;

pub struct Server {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pub target: Target,
    pub path: &'static str,
    /// Further lines of every request.
    pub headers: String,
    log: PathBuf,
}

/// Processor time of all its threads.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    /// Of the live threads, to the nanosecond.
    threads: Duration,
    /// Of the whole process, including threads that have ended, to the hundredth of a second.
    process: Duration,
}

impl Server {
    pub fn start(
        subject: &Subject,
        mut command: Command,
        cores: Cores,
        place: Place,
        log: PathBuf,
    ) -> Result<Self, String> {
        let address = free_address()?;
        let guard = Guard::of(subject, &log);
        command.envs(guard.iter().map(Guard::env));
        command.arg(address.port().to_string()).env("CONTROLLED", "1");
        let errors = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        // Without its folder, since the message may end up on a public page.
        let shown =
            Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let spawned = cores.within(place, || command.spawn())?;
        let mut process = spawned.map_err(|error| format!("{shown}: {error}"))?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().ok_or("a child without the output it was given")?;
        let mut server = Server {
            process,
            orders,
            answers: BufReader::new(answers),
            target: Target::plain(address),
            path: subject.path,
            headers: String::new(),
            log,
        };
        server.await_port(subject.name)?;
        if let Some(guard) = guard {
            (server.target, server.headers) = guard.needs(address)?;
        }
        Ok(server)
    }

    fn await_port(&mut self, name: &str) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(self.target.address).is_err() {
            let ended = self.process.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || start.elapsed() > START {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(10)..].join("\n");
                return Err(format!("{name} does not listen at {}: {ended:?}\n{tail}", self.target.address));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it has exited by itself.
    pub fn wait(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while self.process.try_wait().map_err(|error| error.to_string())?.is_none() {
            if start.elapsed() > START {
                return Err("the server does not end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Sends it an order, and returns its answer.
    pub fn order(&mut self, what: &str) -> Result<String, String> {
        let orders = self.orders.as_mut().ok_or("its input is closed")?;
        writeln!(orders, "{what}")
            .and_then(|()| orders.flush())
            .map_err(|error| format!("{what}: {error}"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| format!("{what}: {error}"))?;
        Ok(line.trim().to_owned())
    }

    /// Allocations (reallocations too) and live bytes, of a server that counts.
    pub fn heap(&mut self) -> Result<(u64, u64), String> {
        let said = self.order("heap")?;
        let numbers: Vec<u64> = said.split(' ').map_while(|word| word.parse().ok()).collect();
        match numbers[..] {
            [allocations, reallocations, live] => Ok((allocations + reallocations, live)),
            _ => Err(format!("no account of the heap: {said}")),
        }
    }

    pub fn cpu(&self) -> Result<Cpu, String> {
        let pid = self.pid();
        let threads =
            fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| format!("/proc/{pid}: {error}"))?;
        let on_core = |task: PathBuf| -> Option<u64> {
            // "nanoseconds on a core, nanoseconds waiting for one, slices"
            fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
        };
        let threads: u64 = threads.flatten().filter_map(|task| on_core(task.path())).sum();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| error.to_string())?;
        let ticks = ticks(&stat).ok_or("/proc/PID/stat has another form")?;
        Ok(Cpu { threads: Duration::from_nanos(threads), process: Duration::from_millis(ticks * 10) })
    }

    /// Kilobytes in memory.
    pub fn resident(&self) -> Result<u64, String> {
        resident_of(self.pid())
    }
}

/// Kilobytes of a process in memory.
pub fn resident_of(pid: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| "/proc/PID/status has no VmRSS".to_owned())
}

impl Cpu {
    /// Microseconds between two readings.
    pub fn until(self, later: Cpu) -> f64 {
        let threads = later.threads.saturating_sub(self.threads);
        let process = later.process.saturating_sub(self.process);
        // If a thread has ended, its time is missing; the process's own counter is coarser, but complete.
        let lost = threads + Duration::from_millis(30) < process;
        (if lost { process } else { threads }).as_secs_f64() * 1e6
    }
}

/// User and system time. The name in brackets may have spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Fixed ports are tried in turn: ephemeral ones may still be used by connections of the last point.
fn free_address() -> Result<SocketAddr, String> {
    let start = std::process::id() as u16 % PORTS;
    for offset in 0..PORTS {
        let port = FIRST_PORT + (start + offset) % PORTS;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(format!("no free port from {FIRST_PORT} on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_past_a_strange_name() {
        let stat = "1 (a b) c) S 2 3 4 5 6 7 8 9 10 11 120 30 14";
        assert_eq!(ticks(stat), Some(150));
    }
}
