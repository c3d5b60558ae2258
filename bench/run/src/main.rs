//! Runs every row of the benchmark, interleaved, and writes the results. `cargo xtask bench` builds the servers and
//! starts this.

mod bench;
mod callgrind;
mod chart;
mod cores;
mod figures;
mod grpc;
mod guard;
mod machine;
mod page;
mod recorded;
mod rows;
mod server;
mod strace;
mod subjects;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use bench::Bench;

const USAGE: &str = "\
usage: bench-run --programs FOLDER --scratch FOLDER --sources FOLDER [--tools FOLDER] [--baton FILE]
                 [--baton-without-grpc FILE] [--quick] [--only ROW]… [--server NAME]… [--write FILE] [--list]";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let mut bench = Bench::default();
    let mut write = None;
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"));
        match flag.as_str() {
            "--programs" => bench.programs = PathBuf::from(value()?),
            "--scratch" => bench.scratch = PathBuf::from(value()?),
            "--sources" => bench.sources = PathBuf::from(value()?),
            "--tools" => bench.tools = Some(PathBuf::from(value()?)),
            "--baton" => bench.baton = Some(PathBuf::from(value()?)),
            "--baton-without-grpc" => bench.baton_without_grpc = Some(PathBuf::from(value()?)),
            "--write" => write = Some(PathBuf::from(value()?)),
            "--server" => bench.servers.push(value()?),
            "--only" => bench.only.push(value()?),
            "--quick" => bench.quick = true,
            "--list" => {
                rows::ROWS.iter().for_each(|row| println!("{:12} {}", row.id, row.work));
                return Ok(());
            }
            _ => return Err(format!("unknown flag {flag}\n{USAGE}")),
        }
    }
    if let Some(unknown) = bench.only.iter().find(|id| !rows::ROWS.iter().any(|row| row.id == id.as_str())) {
        return Err(format!("no row {unknown}; --list names them"));
    }
    let known =
        |name: &String| rows::ROWS.iter().any(|row| row.subjects.iter().any(|subject| subject.name == name));
    if let Some(unknown) = bench.servers.iter().find(|name| !known(name)) {
        return Err(format!("no server {unknown}; a run prints their names"));
    }
    let figures = bench.run()?;
    let text = page::text(&bench, &figures);
    println!("\n{text}");
    if let Some(file) = write {
        page::write(&file, &text, &bench, &figures)?;
        println!("written: {}", file.display());
    }
    // Reported last, after everything that could be measured.
    let incomplete = figures.incomplete();
    if incomplete.is_empty() { Ok(()) } else { Err(format!("not measured:\n{}", incomplete.join("\n"))) }
}
