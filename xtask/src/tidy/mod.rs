//! `cargo xtask tidy`: checks rules of this repository. Each rule reads the tree from memory, so that its tests can use
//! a made-up tree with a fault.

mod crates;
mod domain;
mod links;
mod names;
mod paths;
mod source;
mod spellings;
mod tree;

use std::fmt;

use crate::api;
use crate::workspace::Workspace;
pub use tree::Tree;

const RULES: &[fn(&Tree, &mut Vec<Fault>)] = &[
    names::no_drawers,
    names::no_second_versions,
    source::nothing_unfinished,
    source::no_long_files,
    source::no_glob_reexports,
    source::libraries_keep_to_themselves,
    source::tests_do_not_sleep,
    spellings::error_texts_name_nothing_of_one_generation,
    domain::stays_pure,
    crates::edges,
    crates::one_integration_binary,
    crates::locks_know_our_dependencies,
    crates::releases_carry_no_debug_sections,
    paths::none_of_one_machine,
    links::local_links_resolve,
];

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    path: String,
    /// From 1; also 1 if the whole file is meant.
    line: usize,
    message: String,
}

impl Fault {
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

pub fn run(workspace: &Workspace) -> Result<(), String> {
    let tree = Tree::read(&workspace.root)?;
    let mut faults = faults(&tree);
    // Not one of the rules: it needs complete crates, which the made-up trees of their tests are not.
    api::is_as_written(&tree, &mut faults);
    for fault in &faults {
        println!("{fault}");
    }
    match faults.len() {
        0 => {
            println!("{} files are tidy", tree.files.len());
            Ok(())
        }
        count => Err(format!("{count} faults")),
    }
}

fn faults(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for rule in RULES {
        rule(tree, &mut faults);
    }
    faults.sort();
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs all rules on a made-up tree; every fault is `path:line` and must be the only one of its place.
    pub(super) fn check(files: &[(&str, &str)], expected: &[&str]) {
        let faults = faults(&Tree::of(files));
        let places: Vec<String> =
            faults.iter().map(|fault| format!("{}:{}", fault.path, fault.line)).collect();
        assert_eq!(places, expected, "{faults:#?}");
    }

    #[test]
    fn a_clean_tree_has_no_faults() {
        check(
            &[
                ("README.md", "See [the server](crates/baton-server/src/lib.rs).\n"),
                ("crates/baton-server/Cargo.toml", "[dependencies]\nbaton-protocol.workspace = true\n"),
                ("crates/baton-server/src/lib.rs", "pub mod server;\n"),
                ("crates/baton-server/tests/it/main.rs", "mod send;\n"),
            ],
            &[],
        );
    }

    #[test]
    fn a_fault_names_file_and_line() {
        assert_eq!(Fault::new("a.rs", 3, "no").to_string(), "a.rs:3: no");
    }
}
