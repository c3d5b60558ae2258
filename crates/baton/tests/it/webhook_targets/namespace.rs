//! A test in a network namespace of its own: it starts itself again below `unshare`.

use std::env;
use std::fs;
use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::faults::runs::say;

/// Tells a test that it is in its namespace already.
const INSIDE: &str = "BATON_TEST_IN_OWN_NETWORK";

/// Where the name server listens.
pub(super) const NAME_SERVER: &str = "127.0.0.53";

/// Packets to this port vanish, as in a firewall that drops them.
pub(super) const FILTERED_PORT: u16 = 9444;
/// The system refuses to send to these addresses, each with an error of its own.
pub(super) const BLACK_HOLE: &str = "93.184.216.40";
pub(super) const UNREACHABLE: &str = "93.184.216.41";
pub(super) const PROHIBITED: &str = "93.184.216.42";

/// As root and as anybody, where the system allows it.
const WAYS: [&str; 2] = ["-nm", "-Urnm"];

/// Runs the story in a namespace. `test` is the test that calls this: its name finds it again there.
pub(super) fn in_own_network<T: Fn(), F: Future<Output = ()>>(test: T, story: impl FnOnce() -> F) {
    let name = name_of(&test);
    if env::var(INSIDE).is_ok_and(|inside| inside == name) {
        furnish();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return runtime.unwrap().block_on(story());
    }
    let mut again = Command::new("unshare");
    again.arg(way()).arg(env::current_exe().unwrap()).args([&name, "--exact", "--nocapture"]);
    let output = again.env(INSIDE, &name).stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A name that finds no test would pass.
    assert!(output.status.success() && out.contains("1 passed"), "in its own network:\n{out}\n{err}");
    out.lines().filter(|line| line.starts_with(FIGURES)).for_each(say);
}

/// What lines with figures begin with.
pub(super) const FIGURES: &str = "webhook-targets";

/// Without the crate: as the test's own program knows it.
fn name_of<T>(_: &T) -> String {
    let path = std::any::type_name::<T>();
    path.split_once("::").map_or(path, |(_, name)| name).to_owned()
}

/// How this machine gives a namespace. A test that cannot have one fails: nothing else would show what it shows.
fn way() -> &'static str {
    let mut refusals = String::new();
    for way in WAYS {
        match Command::new("unshare").args([way, "true"]).output() {
            Ok(output) if output.status.success() => return way,
            Ok(output) => {
                refusals += &format!("\n`unshare {way}`: {}", String::from_utf8_lossy(&output.stderr).trim())
            }
            Err(error) => refusals += &format!("\n`unshare {way}`: {error}"),
        }
    }
    panic!(
        "this test needs a network namespace, so that it can listen on internal addresses without touching those of \
         this machine. Run it as root, with CAP_SYS_ADMIN, or where user namespaces are allowed.{refusals}"
    );
}

/// Makes every address local, a few ports and addresses dead, and the name server ours.
fn furnish() {
    // The rules on ports must come before the table of local addresses, in which everything is.
    ip(&[
        "link set lo up",
        "route add local 0.0.0.0/0 dev lo table local",
        "route add local ::/0 dev lo table local",
        &format!("route add blackhole {BLACK_HOLE} table local"),
        &format!("route add unreachable {UNREACHABLE} table local"),
        &format!("route add prohibit {PROHIBITED} table local"),
        "rule add pref 10 lookup local",
        "rule del pref 0",
        // Out at the loopback interface, and in again: nobody's, so it is dropped without a word.
        "route add default dev lo table 100",
        &format!("rule add pref 5 ipproto tcp dport {FILTERED_PORT} lookup 100"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("resolv.conf", format!("nameserver {NAME_SERVER}\n")),
        (
            "hosts",
            "127.0.0.1 localhost\n10.0.0.5 known.hosts.example\nfc00::5 known6.hosts.example\n".to_owned(),
        ),
        // No service of this machine that resolves names by another way.
        ("nsswitch.conf", "hosts: files dns\n".to_owned()),
    ] {
        let (ours, systems) = (folder.path().join(file), Path::new("/etc").join(file));
        fs::write(&ours, text).unwrap();
        if file == "nsswitch.conf" && !systems.exists() {
            continue;
        }
        run(Command::new("mount").arg("--bind").args([&ours, &systems]));
    }
    if Path::new("/var/run/nscd").exists() {
        run(Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/var/run/nscd"]));
    }
}

fn ip(commands: &[&str]) {
    let mut ip = Command::new("ip");
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ip.spawn().unwrap_or_else(|error| {
        panic!("ip (of iproute2) is needed here: {error}; `cargo xtask setup` installs it")
    });
    child.stdin.take().unwrap().write_all(commands.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "ip: {}", String::from_utf8_lossy(&output.stderr));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
