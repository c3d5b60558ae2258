//! With a heap that counts.

use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    echo_a2a_protocol_sdk::main(Some(|| {
        let stats = ALLOCATOR.stats();
        let live = stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated);
        (stats.allocations as u64, stats.reallocations as u64, live as u64)
    }))
}
