//! With the system's allocator.

use std::process::ExitCode;

fn main() -> ExitCode {
    echo_a2a_protocol_sdk::main(None)
}
