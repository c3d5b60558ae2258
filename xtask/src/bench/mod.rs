//! `cargo xtask bench`: builds every server of `bench/`, installs the packages for the Python and Node servers, and
//! runs all of them. The runner itself is in `bench/run`, since it has dependencies that xtask must not have.

mod counts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::agent::Build;
use crate::process::run as execute;
use crate::setup;
use crate::workspace::Workspace;

/// Built one by one: cargo would unify the features of their dependencies if they were built together.
const PACKAGES: &[&[&str]] = &[
    BATON,
    &["baton-echo", "--features", "grpc", "--bin", "baton-echo-grpc"],
    &["controls"],
    &["control-grpc"],
    &["echo-a2a-server-lf"],
    &["echo-a2a-grpc"],
    RUNNER,
];
const BATON: &[&str] = &["baton-echo"];
const RUNNER: &[&str] = &["bench-run"];
/// The rows that measure our binary; they need no servers of others.
const OF_BINARY: &[&str] = &["cold-start", "grpc-off"];
/// Packages with hardly more dependencies than the project itself. The others need third-party SDKs.
const OWN: &[&str] =
    &["baton-echo", "bench-host", "bench-load", "bench-run", "control-grpc", "controls", "counts"];
/// Those that have tests.
const TESTED: &[&str] = &["bench-load", "bench-run", "control-grpc"];
/// Our binary, built without gRPC.
const WITHOUT_GRPC: &str = "baton-without-grpc";
/// A package in a workspace of its own.
const APART: &str = "a2a-protocol-sdk";

#[derive(Debug, Default)]
pub struct Choice {
    counts: bool,
    bless: bool,
    quick: bool,
    write: bool,
    no_build: bool,
    list: bool,
    only: Vec<String>,
    servers: Vec<String>,
}

impl Choice {
    pub fn parse(flags: &[String]) -> Result<Self, String> {
        let mut choice = Choice::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match flag.as_str() {
                "--counts" => choice.counts = true,
                "--bless" => choice.bless = true,
                "--quick" => choice.quick = true,
                "--write" => choice.write = true,
                "--no-build" => choice.no_build = true,
                "--list" => choice.list = true,
                "--only" => {
                    choice.only.push(flags.next().ok_or("--only needs a row; --list names them")?.clone())
                }
                "--server" => choice.servers.push(flags.next().ok_or("--server needs a name")?.clone()),
                _ => return Err(format!("unknown flag of bench: {flag}")),
            }
        }
        if choice.bless && !choice.counts {
            return Err("--bless goes with --counts".to_owned());
        }
        Ok(choice)
    }

    /// Whether our binary is measured.
    fn binary(&self) -> bool {
        self.only.is_empty() || self.only.iter().any(|row| OF_BINARY.contains(&row.as_str()))
    }

    /// Whether servers are compared.
    fn servers(&self) -> bool {
        self.only.is_empty() || self.only.iter().any(|row| !OF_BINARY.contains(&row.as_str()))
    }

    /// Whether the page is written: only for complete runs, and for quick runs only with `--write`.
    fn writes(&self) -> bool {
        (!self.quick || self.write) && self.only.is_empty() && self.servers.is_empty()
    }
}

pub fn run(workspace: &Workspace, choice: &Choice) -> Result<(), String> {
    let place = Place::of(workspace);
    if choice.counts {
        return counts::run(workspace, &place, choice.bless);
    }
    if !choice.no_build {
        build(workspace, &place, choice)?;
    }
    if !choice.list {
        environments(workspace, &place)?;
    }
    let mut command = Command::new(place.programs.join("bench-run"));
    command.arg("--programs").arg(&place.programs).arg("--scratch").arg(&place.scratch);
    command.arg("--sources").arg(&place.sources).arg("--tools").arg(&place.tools);
    command.arg("--baton").arg(Build::Release.command(workspace).get_program());
    command.arg("--baton-without-grpc").arg(place.programs.join(WITHOUT_GRPC));
    if choice.list {
        command.arg("--list");
    }
    if choice.quick {
        command.arg("--quick");
    }
    for row in &choice.only {
        command.args(["--only", row]);
    }
    for server in &choice.servers {
        command.args(["--server", server]);
    }
    let page = if choice.writes() {
        workspace.root.join("docs/benchmarks.md")
    } else {
        place.scratch.join("benchmarks.md")
    };
    command.arg("--write").arg(page);
    execute(&mut command)
}

/// A stage of the test command: bench code that uses our crates must keep compiling, and what measures must be right.
pub fn lint(workspace: &Workspace) -> Result<(), String> {
    let manifest = workspace.root.join("bench/Cargo.toml").display().to_string();
    // The target folder of the project's own checks, so that dependencies are not checked twice.
    let target = workspace.target.display().to_string();
    let places = ["--locked", "--target-dir", &target, "--manifest-path", &manifest];
    let packages = |names: &'static [&str]| names.iter().flat_map(|package| ["--package", package]);
    let mut args = vec!["clippy", "--all-targets", "--features", "baton-echo/grpc"];
    args.extend(places);
    args.extend(packages(OWN));
    args.extend(["--", "-D", "warnings"]);
    execute(&mut workspace.cargo(&args))?;
    let mut args = vec!["test", "--quiet"];
    args.extend(places);
    args.extend(packages(TESTED));
    execute(&mut workspace.cargo(&args))
}

/// The folders of the benchmark.
struct Place {
    sources: PathBuf,
    target: PathBuf,
    programs: PathBuf,
    scratch: PathBuf,
    /// Environments of Python and Node.
    tools: PathBuf,
}

impl Place {
    fn of(workspace: &Workspace) -> Self {
        let target = workspace.target.join("bench");
        Place {
            sources: workspace.root.join("bench"),
            programs: target.join("release"),
            scratch: target.join("scratch"),
            tools: workspace.tools.join("bench"),
            target,
        }
    }
}

fn build(workspace: &Workspace, place: &Place, choice: &Choice) -> Result<(), String> {
    let manifest = |folder: &Path| folder.join("Cargo.toml").display().to_string();
    let target = place.target.display().to_string();
    let build = |manifest: String, package: Option<&[&str]>| {
        let mut args =
            vec!["build", "--release", "--locked", "--target-dir", &target, "--manifest-path", &manifest];
        if let Some(package) = package {
            args.push("--package");
            args.extend(package);
        }
        execute(&mut workspace.cargo(&args))
    };
    // Listing the rows needs the runner only.
    let packages = match (choice.list, choice.servers()) {
        (true, _) => &[RUNNER][..],
        (false, true) => PACKAGES,
        (false, false) => &[BATON, RUNNER],
    };
    for package in packages {
        build(manifest(&place.sources), Some(package))?;
    }
    if choice.list {
        return Ok(());
    }
    if choice.binary() {
        build_binary(workspace, place)?;
    }
    if choice.servers() { build(manifest(&place.sources.join(APART)), None) } else { Ok(()) }
}

/// Our binary twice: without gRPC, kept under a name of its own, and as it is released.
fn build_binary(workspace: &Workspace, place: &Place) -> Result<(), String> {
    let without = ["build", "--release", "--locked", "--no-default-features", "--features", "otel"];
    execute(&mut workspace.cargo(&without))?;
    let (binary, kept) =
        (Build::Release.command(workspace).get_program().to_owned(), place.programs.join(WITHOUT_GRPC));
    fs::copy(binary, &kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    execute(&mut workspace.cargo(Build::Release.cargo_args()))
}

/// A virtual environment and a folder with `node_modules`, pinned, outside the tree.
fn environments(workspace: &Workspace, place: &Place) -> Result<(), String> {
    let _lock = setup::lock(workspace)?;
    let requirements = place.sources.join("python/requirements.txt");
    made(&place.tools.join("python"), &requirements, |folder| {
        execute(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut install = Command::new(folder.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        execute(install.arg(&requirements))
    })?;
    let lock = place.sources.join("js/package-lock.json");
    let node = place.tools.join("node");
    made(&node, &lock, |folder| {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        copy(&lock, folder)?;
        copy(&place.sources.join("js/package.json"), folder)?;
        let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        execute(Command::new("npm").args(args).current_dir(folder))
    })?;
    // Node looks for packages beside the script, so it is copied there each time.
    copy(&place.sources.join("js/echo.mjs"), &node)
}

/// Makes the folder unless its stamp file says that it was made from this list. The stamp is written last.
fn made(folder: &Path, list: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let wanted = fs::read_to_string(list).map_err(|error| format!("{}: {error}", list.display()))?;
    let stamp = folder.join("installed.stamp");
    if fs::read_to_string(&stamp).is_ok_and(|stamped| stamped == wanted) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    }
    make(folder)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn copy(file: &Path, folder: &Path) -> Result<(), String> {
    let to = folder.join(file.file_name().ok_or("a file without a name")?);
    fs::copy(file, to).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}
