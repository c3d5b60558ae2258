//! With the allocator that Baton's binary has.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    echo_a2a_server_lf::main(None)
}
