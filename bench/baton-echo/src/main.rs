//! `baton-echo PORT`, with the allocator that the project's own binary has.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    baton_echo::main(None)
}
