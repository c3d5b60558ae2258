//! Describes the machine, without its name.

use std::fs;
use std::process::Command;

/// A sentence for the page.
pub fn described() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_matches([' ', '\t', ':']));
    // Not `available_parallelism`: this process is pinned to one core.
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let gigabytes = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(0.0, |kilobytes| kilobytes / 1024.0 / 1024.0);
    let virtual_machine =
        if cpu.contains(" hypervisor ") || cpu.contains(" hypervisor\n") { ", virtual" } else { "" };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split(['-', '\n']).next().unwrap_or_default().to_owned();
    let rust = said("rustc", &["--version"]).and_then(|text| text.split(' ').nth(1).map(str::to_owned));
    format!(
        "{}, {cores} cores{virtual_machine}, {gigabytes:.0} GB; Linux {kernel}; rustc {}",
        model.unwrap_or("unknown processor"),
        rust.unwrap_or_else(|| "unknown".to_owned())
    )
}

/// Today, and the commit that was measured.
pub fn when_and_what(sources: &std::path::Path) -> (String, String) {
    let date = said("date", &["-u", "+%Y-%m-%d"]).unwrap_or_default();
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=9"]).current_dir(sources);
    let commit = git.output().ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    (date, commit.unwrap_or_else(|| "unknown".to_owned()))
}

/// The load of other processes in the last minute: figures made during a build are useless.
pub fn load() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
