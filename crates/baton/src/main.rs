//! `baton`: calls, serves and tests A2A agents.

mod admin;
mod agents;
mod args;
mod client;
mod commands;
mod config;
mod exit;
#[cfg(debug_assertions)]
mod faults;
mod files;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod log;
mod output;
mod reload;
mod signals;

use std::process::ExitCode;
use std::time::Duration;

#[cfg(unix)]
use agents::exec::guard;
use args::{Command, ServeVerb, Typed};
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
    let typed = args::parse();
    exit::report(run(typed))
}

fn run(typed: Typed) -> Result<(), Failure> {
    let Typed { command, leading } = typed;
    let no_threads = |error: std::io::Error| Failure::failed(format!("no threads to run on: {error}"));
    let command = match command {
        Command::HashPassword(args) => return commands::hash_password::run(&args),
        Command::Completion(args) => return commands::completion::run(&args),
        Command::Man(args) => return commands::man::run(&args),
        command => command,
    };
    // A client makes one call after the other, and should be there at once: one thread is enough. A load has its times
    // from one thread, too, and leaves the other cores to the agent.
    let is_client = matches!(
        command,
        Command::Send(_)
            | Command::Chat(_)
            | Command::Task(_)
            | Command::Listen(_)
            | Command::Card(_)
            | Command::Config(_)
            | Command::Bench(_)
    );
    let mut builder = match is_client {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().map_err(no_threads)?;
    let result = runtime.block_on(Box::pin(async {
        match command {
            Command::Send(args) => Box::pin(commands::send::run(*args, leading)).await,
            Command::Chat(args) => Box::pin(commands::chat::run(*args)).await,
            Command::Task(verb) => Box::pin(commands::task::run(verb)).await,
            Command::Listen(args) => Box::pin(commands::listen::run(args)).await,
            Command::Card(verb) => Box::pin(commands::card::run(verb)).await,
            Command::Auth(verb) => Box::pin(commands::auth::run(verb)).await,
            Command::Config(verb) => Box::pin(commands::config::run(verb)).await,
            Command::Conformance(args) => Box::pin(commands::conformance::run(*args)).await,
            Command::Serve(args) => match args.verb {
                Some(ServeVerb::Config(verb)) => Box::pin(commands::serve::config::run(verb)).await,
                None => Box::pin(commands::serve::run(args.settings)).await,
            },
            Command::DemoServer(args) => Box::pin(commands::demo_server::run(args)).await,
            Command::Key(verb) => Box::pin(commands::key::run(verb)).await,
            Command::Push(verb) => Box::pin(commands::push::run(verb)).await,
            Command::Bench(args) => Box::pin(commands::bench::run(*args)).await,
            Command::FaultProxy(args) => commands::fault_proxy::run(args).await,
            Command::Test(args) => commands::test::run(*args).await,
            Command::HashPassword(_) | Command::Completion(_) | Command::Man(_) => Ok(()),
        }
    }));
    match is_client {
        // A name that does not resolve must not hold up a command that has given up.
        true => runtime.shutdown_background(),
        // The store closes its file now; a stuck call must not keep the process alive.
        false => runtime.shutdown_timeout(THREADS_END),
    }
    log::close();
    result
}
