//! `cargo xtask api`: what each library crate offers, one line per public item, in `crates/<crate>/public-api.txt`. Tidy
//! compares the files with the sources, so a change of what users see is a change that a reviewer sees.
//!
//! It reads sources, not rustdoc's JSON: that format is for nightly compilers and another one with nearly every release of
//! Rust, and the file has to come out the same on every compiler that builds the project. The price is that nothing is
//! expanded: items that a macro makes are shown as the macro's `pub` lines and what it is called with.

mod krate;
mod listing;
mod names;
mod text;

use std::fs;

use crate::tidy::{Fault, Tree};
use crate::workspace::Workspace;

/// Writes every file anew.
pub fn write(workspace: &Workspace) -> Result<(), String> {
    let tree = Tree::read(&workspace.root)?;
    for name in libraries(&tree) {
        let path = snapshot_path(name);
        fs::write(workspace.root.join(&path), listing(&tree, name)?).map_err(|e| format!("{path}: {e}"))?;
        println!("{path}: written");
    }
    Ok(())
}

/// The rule of tidy.
pub fn is_as_written(tree: &Tree, faults: &mut Vec<Fault>) {
    for name in libraries(tree) {
        let path = snapshot_path(name);
        let written = tree.files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
        match listing(tree, name) {
            Ok(found) => {
                if let Some((line, difference)) = first_difference(written, &found) {
                    let message = format!(
                        "the public API is another: {difference}. If that is meant, `cargo xtask api --write` renews \
                         the file; the commit says why"
                    );
                    faults.push(Fault::new(&path, line, message));
                }
            }
            Err(reason) => faults.push(Fault::new(&path, 1, reason)),
        }
    }
}

fn libraries(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.files
        .iter()
        .filter_map(|file| file.crate_path())
        .filter_map(|(name, rest)| (rest == "src/lib.rs").then_some(name))
}

fn snapshot_path(name: &str) -> String {
    format!("crates/{name}/public-api.txt")
}

fn listing(tree: &Tree, name: &str) -> Result<String, String> {
    Ok(listing::of(&krate::Crate::read(tree, name)?))
}

/// The line, and what is there instead of what was written.
fn first_difference(written: &str, found: &str) -> Option<(usize, String)> {
    let (mut written, mut found) = (written.lines(), found.lines());
    for number in 1.. {
        match (written.next(), found.next()) {
            (None, None) => return None,
            (Some(old), Some(new)) if old == new => {}
            (old, new) => {
                let shown =
                    |line: Option<&str>| line.map_or("nothing".into(), |line| format!("`{}`", line.trim()));
                return Some((number, format!("{} is written, {} is found", shown(old), shown(new))));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
