//! Runs `baton test` on an agent and reads its TAP report: a line per check.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::agent::Build;
use crate::workspace::Workspace;

/// The report of one agent.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub level: String,
    /// By generation and binding, e.g. `1.0 jsonrpc`.
    pub counts: BTreeMap<String, Counts>,
    /// Case and place of every check that ran and passed.
    pub passed: Vec<(String, String)>,
    pub failures: Vec<Failure>,
    /// Checks that failed because of the lab itself.
    pub errors: Vec<String>,
}

#[derive(Debug, Default, PartialEq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub case: String,
    /// `1.0 jsonrpc`
    pub place: String,
    pub name: String,
    /// must, should or may.
    pub level: String,
    pub message: String,
}

/// Tests the agent at `url`; the reports are `folder/name.json` and `.tap`.
pub fn test(
    workspace: &Workspace,
    build: Build,
    url: &str,
    flags: &[&str],
    folder: &Path,
    name: &str,
) -> Result<Outcome, String> {
    let mut command = build.command(workspace);
    command.args(["test", url, "--quiet", "--wait", "30s"]).args(flags);
    report(command, folder, name, &[])
}

/// Runs `baton test` with the flags that the command has, and `last` behind those for the reports.
pub fn report(mut command: Command, folder: &Path, name: &str, last: &[&str]) -> Result<Outcome, String> {
    let report = |ending: &str| folder.join(format!("{name}.{ending}"));
    let tap = report("tap");
    // Remove the report of an earlier run.
    if tap.exists() {
        fs::remove_file(&tap).map_err(|e| format!("{}: {e}", tap.display()))?;
    }
    let status = command
        .arg("--report")
        .arg(report("json"))
        .arg("--report")
        .arg(&tap)
        .args(last)
        .stdin(Stdio::null())
        .status()
        .map_err(|e| format!("baton test: {e}"))?;
    match status.code() {
        // 1: not conforming; the caller judges the failures.
        Some(0 | 1) => {}
        _ => return Err(format!("{name}: baton test ended with {status}")),
    }
    let text = fs::read_to_string(&tap).map_err(|e| format!("{}: {e}", tap.display()))?;
    Ok(read(&text))
}

fn read(tap: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut lines = tap.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(level) = line.strip_prefix("# level: ") {
            outcome.level = level.split(" (").next().unwrap_or(level).to_owned();
            continue;
        }
        let (failed, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => continue,
        };
        let Some((case, place, name, directive)) = parts(rest) else { continue };
        let counts = outcome.counts.entry(place.clone()).or_default();
        if !failed {
            let skipped = directive.is_some_and(|directive| directive.starts_with("SKIP"));
            *(if skipped { &mut counts.skipped } else { &mut counts.passed }) += 1;
            if !skipped {
                outcome.passed.push((case, place));
            }
            continue;
        }
        let mut told = BTreeMap::new();
        while let Some((member, value)) = lines.next_if(|line| line.starts_with("  ")).map(member) {
            told.insert(member, value);
        }
        let of = |member: &str| told.get(member).cloned().unwrap_or_default();
        if of("severity") == "fail" {
            counts.failed += 1;
            let (level, message) = (of("level"), of("message"));
            outcome.failures.push(Failure { case, place, name, level, message });
        } else {
            counts.skipped += 1;
            outcome.errors.push(format!("{case} {place}: {}", of("message")));
        }
    }
    outcome
}

/// `129 - V1-LIST-010 1.0 rest A name # TODO should`
fn parts(rest: &str) -> Option<(String, String, String, Option<&str>)> {
    let (_, rest) = rest.split_once(" - ")?;
    let (rest, directive) = match rest.split_once(" # ") {
        Some((rest, directive)) => (rest, Some(directive)),
        None => (rest, None),
    };
    let mut words = rest.splitn(4, ' ');
    let case = words.next()?.to_owned();
    let place = format!("{} {}", words.next()?, words.next()?);
    Some((case, place, words.next()?.to_owned(), directive))
}

/// `  level: "should"`, with the value unquoted.
fn member(line: &str) -> (String, String) {
    let (name, value) = line.trim().split_once(": ").unwrap_or((line.trim(), ""));
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let value = inner.replace("\\\"", "\"").replace("\\\\", "\\");
    (name.to_owned(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let tap = "TAP version 14\n1..5\nok 1 - V1-A-001 1.0 jsonrpc A name\n\
                   ok 2 - V1-A-001 1.0 rest A name # SKIP no such thing\n\
                   not ok 3 - V1-A-002 1.0 rest Another # TODO should\n  ---\n  message: \"got \\\"x\\\"\"\n  \
                   severity: \"fail\"\n  level: \"should\"\n  ...\n\
                   not ok 4 - V1-A-003 1.0 rest Third\n  ---\n  severity: \"error\"\n  message: \"oh\"\n  ...\n\
                   ok 5 - V1-A-004 1.0 rest Fourth\n# level: partial (because: this (and that))\n";
        let outcome = read(tap);
        assert_eq!(outcome.level, "partial");
        assert_eq!(outcome.counts["1.0 jsonrpc"], Counts { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(outcome.counts["1.0 rest"], Counts { passed: 1, failed: 1, skipped: 2 });
        let passed: Vec<&str> = outcome.passed.iter().map(|(case, _)| case.as_str()).collect();
        assert_eq!(passed, ["V1-A-001", "V1-A-004"]);
        let failure = &outcome.failures[..];
        assert_eq!(failure.len(), 1);
        assert_eq!((&*failure[0].case, &*failure[0].place), ("V1-A-002", "1.0 rest"));
        assert_eq!((&*failure[0].level, &*failure[0].message), ("should", "got \"x\""));
        assert_eq!(outcome.errors, ["V1-A-003 1.0 rest: oh"]);
    }
}
