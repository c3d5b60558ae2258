//! `cargo xtask bench --counts`: counts the instructions of the hot paths with valgrind and compares them with a
//! baseline.
//!
//! The counts hardly depend on the machine or its load, so a few per cent more mean that the code became slower. They
//! depend on the compiler: after a compiler update, store new ones with `--bless`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::Place;
use crate::process::{output, run as execute};
use crate::workspace::Workspace;

/// A larger increase is a failure; after a larger decrease the baseline should be updated.
const TOLERANCE: f64 = 0.05;

pub fn run(workspace: &Workspace, place: &Place, bless: bool) -> Result<(), String> {
    let manifest = place.sources.join("Cargo.toml").display().to_string();
    let target = place.target.display().to_string();
    let args = ["build", "--release", "--locked", "--target-dir", &target, "--manifest-path", &manifest];
    execute(workspace.cargo(&args).args(["--package", "counts"]))?;
    fs::create_dir_all(&place.scratch).map_err(|error| format!("{}: {error}", place.scratch.display()))?;
    let program = place.programs.join("counts");
    let names = output(Command::new(&program).arg("--list"))?;
    let mut counted = BTreeMap::new();
    for name in names.lines() {
        counted.insert(name.to_owned(), count(&program, name, &place.scratch)?);
    }
    let file = place.sources.join("counts/baseline.tsv");
    if bless {
        let lines: String = counted.iter().map(|(name, count)| format!("{name}\t{count}\n")).collect();
        fs::write(&file, lines).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("written: {}", file.display());
        return Ok(());
    }
    let baseline = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    compare(&read(&baseline)?, &counted)
}

/// Instructions per turn of one bench: the difference between many turns and few.
fn count(program: &Path, name: &str, scratch: &Path) -> Result<u64, String> {
    let total = |turns: u64| -> Result<u64, String> {
        let file = scratch.join("counts.out");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", file.display())]);
        output(valgrind.arg(program).args([name, &turns.to_string()]))
            .map_err(|reason| format!("{reason}; is valgrind installed? (package `valgrind` in Debian)"))?;
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        summary(&text).ok_or_else(|| format!("{}: no summary", file.display()))
    };
    const FEW: u64 = 100;
    const MANY: u64 = 1100;
    let (few, many) = (total(FEW)?, total(MANY)?);
    Ok(many.saturating_sub(few) / (MANY - FEW))
}

fn summary(callgrind: &str) -> Option<u64> {
    let line =
        callgrind.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    line?.trim().parse().ok()
}

fn read(baseline: &str) -> Result<BTreeMap<String, u64>, String> {
    let line = |line: &str| {
        let (name, count) = line.split_once('\t')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    baseline
        .lines()
        .map(|text| line(text).ok_or_else(|| format!("baseline: not `name<tab>count`: {text}")))
        .collect()
}

fn compare(baseline: &BTreeMap<String, u64>, counted: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut faults = Vec::new();
    println!("{:24} {:>12} {:>12} {:>8}", "", "baseline", "now", "");
    for (name, now) in counted {
        let Some(before) = baseline.get(name) else {
            faults.push(format!("{name} is not in the baseline"));
            continue;
        };
        let change = *now as f64 / *before as f64 - 1.0;
        println!("{name:24} {before:>12} {now:>12} {:>+7.1} %", change * 100.0);
        if change > TOLERANCE {
            faults.push(format!("{name} takes {:.1} % more instructions than the baseline", change * 100.0));
        } else if change < -TOLERANCE {
            println!("{name} became cheaper: --bless stores the new count");
        }
    }
    for name in baseline.keys().filter(|name| !counted.contains_key(*name)) {
        faults.push(format!("{name} is in the baseline only"));
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nFix it, or store the new counts as the baseline with --bless.", faults.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn the_summary_is_found() {
        assert_eq!(summary("version: 1\nsummary: 1234\ntotals: 1234\n"), Some(1234));
        assert_eq!(summary("version: 1\n"), None);
    }

    #[test]
    fn what_grew_beyond_the_tolerance_fails() {
        let baseline = map(&[("a", 1000), ("b", 1000)]);
        assert!(compare(&baseline, &map(&[("a", 1049), ("b", 900)])).is_ok());
        let fault = compare(&baseline, &map(&[("a", 1060), ("b", 1000)])).expect_err("a grew");
        assert!(fault.starts_with("a takes 6.0 % more"), "{fault}");
    }

    #[test]
    fn names_must_agree() {
        assert!(compare(&map(&[("a", 1)]), &map(&[])).is_err());
        assert!(compare(&map(&[]), &map(&[("a", 1)])).is_err());
        assert!(read("a 1\n").is_err());
        assert_eq!(read("a\t1\n"), Ok(map(&[("a", 1)])));
    }
}
