//! Rules for Rust source, line by line.

use super::tree::{File, Tree, code};
use super::{Fault, tree};

const MAX_LINES: usize = 600;
const LONG_FILE: &str = "// long file:";
const ALLOW_SLEEP: &str = "// tidy: allow-sleep";

/// No placeholders, no debugging code, no disabled tests.
pub fn nothing_unfinished(tree: &Tree, faults: &mut Vec<Fault>) {
    // Concatenated, so that this file does not contain the words itself.
    let marks: Vec<String> = ["todo", "unimplemented", "dbg"]
        .iter()
        .map(|name| format!("{name}!("))
        .chain([["#[", "ignore"].concat()])
        .collect();
    for file in tree.rust() {
        for (number, line) in file.lines() {
            for mark in marks.iter().filter(|mark| line.contains(mark.as_str())) {
                faults.push(Fault::new(&file.path, number, format!("`{mark}` must not stay")));
            }
        }
    }
}

/// A file over 600 lines must give the reason in its first lines.
pub fn no_long_files(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in tree.sources() {
        let count = file.lines().count();
        if count > MAX_LINES && !file.lines().take(15).any(|(_, line)| has_reason(line, LONG_FILE)) {
            let message = format!("{count} lines; split it, or say why at its top: `{LONG_FILE} <reason>`");
            faults.push(Fault::new(&file.path, 1, message));
        }
    }
}

/// Public items must be named where they are re-exported.
pub fn no_glob_reexports(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in tree.rust() {
        for (number, line) in file.lines() {
            if code(line).trim_start().starts_with("pub use ") && code(line).contains("::*") {
                faults.push(Fault::new(&file.path, number, "`pub use …::*` hides what is public; name it"));
            }
        }
    }
}

/// Libraries don't read the environment, print or exit. Only the binary does.
pub fn libraries_keep_to_themselves(tree: &Tree, faults: &mut Vec<Fault>) {
    const BINARY: &str = "baton";
    const FORBIDDEN: &[&str] = &["std::env", "println!", "print!(", "process::exit"];
    let is_library = |file: &&File| file.crate_path().is_some_and(|(name, _)| name != BINARY);
    for file in tree.sources().filter(is_library) {
        for (number, line) in file.shipped_lines() {
            for what in FORBIDDEN.iter().filter(|what| line.contains(**what)) {
                faults.push(Fault::new(
                    &file.path,
                    number,
                    format!("`{what}` in a library; only `baton` may"),
                ));
            }
        }
    }
}

/// A test that sleeps is slow when it passes and flaky when it does not: tests should wait for an event.
pub fn tests_do_not_sleep(tree: &Tree, faults: &mut Vec<Fault>) {
    let is_test = |file: &&File| file.crate_path().is_some_and(|(_, rest)| rest.starts_with("tests/"));
    for file in tree.rust().filter(is_test) {
        for (number, line) in file.lines() {
            if tree::code(line).contains("sleep(") && !has_reason(line, ALLOW_SLEEP) {
                let message = format!("a test sleeps; wait for an event, or say `{ALLOW_SLEEP} <reason>`");
                faults.push(Fault::new(&file.path, number, message));
            }
        }
    }
}

fn has_reason(line: &str, mark: &str) -> bool {
    line.split_once(mark).is_some_and(|(_, reason)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn unfinished_code_is_refused() {
        let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("    {name}!(1)\n")).concat();
        let ignored = format!("{}[ignore = \"slow\"]\nfn a() {{}}\n", '#');
        check(
            &[("crates/a/src/a.rs", &macros), ("crates/a/tests/it/b.rs", &ignored)],
            &[
                "crates/a/src/a.rs:1",
                "crates/a/src/a.rs:2",
                "crates/a/src/a.rs:3",
                "crates/a/tests/it/b.rs:1",
            ],
        );
    }

    #[test]
    fn long_files_need_a_reason() {
        let long = "\n".repeat(601);
        let reasoned = format!("//! A table.\n// long file: one row per code\n{long}");
        let unreasoned = format!("// long file:\n{long}");
        let late = format!("{}// long file: too late to be seen\n{long}", "\n".repeat(15));
        check(
            &[
                ("crates/a/src/fits.rs", &"\n".repeat(600)),
                ("crates/a/src/late.rs", &late),
                ("crates/a/src/long.rs", &long),
                ("crates/a/src/reasoned.rs", &reasoned),
                ("crates/a/src/unreasoned.rs", &unreasoned),
            ],
            &["crates/a/src/late.rs:1", "crates/a/src/long.rs:1", "crates/a/src/unreasoned.rs:1"],
        );
    }

    #[test]
    fn glob_reexports_are_refused() {
        check(
            &[("crates/a/src/lib.rs", "use a::*;\npub use b::*;\npub use c::{d::*, e};\npub use f::g;\n")],
            &["crates/a/src/lib.rs:2", "crates/a/src/lib.rs:3"],
        );
    }

    #[test]
    fn libraries_must_not_touch_the_process() {
        let text = "use std::env;\neprintln!(\"a\");\nstd::process::exit(1);\n// println! is for people\n\
                    #[cfg(test)]\nmod tests {\n    println!();\n}\n";
        check(
            &[
                ("crates/baton/src/main.rs", text),
                ("crates/baton-server/examples/hello.rs", text),
                ("crates/baton-server/src/lib.rs", text),
                ("crates/baton-server/tests/it/main.rs", text),
                ("xtask/src/main.rs", text),
            ],
            &[
                "crates/baton-server/src/lib.rs:1",
                "crates/baton-server/src/lib.rs:2",
                "crates/baton-server/src/lib.rs:3",
            ],
        );
    }

    #[test]
    fn sleeping_tests_are_refused() {
        let text = "sleep(SECOND).await;\nsleep(SECOND).await; // tidy: allow-sleep the clock itself is tested\n\
                    sleep(SECOND).await; // tidy: allow-sleep\n// sleep(SECOND)\n";
        check(
            &[("crates/a/src/lib.rs", text), ("crates/a/tests/it/main.rs", text)],
            &["crates/a/tests/it/main.rs:1", "crates/a/tests/it/main.rs:3"],
        );
    }
}
