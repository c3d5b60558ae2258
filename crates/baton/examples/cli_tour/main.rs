//! The client commands with an agent of another SDK, one that knows the `tck-` phrases and two users:
//!
//! `cargo run -p baton --example cli_tour -- target/debug/baton http://127.0.0.1:3000 TOKEN`
//!
//! Prints the name of each binding, and below it `ok` or `FAIL` for each check, as the scripts of `interop` do. Fails if any
//! failed. `cargo xtask interop --client` runs it. The checks are those that the tests make with the demo agent, and a few
//! for what the demo agent does not have.

// It is a program: it prints. A check fails by panicking.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

#[path = "../../tests/it/cli/live/mod.rs"]
mod live;
#[path = "../../tests/it/cli/user.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod user;

mod for_users;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use live::Live;

/// Checks mostly wait, for agents and for processes.
const AT_ONCE: usize = 4;

static PROGRAM: OnceLock<OsString> = OnceLock::new();

/// The tested binary with these arguments.
fn baton(args: &[&str]) -> Command {
    let program = PROGRAM.get().expect("it is set first");
    let mut command = user::with_clean_environment(Command::new(program));
    command.args(args);
    command
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(program), Some(url), Some(token)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: cli_tour BATON URL TOKEN");
        return ExitCode::from(2);
    };
    // Commands run in other folders.
    let program = std::path::absolute(&program).map_or(program, OsString::from);
    let _ = PROGRAM.set(program);
    let (url, token) = (url.to_string_lossy(), token.to_string_lossy());
    // A panic is the reason of a failed check, and is printed as such.
    std::panic::set_hook(Box::new(|_| {}));
    let checks: Vec<_> = live::CHECKS.iter().chain(for_users::CHECKS).collect();
    let runs: Vec<_> = Live::new(&url, Some(&token), "jsonrpc")
        .offered()
        .into_iter()
        .flat_map(|transport| checks.iter().map(move |check| (transport, *check)))
        .collect();
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<(usize, String)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((transport, (_, check))) = runs.get(at) else { return };
                    let live = Live::new(&url, Some(&token), transport);
                    let Err(reason) = catch_unwind(AssertUnwindSafe(|| check(&live))) else { continue };
                    let words = reason.downcast_ref::<String>().cloned();
                    let words =
                        words.or_else(|| reason.downcast_ref::<&str>().map(|words| (*words).to_owned()));
                    let words = words.unwrap_or_default().replace('\n', " ");
                    failures.lock().expect("nobody panics with it").push((at, words));
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panics with it");
    for (at, (transport, (name, _))) in runs.iter().enumerate() {
        if at % checks.len() == 0 {
            let binding = match *transport {
                "rest" => "HTTP+JSON",
                "grpc" => "gRPC",
                _ => "JSON-RPC",
            };
            println!("{binding} 1.0");
        }
        match failures.iter().find(|(failed, _)| *failed == at) {
            Some((_, reason)) => println!("FAIL {name}: {reason}"),
            None => println!("ok {name}"),
        }
    }
    println!("{} checks by each binding", checks.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
