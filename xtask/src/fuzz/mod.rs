//! `cargo xtask fuzz`: runs the targets for a given time, and writes the page with the figures.
//!
//! The targets are functions in the crates; `fuzz/targets.tsv` lists them. They run under libFuzzer if it can be built
//! (it only needs a C++ compiler), else in the same loop as in the test command.

mod libfuzzer;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::run as execute;
use crate::workspace::Workspace;

const USUAL_SECONDS: u64 = 60;

/// A line of `fuzz/targets.tsv`.
#[derive(Debug, Clone, PartialEq)]
struct Target {
    name: String,
    package: String,
    seeds: Vec<String>,
}

/// The result of one target.
#[derive(Debug, Clone, PartialEq, Default)]
struct Outcome {
    name: String,
    executions: u64,
    seconds: f64,
    /// Number of inputs at the start, and in the corpus at the end.
    seeds: u64,
    corpus: u64,
    /// Coverage points that were reached; 0 if not counted.
    coverage: u64,
    /// Milliseconds of the slowest input.
    slowest: f64,
    peak_mib: u64,
    failed: bool,
}

#[derive(Debug, Default, PartialEq)]
pub struct Choice {
    targets: Vec<String>,
    seconds: Option<u64>,
    own: bool,
    list: bool,
    write: bool,
}

impl Choice {
    pub fn parse(flags: &[String]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || flags.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--own" => choice.own = true,
                "--list" => choice.list = true,
                "--write" => choice.write = true,
                "--target" => choice.targets.push(value()?.clone()),
                "--time" => choice.seconds = Some(seconds(value()?)?),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(choice)
    }
}

/// `90`, `90s` or `2m`.
fn seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: u64 = digits.parse().map_err(|_| format!("--time {text}: give it as 90s or 2m"))?;
    if number == 0 { Err("--time must be at least one second".to_owned()) } else { Ok(number * unit) }
}

pub fn run(workspace: &Workspace, choice: &Choice) -> Result<(), String> {
    let targets = chosen(&read(&workspace.root)?, &choice.targets)?;
    if choice.list {
        for Target { name, package, .. } in &targets {
            println!("{name:16} {package}");
        }
        return Ok(());
    }
    let seconds = choice.seconds.unwrap_or(USUAL_SECONDS);
    let built = if choice.own { None } else { libfuzzer::build(workspace) };
    let engine = match &built {
        Some(_) => "libFuzzer, guided by coverage",
        None => "our own loop, without coverage",
    };
    println!("{} targets, {seconds} s each: {engine}", targets.len());
    let results = match built {
        Some(binary) => libfuzzer::run(workspace, &binary, &targets, seconds)?,
        None => own_loop(workspace, &targets, seconds)?,
    };
    for result in &results {
        println!("{}", page::line(result));
    }
    if choice.write {
        page::write(workspace, engine, &results)?;
    }
    let failed: Vec<&str> = results.iter().filter(|it| it.failed).map(|it| it.name.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}; see above", failed.join(", "))) }
}

fn read(root: &Path) -> Result<Vec<Target>, String> {
    let path = root.join("fuzz/targets.tsv");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| target(line).ok_or_else(|| format!("fuzz/targets.tsv: no target: {line}"))).collect()
}

fn target(line: &str) -> Option<Target> {
    let mut fields = line.split('\t');
    let (name, package) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    Some(Target { name, package, seeds: fields.next()?.split_whitespace().map(str::to_owned).collect() })
}

/// The named targets; default: all.
fn chosen(all: &[Target], names: &[String]) -> Result<Vec<Target>, String> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |name: &String| {
        let known: Vec<&str> = all.iter().map(|target| target.name.as_str()).collect();
        let found = all.iter().find(|target| target.name == *name).cloned();
        found.ok_or_else(|| format!("no target `{name}`; there are {}", known.join(", ")))
    };
    names.iter().map(find).collect()
}

/// The seed files of a target.
fn seeds(root: &Path, target: &Target) -> Vec<PathBuf> {
    let own = [format!("fuzz/seeds/{}", target.name), format!("fuzz/regressions/{}", target.name)];
    let mut files = Vec::new();
    target.seeds.iter().chain(&own).for_each(|place| collect(&root.join(place), &mut files));
    files.sort();
    files
}

fn collect(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_file() {
        into.push(path.to_owned());
    }
    for entry in fs::read_dir(path).into_iter().flatten().filter_map(Result::ok) {
        collect(&entry.path(), into);
    }
}

/// Runs the loop of the test command for a longer time.
fn own_loop(workspace: &Workspace, targets: &[Target], seconds: u64) -> Result<Vec<Outcome>, String> {
    let folder = workspace.results().join("fuzz/results");
    fresh(&folder)?;
    let mut args =
        vec!["nextest", "run", "--locked", "--lib", "--bins", "--profile", "fuzz", "--no-fail-fast"];
    let names: Vec<String> = targets.iter().map(|target| format!("fuzz::tests::{}", target.name)).collect();
    for target in targets {
        args.extend(["--package", &target.package]);
    }
    args.extend(names.iter().map(String::as_str));
    let mut tests = workspace.cargo(&args);
    tests.env("BATON_FUZZ_TIME", seconds.to_string()).env("BATON_FUZZ_RESULTS", &folder);
    let ended = execute(&mut tests);
    let results = targets.iter().map(|target| {
        let figures = fs::read_to_string(folder.join(&target.name)).unwrap_or_default();
        own_figures(&figures).unwrap_or(Outcome {
            name: target.name.clone(),
            failed: true,
            ..Outcome::default()
        })
    });
    let results: Vec<_> = results.collect();
    // Neither a result nor a failure: the target did not run.
    match ended {
        Ok(()) if results.iter().any(|result| result.failed) => Err("a target left no figures".to_owned()),
        _ => Ok(results),
    }
}

/// Name, executions, seconds, files, milliseconds of the slowest; tabs between.
fn own_figures(line: &str) -> Option<Outcome> {
    let fields: Vec<&str> = line.trim_end().split('\t').collect();
    let [name, executions, seconds, seeds, slowest] = fields.as_slice() else { return None };
    let seeds = seeds.parse().ok()?;
    Some(Outcome {
        name: (*name).to_owned(),
        executions: executions.parse().ok()?,
        seconds: seconds.parse().ok()?,
        seeds,
        corpus: seeds,
        slowest: slowest.parse().ok()?,
        ..Outcome::default()
    })
}

/// An empty folder.
fn fresh(folder: &Path) -> Result<(), String> {
    let told = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(told)?;
    }
    fs::create_dir_all(folder).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> Result<Choice, String> {
        Choice::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_read() {
        let choice = flags("--target sse --target calls --time 2m --write").unwrap();
        assert_eq!(
            (choice.targets.len(), choice.seconds, choice.write, choice.own),
            (2, Some(120), true, false)
        );
        assert_eq!(flags("--time 90s").unwrap().seconds, Some(90));
        assert_eq!(flags("--time 5").unwrap().seconds, Some(5));
        for bad in ["--time", "--time soon", "--time 0s", "--all"] {
            flags(bad).unwrap_err();
        }
    }

    #[test]
    fn unknown_targets_are_named_with_the_known_ones() {
        let all = [target("a\tbaton-lab\tx y").unwrap(), target("b\tbaton\t").unwrap()];
        assert_eq!(all[0].seeds, ["x", "y"]);
        assert_eq!(chosen(&all, &[]).unwrap().len(), 2);
        assert_eq!(chosen(&all, &["b".to_owned()]).unwrap()[0].package, "baton");
        assert!(chosen(&all, &["c".to_owned()]).unwrap_err().contains("there are a, b"));
    }

    #[test]
    fn figures_of_our_own_loop_are_read() {
        let read = own_figures("sse\t1234\t5.1\t4\t0.3\n").unwrap();
        assert_eq!((read.executions, read.seeds, read.failed), (1234, 4, false));
        assert_eq!(own_figures("sse\t1234"), None);
    }
}
