//! The fuzz targets of all crates for libFuzzer: the crate root of `fuzz/libfuzzer`, not a module of this crate. It is
//! in this folder because the targets of a binary cannot be used from outside: the modules below are those of
//! `main.rs`.
//!
//! `BATON_FUZZ_TARGET` names the target.

#![no_main]
#![allow(dead_code, unused_imports, unexpected_cfgs)]

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
mod fuzz;
mod log;
mod output;
mod reload;
mod signals;

use std::sync::OnceLock;

type Check = fn(&[u8]);

static CHECK: OnceLock<Check> = OnceLock::new();

/// The targets of every crate.
fn find() -> Check {
    let wanted = std::env::var("BATON_FUZZ_TARGET").expect("BATON_FUZZ_TARGET names a target");
    let tables = [
        baton_protocol::fuzz::TARGETS,
        baton_net::fuzz::TARGETS,
        baton_server::fuzz::TARGETS,
        baton_lab::fuzz::TARGETS,
        fuzz::TARGETS,
    ];
    let found = tables.into_iter().flatten().find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("no target is called {wanted}")).1
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| CHECK.get_or_init(find)(bytes));
