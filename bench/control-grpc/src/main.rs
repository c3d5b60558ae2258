//! `control-grpc PORT`, with the allocator that Baton's binary has.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    control_grpc::main(None)
}
