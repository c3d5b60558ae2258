//! One binary for all targets: `BATON_FUZZ_TARGET` says which.
//!
//! The binary `baton` is no library, so its modules are compiled in here, under the names they have there.

#![no_main]
#![allow(dead_code, unused_imports, unexpected_cfgs)]

#[path = "../../../crates/baton/src/agents/mod.rs"]
mod agents;
#[path = "../../../crates/baton/src/args.rs"]
mod args;
#[path = "../../../crates/baton/src/commands/mod.rs"]
mod commands;
#[path = "../../../crates/baton/src/config/mod.rs"]
mod config;
#[path = "../../../crates/baton/src/exit.rs"]
mod exit;
#[path = "../../../crates/baton/src/files.rs"]
mod files;
#[path = "../../../crates/baton/src/fuzz.rs"]
mod fuzz;
#[path = "../../../crates/baton/src/log.rs"]
mod log;
#[path = "../../../crates/baton/src/reload.rs"]
mod reload;
#[path = "../../../crates/baton/src/signals.rs"]
mod signals;

use std::sync::OnceLock;

type Check = fn(&[u8]);

static CHECK: OnceLock<Check> = OnceLock::new();

/// The targets of every crate.
fn find() -> Check {
    let wanted = std::env::var("BATON_FUZZ_TARGET").expect("BATON_FUZZ_TARGET names a target");
    let tables = [
        baton_protocol::fuzz::TARGETS,
        baton_server::fuzz::TARGETS,
        baton_lab::fuzz::TARGETS,
        fuzz::TARGETS,
    ];
    let found = tables.into_iter().flatten().find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("no target is called {wanted}")).1
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| CHECK.get_or_init(find)(bytes));
