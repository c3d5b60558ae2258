//! Refuses file names that say nothing, or only that there is an older version.

use super::{Fault, tree::Tree};

const DRAWERS: &[&str] = &["utils", "helpers", "common"];
const SUFFIXES: &[&str] = &["_v2", "_new", "_enhanced"];

/// Such a file collects unrelated code; each piece should have a file named after it.
pub fn no_drawers(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in tree.rust() {
        let parts = file.path.trim_end_matches(".rs").split('/');
        if let Some(drawer) = parts.into_iter().find(|part| DRAWERS.contains(part)) {
            faults.push(Fault::new(&file.path, 1, format!("`{drawer}` says nothing; name what is in it")));
        }
    }
}

/// Only one version of a file is in the tree; older ones are in the history.
pub fn no_second_versions(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in &tree.files {
        let name = file.path.rsplit('/').next().expect("a split has a last part");
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        if let Some(suffix) = SUFFIXES.iter().find(|suffix| stem.ends_with(**suffix)) {
            faults.push(Fault::new(
                &file.path,
                1,
                format!("`{suffix}` in a name: replace the old one instead"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn drawers_are_refused() {
        check(
            &[
                ("crates/a/src/common/mod.rs", ""),
                ("crates/a/src/commons.rs", ""),
                ("crates/a/src/helpers.rs", ""),
                ("xtask/src/utils.rs", ""),
            ],
            &["crates/a/src/common/mod.rs:1", "crates/a/src/helpers.rs:1", "xtask/src/utils.rs:1"],
        );
    }

    #[test]
    fn second_versions_are_refused() {
        check(
            &[
                ("crates/a/src/send_new.rs", ""),
                ("crates/a/src/send_news.rs", ""),
                ("docs/plan_v2.md", ""),
                ("fixtures/card_enhanced.min.json", ""),
            ],
            &["crates/a/src/send_new.rs:1", "docs/plan_v2.md:1", "fixtures/card_enhanced.min.json:1"],
        );
    }
}
