//! `cargo xtask faults`: runs the fault tests at length and writes the results to `docs/results/`.
//!
//! The tests are in `crates/baton/tests/it/faults`; the test command runs each for a few seconds. Each kind of fault
//! writes a file of figures; its page gets the latest result and one line of history.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::agent::Build;
use crate::process::run as execute;
use crate::setup;
use crate::workspace::Workspace;

const BEGIN: &str = "<!-- made by `cargo xtask faults`: from here -->";
const END: &str = "<!-- to here -->";

/// One kind of fault.
struct Kind {
    /// The id in the test plan.
    id: &'static str,
    /// The page in `docs/results/`.
    page: &'static str,
    /// The filter for nextest.
    tests: &'static [&'static str],
    /// The files of figures that the tests write.
    figures: &'static [&'static str],
    /// Attacks are measured on a release build, since a dev build is many times slower. The other kinds need a dev
    /// build, which has the points at which it can be killed.
    release: bool,
}

impl Kind {
    fn is(&self, name: &str) -> bool {
        self.id.eq_ignore_ascii_case(name) || self.page == name
    }
}

const KINDS: &[Kind] = &[
    kind("T2", "kill-points", &["faults::points"], &["kill-points", "kill-points-of-sweeps"]),
    kind("T3", "sync-order", &["faults::sync_order"], &["sync-order"]),
    kind("T4", "power-cuts", &["faults::power_cuts"], &["power-cuts"]),
    kind("T5", "damaged-files", &["faults::damage"], &["damaged-files"]),
    kind("T6", "full-disk", &["disk_full::", "failed_sync::"], &["disk-full", "files-full"]),
    kind("T7", "clock-jumps", &["faults::clock"], &["clock-jumps"]),
    kind("T8", "idle-streams", &["faults::idle_streams"], &["idle-streams"]),
    kind("T9", "slow-readers", &["faults::slow_readers"], &["slow-readers"]),
    kind("T10", "reconnect-storm", &["faults::storm"], &["reconnect-storm"]),
    kind("T12", "webhook-kills", &["faults::webhooks"], &["webhook-kills"]),
    kind("T19", "graceful-stop", &["faults::stop"], &["graceful-stop"]),
    kind("client", "client-kills", &["faults::client"], &["client-kills"]),
    kind("timing", "timing", &["timing::"], &["timing"]),
    // One file of figures for each attack, in the order of the page.
    Kind {
        release: true,
        ..kind(
            "attacks",
            "attacks",
            &["attacks::"],
            &[
                "attack-follow-ups",
                "attack-folded-streams",
                "attack-lists",
                "attack-unread-answers",
                "attack-log-frames",
                "attack-log-requests",
                "attack-connects",
                "attack-one-file",
                "attack-out-of-files",
                "attack-artifacts",
                "attack-long-turns",
                "attack-running-tasks",
            ],
        )
    },
    Kind { release: true, ..kind("T24", "abuse", &["attacks::abuse_mix"], &["abuse-mix"]) },
    // The longest comes last.
    kind("T1", "kills", &["faults::kills"], &["kills"]),
];

const fn kind(
    id: &'static str,
    page: &'static str,
    tests: &'static [&'static str],
    figures: &'static [&'static str],
) -> Kind {
    Kind { id, page, tests, figures, release: false }
}

#[derive(Debug, Default, PartialEq)]
pub struct Choice {
    only: Vec<String>,
    seed: Option<u64>,
    list: bool,
}

impl Choice {
    pub fn parse(flags: &[String]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match flag.as_str() {
                "--list" => choice.list = true,
                "--only" => {
                    let name = flags.next().ok_or("--only needs a kind of fault, such as T4")?;
                    if !KINDS.iter().any(|kind| kind.is(name)) {
                        let all: Vec<_> = KINDS.iter().map(|kind| kind.id).collect();
                        return Err(format!("no kind `{name}`; there are {}", all.join(", ")));
                    }
                    choice.only.push(name.clone());
                }
                "--seed" => {
                    let seed = flags.next().and_then(|seed| seed.parse().ok());
                    choice.seed = Some(seed.ok_or("--seed needs the number that an earlier run printed")?);
                }
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(choice)
    }
}

pub fn run(workspace: &Workspace, choice: &Choice) -> Result<(), String> {
    if choice.list {
        for kind in KINDS {
            println!("{:<4} docs/results/{}.md", kind.id, kind.page);
        }
        return Ok(());
    }
    setup::for_faults()?;
    let results = workspace.results().join("faults");
    fs::create_dir_all(&results).map_err(|e| format!("{}: {e}", results.display()))?;
    let mut failed = Vec::new();
    for kind in
        KINDS.iter().filter(|kind| choice.only.is_empty() || choice.only.iter().any(|name| kind.is(name)))
    {
        println!("\n== {} {} ==", kind.id, kind.page);
        // Remove figures of an earlier run.
        for figures in kind.figures {
            let _ = fs::remove_file(file(&results, figures));
        }
        let mut tests =
            workspace.cargo(&["nextest", "run", "--locked", "--package", "baton", "--test", "it"]);
        tests.args(["--profile", "faults", "--test-threads", "1", "--success-output", "immediate"]);
        tests.args(kind.tests).env("BATON_FAULTS_FULL", "1").env("BATON_FAULTS_RESULTS", &results);
        if let Some(seed) = choice.seed {
            tests.env("BATON_SEED", seed.to_string());
        }
        if kind.release {
            execute(&mut workspace.cargo(Build::Release.cargo_args()))?;
            tests.env("BATON_TESTED_BINARY", Build::Release.command(workspace).get_program());
        }
        match execute(&mut tests).and_then(|()| write_down(workspace, kind, &results)) {
            Ok(()) => println!("docs/results/{}.md written", kind.page),
            // Go on with the other kinds.
            Err(reason) => failed.push(format!("{}: {reason}", kind.id)),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn file(results: &Path, figures: &str) -> std::path::PathBuf {
    results.join(format!("{figures}.tsv"))
}

fn write_down(workspace: &Workspace, kind: &Kind, results: &Path) -> Result<(), String> {
    let mut runs = Vec::new();
    for figures in kind.figures {
        let path = file(results, figures);
        let text = fs::read_to_string(&path).map_err(|e| format!("no figures: {}: {e}", path.display()))?;
        runs.push((*figures, read(&text)?));
    }
    let page = workspace.root.join(format!("docs/results/{}.md", kind.page));
    let before = fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let build = if kind.release { "release" } else { "dev" };
    let after = with_results(&before, &runs, &today(), build)
        .ok_or_else(|| format!("{} does not contain the markers `{BEGIN}` and `{END}`", page.display()))?;
    fs::write(&page, after).map_err(|e| format!("{}: {e}", page.display()))
}

/// The seed, and the measured values.
#[derive(Debug, PartialEq)]
struct Figures {
    seed: String,
    rows: Vec<(String, String)>,
}

fn read(text: &str) -> Result<Figures, String> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let (name, value) = line.split_once('\t').ok_or_else(|| format!("no figure: {line}"))?;
        rows.push((name.to_owned(), value.to_owned()));
    }
    if rows.first().is_none_or(|(name, _)| name != "seed") {
        return Err("figures without a seed".to_owned());
    }
    Ok(Figures { seed: rows.remove(0).1, rows })
}

/// The page with the new result and one more line of history.
fn with_results(page: &str, runs: &[(&str, Figures)], date: &str, build: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let history: Vec<&str> = old.lines().filter(|line| line.starts_with("| 20")).collect();
    let mut text = String::from("\n");
    let mut lines = Vec::new();
    for (name, Figures { seed, rows }) in runs {
        writeln!(text, "\n**{name}**, {date}, {build} build, seed {seed}\n\n| | |\n|---|---:|").ok()?;
        for (figure, value) in rows {
            writeln!(text, "| {figure} | {value} |").ok()?;
        }
        let all: Vec<_> = rows.iter().map(|(figure, value)| format!("{figure}: {value}")).collect();
        lines.push(format!("| {date} | {name} | {seed} | {} |", all.join("; ")));
    }
    text.push_str("\n| date | run | seed | result |\n|---|---|---|---|\n");
    for line in history.into_iter().chain(lines.iter().map(String::as_str)) {
        text.push_str(line);
        text.push('\n');
    }
    Some(format!("{before}{BEGIN}{text}\n{END}{after}"))
}

/// The date of now, UTC.
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(now.as_secs() / 86_400)
}

/// Days since 1970 as a date; years begin in March here, so that the leap day is the last day of the year.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turned) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + turned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_text_and_its_history() {
        let page =
            format!("# Kills\n\nWhy.\n\n{BEGIN}\nold\n| 2026-01-01 | kills | 1 | fine |\n{END}\n\nMore.\n");
        let figures = || read("seed\t7\nkills\t1000\ntime\t2 s\n").unwrap();
        let once = with_results(&page, &[("kills", figures())], "2026-11-15", "dev").unwrap();
        assert!(once.starts_with("# Kills\n\nWhy.\n") && once.ends_with("\n\nMore.\n"), "{once}");
        assert!(once.contains("| kills | 1000 |\n") && !once.contains("old"), "{once}");
        let twice = with_results(&once, &[("kills", figures())], "2026-11-16", "dev").unwrap();
        let history: Vec<_> = twice.lines().filter(|line| line.starts_with("| 20")).collect();
        assert_eq!(history.len(), 3, "{twice}");
        assert_eq!(history[2], "| 2026-11-16 | kills | 7 | kills: 1000; time: 2 s |");
        assert_eq!(with_results("# Kills", &[], "2026-11-15", "dev"), None);
        read("kills\t1000\n").unwrap_err();
    }

    #[test]
    fn every_kind_has_a_page_with_marks() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for kind in KINDS {
            let page = fs::read_to_string(root.join(format!("docs/results/{}.md", kind.page)));
            let page = page.unwrap_or_else(|error| panic!("{}: {error}", kind.page));
            assert!(page.contains(BEGIN) && page.contains(END), "{}", kind.page);
        }
    }

    #[test]
    fn flags_are_read() {
        let parse =
            |words: &[&str]| Choice::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let choice = parse(&["--only", "t4", "--seed", "12"]).unwrap();
        assert_eq!(choice, Choice { only: vec!["t4".to_owned()], seed: Some(12), list: false });
        for wrong in [&["--only"][..], &["--only", "T99"], &["--seed", "x"], &["--all"]] {
            parse(wrong).unwrap_err();
        }
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(
            (date(0), date(59), date(11_016)),
            ("1970-01-01".into(), "1970-03-01".into(), "2000-02-29".into())
        );
        assert_eq!(date(20_772), "2026-11-15");
    }
}
