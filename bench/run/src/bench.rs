//! One run: rows in order, rounds within a row, servers within a round, a new process for each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use crate::cores::{Cores, Place};
use crate::figures::Figures;
use crate::machine;
use crate::recorded::{self, Recorded};
use crate::rows::{self, Point, Row};
use crate::server::Server;
use crate::subjects::{Program, Subject};

#[derive(Debug, Default)]
pub struct Bench {
    /// Where the compiled servers are.
    pub programs: PathBuf,
    /// Databases, logs and recordings. Not emptied automatically.
    pub scratch: PathBuf,
    /// The folder `bench` of the repository.
    pub sources: PathBuf,
    /// Where the environments for Python and Node are.
    pub tools: Option<PathBuf>,
    /// The binary of the project, and the same built without gRPC.
    pub baton: Option<PathBuf>,
    pub baton_without_grpc: Option<PathBuf>,
    pub only: Vec<String>,
    /// Only these servers; all if there are none.
    pub servers: Vec<String>,
    pub quick: bool,
    cores: Option<Cores>,
    /// The load of other processes when the run began.
    pub others: f64,
    pub recorded: Recorded,
}

impl Bench {
    pub fn run(&mut self) -> Result<Figures, String> {
        fs::create_dir_all(&self.scratch).map_err(|error| format!("{}: {error}", self.scratch.display()))?;
        self.cores = Some(Cores::find()?);
        self.others = machine::load();
        self.recorded = recorded::record(self)?;
        let mut figures = Figures::default();
        for row in rows::ROWS.iter().filter(|row| self.is_chosen(row)) {
            self.measure(row, &mut figures);
        }
        Ok(figures)
    }

    pub fn is_chosen(&self, row: &Row) -> bool {
        // The rate of `latency` is taken from `throughput`.
        let needed = |id: &str| id == "latency" && row.id == "throughput";
        self.only.is_empty() || self.only.iter().any(|id| id == row.id || needed(id))
    }

    fn measure(&self, row: &Row, figures: &mut Figures) {
        let start = Instant::now();
        println!("{}: {}", row.id, row.work);
        let rounds = self.pick(row.rounds.0, row.rounds.1);
        for round in 0..rounds {
            for subject in row.subjects {
                if !self.servers.is_empty() && !self.servers.iter().any(|name| name == subject.name) {
                    continue;
                }
                // A server that failed once would fail again, after a timeout, in every round.
                if figures.notes(row.id).any(|(known, _)| known == subject) {
                    continue;
                }
                let point = Point { bench: self, subject: *subject, round, figures };
                match (row.measure)(&point) {
                    Ok(points) => {
                        let text: Vec<String> = points
                            .iter()
                            .map(|(name, value)| format!("{name} {}", crate::figures::shown(*value)))
                            .collect();
                        println!("  {:28} {}", subject.name, text.join(", "));
                        figures.add(row.id, subject, points);
                    }
                    Err(reason) => {
                        println!("  {:28} not measured: {reason}", subject.name);
                        figures.note(row.id, *subject, reason);
                    }
                }
            }
        }
        println!("  {:.0} s", start.elapsed().as_secs_f64());
    }

    /// One of two values, for quick and for full runs.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Starts a new process, with a new database if it uses `STORE`.
    pub fn start(&self, subject: &Subject, place: Place, env: &[(&str, &Path)]) -> Result<Server, String> {
        let mut command = self.command(subject)?;
        command.envs(subject.env.iter().copied()).envs(env.iter().copied());
        self.start_as(subject, command, place)
    }

    /// The same under valgrind, which writes to that file when the server exits.
    pub fn start_under_callgrind(
        &self,
        subject: &Subject,
        env: &[(&str, &Path)],
        file: &Path,
    ) -> Result<Server, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", file.display())]);
        command.arg(self.command(subject)?.get_program()).envs(subject.env.iter().copied());
        command.envs(env.iter().copied());
        self.start_as(subject, command, Place::Own)
    }

    /// Starts any program in the scratch folder.
    pub fn spawn(&self, command: &mut Command, place: Place) -> Result<Child, String> {
        let cores = self.cores.ok_or("the cores are not chosen yet")?;
        let name = command.get_program().to_string_lossy().into_owned();
        command.current_dir(&self.scratch);
        cores.within(place, || command.spawn())?.map_err(|error| format!("{name}: {error}"))
    }

    fn start_as(&self, subject: &Subject, mut command: Command, place: Place) -> Result<Server, String> {
        command.current_dir(&self.scratch);
        let cores = self.cores.ok_or("the cores are not chosen yet")?;
        let log = self.scratch.join(format!("{}.log", subject.name));
        Server::start(subject, command, cores, place, log)
    }

    fn command(&self, subject: &Subject) -> Result<Command, String> {
        let tools = || self.tools.as_ref().ok_or("no environments: --tools is not given");
        match subject.program {
            Program::Rust(name) => Ok(Command::new(self.programs.join(name))),
            Program::Python => {
                let mut command = Command::new(tools()?.join("python/bin/python"));
                command.arg(self.sources.join("python/echo.py")).env("PYTHONDONTWRITEBYTECODE", "1");
                Ok(command)
            }
            Program::Node => {
                let folder = tools()?.join("node");
                let mut command = Command::new("node");
                // Node looks for packages beside the script.
                command.arg(folder.join("echo.mjs"));
                Ok(command)
            }
        }
    }
}
