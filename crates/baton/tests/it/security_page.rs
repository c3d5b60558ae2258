//! `docs/security.md` names tests that exist.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

#[test]
fn s16_every_row_of_the_threat_table_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut functions = HashSet::new();
    find_functions(&root.join("crates"), &mut functions);
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| threat "))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    for row in rows {
        let [_, threat, _, tests, _] = &row[..] else { panic!("not three columns: {row:?}") };
        let mut names = tests.split('`').skip(1).step_by(2).peekable();
        assert!(names.peek().is_some(), "no test for: {threat}");
        for name in names {
            assert!(functions.contains(name), "`{name}` is no test; it stands for: {threat}");
        }
    }
}

/// The names of all functions below a folder.
fn find_functions(folder: &Path, into: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Cargo marks folders of build results; the webhooks' guard is a folder named `target`, too.
        if path.is_dir() && !path.join("CACHEDIR.TAG").exists() {
            find_functions(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.split_once("fn ")?.1.split(['(', '<']).next());
            into.extend(names.map(str::to_owned));
        }
    }
}
