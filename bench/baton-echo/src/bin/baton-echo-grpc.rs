//! The same with gRPC compiled in. `GRPC=1` switches it on.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    baton_echo::main(None)
}
