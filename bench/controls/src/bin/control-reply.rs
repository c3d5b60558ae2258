//! The control `reply`, with the allocator that Baton's binary has.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    controls::reply::main(None)
}
