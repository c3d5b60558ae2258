//! `cargo xtask test`: the stages in order, each timed.

use std::time::{Duration, Instant};

use crate::process::run as execute;
use crate::workspace::{Workspace, colours};
use crate::{bench, compliance, conformance, deny, interop, mission, servers, setup, tidy};

struct Stage {
    name: &'static str,
    /// Whether it needs tools that setup installs.
    tools: bool,
    run: fn(&Workspace) -> Result<(), String>,
}

/// Cheap stages first; the generated pages last, since they read the results of the others.
const STAGES: &[Stage] = &[
    Stage { name: "setup", tools: false, run: setup::run },
    Stage { name: "fmt", tools: false, run: |w| execute(&mut w.cargo(&["fmt", "--all", "--check"])) },
    Stage { name: "tidy", tools: false, run: tidy::run },
    Stage { name: "deny", tools: true, run: deny::check },
    Stage {
        name: "clippy",
        tools: false,
        run: |w| {
            let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
            execute(&mut w.cargo(&args))
        },
    },
    Stage { name: "bench", tools: false, run: bench::lint },
    Stage {
        name: "nextest",
        tools: true,
        run: |w| {
            // Remove results of an earlier run.
            mission::forget_results(w)?;
            execute(&mut w.cargo(&["nextest", "run", "--workspace", "--locked"]))
        },
    },
    Stage { name: "stores", tools: true, run: servers::test_stores },
    Stage {
        name: "doctest",
        tools: false,
        run: |w| execute(&mut w.cargo(&["test", "--workspace", "--doc", "--locked", "--quiet"])),
    },
    Stage {
        name: "doc",
        tools: false,
        run: |w| {
            let args = ["doc", "--workspace", "--all-features", "--no-deps", "--locked", "--quiet"];
            execute(w.cargo(&args).env("RUSTDOCFLAGS", "-D warnings"))
        },
    },
    Stage {
        name: "build-release",
        tools: false,
        run: |w| execute(&mut w.cargo(&["build", "--release", "--locked"])),
    },
    Stage { name: "interop", tools: true, run: interop::run_tested },
    Stage { name: "mission", tools: false, run: mission::check },
    Stage { name: "compliance", tools: false, run: compliance::check },
    Stage { name: "conformance", tools: false, run: conformance::check },
];

#[derive(Debug, Default, PartialEq)]
pub struct Choice {
    only: Vec<String>,
    skip: Vec<String>,
    keep_going: bool,
    list: bool,
}

impl Choice {
    pub fn parse(flags: &[String]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match flag.as_str() {
                "--keep-going" => choice.keep_going = true,
                "--list" => choice.list = true,
                "--only" | "--skip" => {
                    let name = flags.next().ok_or(format!("{flag} needs the name of a stage"))?;
                    if !STAGES.iter().any(|stage| stage.name == name) {
                        return Err(format!("no stage `{name}`; there are {}", names().join(", ")));
                    }
                    let list = if flag == "--only" { &mut choice.only } else { &mut choice.skip };
                    list.push(name.clone());
                }
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(choice)
    }

    fn takes(&self, stage: &Stage) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == stage.name);
        if named(&self.skip) {
            return false;
        }
        // A single chosen stage still needs its tools.
        let serves_chosen =
            || stage.name == "setup" && STAGES.iter().any(|s| s.tools && s.name != "setup" && self.takes(s));
        self.only.is_empty() || named(&self.only) || serves_chosen()
    }
}

pub fn run(workspace: &Workspace, choice: &Choice) -> Result<(), String> {
    if choice.list {
        println!("{}", names().join("\n"));
        return Ok(());
    }
    let mut times: Vec<(&str, Duration, bool)> = Vec::new();
    for stage in STAGES.iter().filter(|stage| choice.takes(stage)) {
        println!("\n{}", bold(&format!("== {} ==", stage.name)));
        let start = Instant::now();
        let done = (stage.run)(workspace);
        if let Err(reason) = &done
            && !reason.is_empty()
        {
            println!("{}: {reason}", stage.name);
        }
        times.push((stage.name, start.elapsed(), done.is_ok()));
        if done.is_err() && !choice.keep_going {
            break;
        }
    }
    report(&times)
}

fn report(times: &[(&str, Duration, bool)]) -> Result<(), String> {
    println!();
    for (name, time, passed) in times {
        let verdict = if *passed { "" } else { "  FAILED" };
        println!("{name:<16} {:>8.1} s{verdict}", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|(_, time, _)| time).sum();
    println!("{:<16} {:>8.1} s", "total", total.as_secs_f64());
    let failed = times.iter().filter(|(_, _, passed)| !passed).count();
    println!("{} passed, {failed} failed", times.len() - failed);
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

fn names() -> Vec<&'static str> {
    STAGES.iter().map(|stage| stage.name).collect()
}

fn bold(text: &str) -> String {
    if colours() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flags: &[&str]) -> Vec<&'static str> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let choice = Choice::parse(&flags).unwrap();
        STAGES.iter().filter(|stage| choice.takes(stage)).map(|stage| stage.name).collect()
    }

    #[test]
    fn every_stage_runs_by_default() {
        assert_eq!(chosen(&[]), names());
    }

    #[test]
    fn only_brings_setup_when_tools_are_used() {
        assert_eq!(chosen(&["--only", "fmt"]), ["fmt"]);
        assert_eq!(chosen(&["--only", "nextest", "--only", "fmt"]), ["setup", "fmt", "nextest"]);
        assert_eq!(chosen(&["--only", "nextest", "--skip", "setup"]), ["nextest"]);
    }

    #[test]
    fn skip_leaves_out() {
        assert!(!chosen(&["--skip", "deny"]).contains(&"deny"));
        assert!(chosen(&["--skip", "deny"]).contains(&"setup"));
    }

    #[test]
    fn unknown_flags_and_stages_are_refused() {
        let parse =
            |words: &[&str]| Choice::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(parse(&["--frobnicate"]).is_err());
        assert!(parse(&["--only"]).is_err());
        assert!(parse(&["--only", "nothing"]).is_err());
    }
}
