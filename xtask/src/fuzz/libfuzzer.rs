//! Runs the targets under libFuzzer, which is guided by coverage.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Outcome, Target, fresh, seeds};
use crate::process::{output, run as execute};
use crate::workspace::Workspace;

/// Compiler flags for coverage. No sanitizer: our code has no `unsafe`, and without a sanitizer the stable compiler is
/// enough and inputs run several times as fast.
const FLAGS: &[&str] = &[
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The time limit of one input. Normal inputs take milliseconds.
const LONGEST_SECONDS: u64 = 20;
/// The memory limit of the whole process, including its corpus.
const MOST_MIB: u64 = 768;
const MOST_BYTES: u64 = 65_536;

/// Builds the binary; `None`, with a message, if it cannot be built.
pub fn build(workspace: &Workspace) -> Option<PathBuf> {
    let host = host(workspace)?;
    let folder = workspace.results().join("fuzz/build");
    let mut cargo =
        workspace.cargo(&["build", "--release", "--locked", "--manifest-path", "fuzz/libfuzzer/Cargo.toml"]);
    // With an explicit target, the flags do not apply to build scripts.
    cargo.args(["--target", &host]).arg("--target-dir").arg(&folder);
    cargo.env("RUSTFLAGS", FLAGS.join(" ")).env_remove("CARGO_ENCODED_RUSTFLAGS");
    match execute(&mut cargo) {
        Ok(()) => Some(folder.join(host).join("release/baton-libfuzzer")),
        Err(reason) => {
            println!(
                "libFuzzer cannot be built here ({reason}); it needs a C++ compiler and a lock file that is up to date"
            );
            None
        }
    }
}

fn host(workspace: &Workspace) -> Option<String> {
    let about = output(workspace.command("rustc").arg("-vV")).ok()?;
    about.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

pub fn run(
    workspace: &Workspace,
    binary: &Path,
    targets: &[Target],
    seconds: u64,
) -> Result<Vec<Outcome>, String> {
    targets.iter().map(|target| run_one(workspace, binary, target, seconds)).collect()
}

fn run_one(workspace: &Workspace, binary: &Path, target: &Target, seconds: u64) -> Result<Outcome, String> {
    let name = &target.name;
    let told = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let home = workspace.results().join("fuzz");
    let (corpus, start) = (home.join("corpus").join(name), home.join("start").join(name));
    let failures = home.join("failures").join(name);
    // The corpus of the last run is kept. The seeds are copied into a new folder, since libFuzzer accepts only folders.
    fs::create_dir_all(&corpus).map_err(|e| told(&corpus, e))?;
    fs::create_dir_all(&failures).map_err(|e| told(&failures, e))?;
    fresh(&start)?;
    let files = seeds(&workspace.root, target);
    let mut words = BTreeSet::new();
    for (number, file) in files.iter().enumerate() {
        let bytes = fs::read(file).map_err(|e| told(file, e))?;
        words.extend(dictionary(&bytes));
        fs::write(start.join(number.to_string()), bytes).map_err(|e| told(&start, e))?;
    }
    let words_file = home.join(format!("{name}.words"));
    let lines: Vec<String> = words.into_iter().map(|word| format!("\"{word}\"\n")).collect();
    fs::write(&words_file, lines.concat()).map_err(|e| told(&words_file, e))?;

    println!("{name}: {seconds} s from {} files", files.len());
    let mut fuzzer = Command::new(binary);
    fuzzer.current_dir(&workspace.root).env("BATON_FUZZ_TARGET", name).args([&corpus, &start]);
    fuzzer.args([
        format!("-max_total_time={seconds}"),
        format!("-timeout={LONGEST_SECONDS}"),
        format!("-rss_limit_mb={MOST_MIB}"),
        format!("-max_len={MOST_BYTES}"),
        format!("-artifact_prefix={}/", failures.display()),
        "-print_final_stats=1".to_owned(),
        "-use_value_profile=0".to_owned(),
    ]);
    // libFuzzer refuses an empty dictionary.
    if !lines.is_empty() {
        fuzzer.arg(format!("-dict={}", words_file.display()));
    }
    let ended = fuzzer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let ended = ended.map_err(|e| told(binary, e))?;
    let text = String::from_utf8_lossy(&ended.stderr);
    let mut outcome = figures(name, &text);
    outcome.seeds = files.len() as u64;
    outcome.failed = !ended.status.success();
    if outcome.failed {
        // The panic message, and the file of the input.
        let from = text.find("panicked at").or_else(|| text.find("ERROR: libFuzzer")).unwrap_or(0);
        println!("{}", &text[from..].chars().take(4000).collect::<String>());
        println!("{name} failed; its inputs are in {}", failures.display());
    }
    Ok(outcome)
}

/// Reads libFuzzer's final statistics.
fn figures(name: &str, text: &str) -> Outcome {
    let stat = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("stat::{name}:")));
        line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    // `#1234 DONE   cov: 210 ft: 500 corp: 40/3kb …`
    let last =
        text.lines().rev().find(|line| line.starts_with('#') && line.contains(" cov: ")).unwrap_or_default();
    let word = |name: &str| {
        let after = last.split_once(name).map(|(_, after)| after).unwrap_or_default();
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_default()
    };
    let done = text.lines().find_map(|line| line.strip_prefix("Done ")?.split_once(" runs in "));
    let seconds = done.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or_default();
    Outcome {
        name: name.to_owned(),
        executions: stat("number_of_executed_units"),
        seconds,
        seeds: 0,
        corpus: word(" corp: "),
        coverage: word(" cov: "),
        slowest: stat("slowest_unit_time_sec") as f64 * 1000.0,
        peak_mib: stat("peak_rss_mb"),
        failed: false,
    }
}

/// Words of an input in the format of a libFuzzer dictionary: member names, states, headers, keys.
fn dictionary(bytes: &[u8]) -> BTreeSet<String> {
    let words = bytes.split(|byte| !byte.is_ascii_alphanumeric() && !b"_-./".contains(byte));
    let words = words.filter(|word| (3..=32).contains(&word.len()));
    words.filter_map(|word| String::from_utf8(word.to_vec()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_run_are_read() {
        let text = "INFO: Seed: 1\n#2\tINITED cov: 10 ft: 11 corp: 1/1b\n#88\tNEW    cov: 12 ft: 13 corp: 2/2b\n\
                    #1234\tDONE   cov: 210 ft: 500 corp: 40/3Kb lim: 33 exec/s: 617 rss: 60Mb\nDone 1234 runs in 2 second(s)\n\
                    stat::number_of_executed_units: 1234\nstat::average_exec_per_sec:     617\n\
                    stat::slowest_unit_time_sec:    1\nstat::peak_rss_mb:              61\n";
        let read = figures("sse", text);
        assert_eq!((read.executions, read.seconds, read.corpus, read.coverage), (1234, 2.0, 40, 210));
        assert_eq!((read.slowest, read.peak_mib), (1000.0, 61));
        assert_eq!(figures("sse", "").executions, 0);
    }

    #[test]
    fn words_are_taken_from_inputs() {
        let words = dictionary(b"{\"messageId\":\"m\",\"role\": 1763200000000, \"a\\\"b\": null}");
        assert_eq!(words.into_iter().collect::<Vec<_>>(), ["1763200000000", "messageId", "null", "role"]);
    }
}
