//! What gRPC costs those who do not switch it on: the binary without it, with it switched off, and on.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Point, Points, Row, Verdict};
use crate::cores::Place;
use crate::server::resident_of;
use crate::subjects::{Kind, Program, Subject};

const fn binary(name: &'static str, shown: &'static str) -> Subject {
    Subject { name, shown, program: Program::Rust("baton"), path: "/", kind: Kind::Baton, env: &[] }
}

const WITHOUT: Subject = binary("without-grpc", "`baton` built without gRPC");
const OFF: Subject = binary("grpc-off", "`baton`, gRPC switched off");
const ON: Subject = binary("grpc-on", "`baton`, gRPC switched on");

const RUNS: (usize, usize) = (3, 10);
/// A server that does not answer by then never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a server is left alone before its memory is read.
const SETTLING: Duration = Duration::from_millis(500);

pub const SWITCHED_OFF: Row = Row {
    id: "grpc-off",
    work: "gRPC, for those who do not switch it on: start and idle memory of `baton serve`, cold start of a command",
    remark: "Start is from the start of the process to the first answer, with a store in memory. Memory is resident memory \
             of the server, half a second later. The command is `baton card get` of the same binary, as in the row \
             `cold-start`.",
    rounds: (3, 10),
    subjects: &[WITHOUT, OFF, ON],
    measure,
    columns: &[
        ("start", "start, ms"),
        ("memory", "idle memory, kB"),
        ("card", "`card get`, ms"),
        ("size", "binary, MB"),
    ],
    judge: |figures| {
        let off = |name| figures.ratio("grpc-off", name, &OFF, &WITHOUT);
        vec![
            Verdict::at_most("start: off as without (within 5 %)", off("start"), 1.05, " ×"),
            Verdict::at_most("idle memory: off as without (within 5 %)", off("memory"), 1.05, " ×"),
            Verdict::at_most("`card get`: off as without (within 5 %)", off("card"), 1.05, " ×"),
        ]
    },
};

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let bench = point.bench;
    let binary = if point.subject == WITHOUT { &bench.baton_without_grpc } else { &bench.baton };
    let binary = binary.as_deref().ok_or("no binary: --baton or --baton-without-grpc is not given")?;
    let runs = bench.pick(RUNS.0, RUNS.1);
    let (mut starts, mut memories, mut cards) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let server = Serving::start(point, binary)?;
        starts.push(server.started.as_secs_f64() * 1e3);
        std::thread::sleep(SETTLING);
        memories.push(resident_of(server.process.id())? as f64);
        cards.push(card(point, binary, server.address)?.as_secs_f64() * 1e3);
    }
    let size = fs::metadata(binary).map_err(|error| format!("{}: {error}", binary.display()))?.len();
    Ok(vec![
        ("start", middle(starts)),
        ("memory", middle(memories)),
        ("card", middle(cards)),
        ("size", size as f64 / 1e6),
    ])
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `baton serve` with its demo agent.
struct Serving {
    process: Child,
    address: SocketAddr,
    started: Duration,
}

impl Serving {
    fn start(point: &Point<'_>, binary: &Path) -> Result<Self, String> {
        let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let address = address.map_err(|error| format!("no free port: {error}"))?;
        let log = point.bench.scratch.join(format!("{}.log", point.subject.name));
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", &address.to_string(), "--store", "memory:"]);
        command.args((point.subject == ON).then_some("--grpc"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log_file(&log)?);
        home(&mut command, point);
        let start = Instant::now();
        let process = point.bench.spawn(&mut command, Place::Own)?;
        let mut serving = Serving { process, address, started: Duration::ZERO };
        while !serving.answers() {
            let ended = serving.process.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{} does not answer: {ended:?} {said}", point.subject.name));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        serving.started = start.elapsed();
        Ok(serving)
    }

    fn answers(&self) -> bool {
        let Ok(mut socket) = TcpStream::connect(self.address) else { return false };
        let request =
            "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        let mut answer = Vec::new();
        socket.write_all(request.as_bytes()).and_then(|()| socket.read_to_end(&mut answer)).is_ok()
            && answer.starts_with(b"HTTP/1.1 200")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn card(point: &Point<'_>, binary: &Path, address: SocketAddr) -> Result<Duration, String> {
    let mut command = Command::new(binary);
    command.args(["card", "get", &format!("http://{address}")]).current_dir(&point.bench.scratch);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    home(&mut command, point);
    let start = Instant::now();
    let done = command.output().map_err(|error| format!("{}: {error}", binary.display()))?;
    let took = start.elapsed();
    if !done.status.success() {
        return Err(format!("card get: {}", String::from_utf8_lossy(&done.stderr)));
    }
    Ok(took)
}

/// Settings of whoever runs this must not count.
fn home(command: &mut Command, point: &Point<'_>) {
    command.env("HOME", &point.bench.scratch);
}

fn log_file(path: &Path) -> Result<fs::File, String> {
    fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))
}
