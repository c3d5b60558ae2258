//! `cargo xtask setup`: installs missing tools. Each tool is checked first, so a second run is fast, and an interrupted
//! installation is repeated.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::interop::clients::{self, Client};
use crate::interop::{environments, metrics, oidc, our_client};
use crate::process::{output, run as execute, succeeds};
use crate::workspace::Workspace;

const NEXTEST: &str = "0.9.143";
const DENY: &str = "0.20.2";

pub fn run(workspace: &Workspace) -> Result<(), String> {
    let _lock = lock(workspace)?;
    step("cargo-nextest", nextest_ready(workspace), || cargo_install(workspace, "cargo-nextest", NEXTEST))?;
    step("cargo-deny", deny_ready(workspace), || cargo_install(workspace, "cargo-deny", DENY))?;
    step("postgresql", has_postgres(), || apt_install(&["postgresql-15"]))?;
    step("redis", has_redis(), || apt_install(&["redis-server"]))?;
    step("iproute2", has_ip(), || apt_install(&["iproute2"]))?;
    for_faults()?;
    environments::install(workspace, &clients::tested())?;
    environments::install(workspace, &[&metrics::PARSER, &oidc::PROVIDER])?;
    environments::install(workspace, &our_client::tested_packages())
}

/// Tools of the fault tests: strace and faketime.
pub fn for_faults() -> Result<(), String> {
    step("strace", has_strace(), || apt_install(&["strace"]))?;
    step("faketime", has_faketime(), || apt_install(&["faketime"]))
}

/// Installs only what these clients need.
pub fn clients(workspace: &Workspace, clients: &[&Client]) -> Result<(), String> {
    let _lock = lock(workspace)?;
    environments::install(workspace, clients)
}

/// Two checkouts may run setup at once; the second waits and then finds everything installed.
pub fn lock(workspace: &Workspace) -> Result<File, String> {
    fs::create_dir_all(&workspace.tools).map_err(|e| format!("{}: {e}", workspace.tools.display()))?;
    let lock = File::create(workspace.tools.join("lock")).map_err(|e| format!("lock of the tools: {e}"))?;
    lock.lock().map_err(|e| format!("lock of the tools: {e}"))?;
    Ok(lock)
}

pub fn step(name: &str, ready: bool, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    if ready {
        println!("{name}: there");
        return Ok(());
    }
    println!("{name}: installing");
    let start = Instant::now();
    install().map_err(|reason| format!("{name}: {reason}"))?;
    println!("{name}: installed in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn nextest_ready(workspace: &Workspace) -> bool {
    // Any installed nextest is accepted; if there is none, the pinned version is installed.
    succeeds(&mut workspace.cargo(&["nextest", "--version"]))
}

fn deny_ready(workspace: &Workspace) -> bool {
    let program = workspace.tools.join("bin/cargo-deny");
    output(Command::new(program).arg("--version")).is_ok_and(|version| version.trim().ends_with(DENY))
}

/// Without optimisation or debug data: these tools wait for compilers and disks, and building them
/// optimised takes three times as long (docs/ci-budget.md).
fn cargo_install(workspace: &Workspace, name: &str, version: &str) -> Result<(), String> {
    let build = workspace.tools.join("build");
    let installed = execute(
        workspace
            .cargo(&["install", "--locked", "--force", "--debug", "--quiet", name, "--version", version])
            .arg("--root")
            .arg(&workspace.tools)
            .arg("--target-dir")
            .arg(&build)
            .env("CARGO_PROFILE_DEV_DEBUG", "0"),
    );
    let cleared = fs::remove_dir_all(&build).map_err(|e| format!("{}: {e}", build.display()));
    installed.and(cleared)
}

fn has_postgres() -> bool {
    Path::new("/usr/lib/postgresql/15/bin/postgres").exists()
        || succeeds(Command::new("postgres").arg("--version"))
}

fn has_redis() -> bool {
    succeeds(Command::new("redis-server").arg("--version"))
}

/// ip: the tests of webhook targets furnish a network namespace with it. `unshare` and `mount` are in every Debian.
fn has_ip() -> bool {
    succeeds(Command::new("ip").arg("-V"))
}

/// faketime: tests use it to change a process's clock.
fn has_faketime() -> bool {
    succeeds(Command::new("faketime").arg("--version"))
}

/// strace: makes system calls fail in the tests of failed syncs, and records them in those of durability.
fn has_strace() -> bool {
    succeeds(Command::new("strace").arg("--version"))
}

pub fn apt_install(packages: &[&str]) -> Result<(), String> {
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(format!("install it by hand ({} in Debian)", packages.join(" ")));
    }
    let install = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        execute(command.args(["install", "-qq", "-y", "--no-install-recommends"]).args(packages))
    };
    // The package lists may be absent or old: refresh them only then.
    install().or_else(|_| {
        execute(Command::new("apt-get").args(["update", "-qq"]))?;
        install()
    })
}
