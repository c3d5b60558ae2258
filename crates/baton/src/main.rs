//! `baton`: puts agents on the A2A network.

mod agents;
mod args;
mod commands;
mod exit;
mod log;
mod signals;

use std::process::ExitCode;
use std::time::Duration;

use args::Command;
use exit::Failure;

// A send allocates many small things on one worker and frees them on it; the system allocator is slower at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the threads have to end in, after everything was drained.
const LAST_WORDS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let command = args::parse();
    exit::report(run(command))
}

fn run(command: Command) -> Result<(), Failure> {
    log::install()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no threads to run on: {error}")))?;
    let result = runtime.block_on(async {
        match command {
            Command::Serve(args) => commands::serve::run(args).await,
            Command::Test(args) => commands::test::run(args).await,
        }
    });
    // The store closes its file now; a stuck call must not keep the process.
    runtime.shutdown_timeout(LAST_WORDS);
    result
}
