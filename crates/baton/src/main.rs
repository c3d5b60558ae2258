//! `baton`: puts agents on the A2A network.

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

// A send allocates many small things on one worker and frees them on it; the system allocator is slower at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the threads have to end in, after everything was drained.
const LAST_WORDS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // A guard is started for every turn of a program: it must not pay for what only a server needs.
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
            Command::Serve(settings) => commands::serve::run(settings).await,
            Command::Config(verb) => commands::config::run(verb).await,
            Command::FaultProxy(args) => commands::fault_proxy::run(args).await,
            Command::Test(args) => commands::test::run(*args).await,
        }
    });
    // The store closes its file now; a stuck call must not keep the process.
    runtime.shutdown_timeout(LAST_WORDS);
    log::close();
    result
}
