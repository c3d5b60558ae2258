//! `baton`: serves and tests A2A agents.

mod admin;
mod agents;
mod args;
mod commands;
mod config;
mod exit;
#[cfg(debug_assertions)]
mod faults;
mod files;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod log;
mod reload;
mod signals;

use std::process::ExitCode;
use std::time::Duration;

#[cfg(unix)]
use agents::exec::guard;
use args::Command;
use exit::Failure;

// A send allocates many small objects and frees them on the same thread; the system allocator is slower at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long threads may take to end after the drain.
const THREADS_END: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // A guard is started for every turn of a program, so it must not initialise what only a server needs.
    #[cfg(unix)]
    {
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|first| first == guard::SUBCOMMAND) {
            return guard::main(args);
        }
    }
    let command = args::parse();
    exit::report(run(command))
}

fn run(command: Command) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no threads to run on: {error}")))?;
    let result = runtime.block_on(async {
        match command {
            Command::Serve(settings) => Box::pin(commands::serve::run(settings)).await,
            Command::Key(verb) => Box::pin(commands::key::run(verb)).await,
            Command::Config(verb) => commands::config::run(verb).await,
            Command::HashPassword(args) => commands::hash_password::run(&args),
            Command::FaultProxy(args) => commands::fault_proxy::run(args).await,
            Command::Test(args) => commands::test::run(*args).await,
        }
    });
    // The store closes its file now; a stuck call must not keep the process alive.
    runtime.shutdown_timeout(THREADS_END);
    log::close();
    result
}
