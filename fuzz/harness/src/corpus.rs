//! The inputs a target starts from: golden files, its own seeds, and inputs that once failed.

use std::fs;
use std::path::{Path, PathBuf};

/// A line of `fuzz/targets.tsv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    /// The crate whose test binary contains it.
    pub package: String,
    /// Files and folders, from the root of the repository.
    pub seeds: Vec<String>,
}

/// Larger files are skipped, since they test nothing that smaller ones do not.
const MOST_BYTES: u64 = 64 * 1024;

/// The root of the repository. Found at run time, since checkouts may share a target folder; every crate is two folders
/// below it.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&manifest).ancestors().nth(2).expect("a crate lies two folders below the root").to_owned()
}

/// All targets, as `fuzz/targets.tsv` lists them.
pub fn rows() -> Vec<Row> {
    let path = root().join("fuzz/targets.tsv");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().unwrap_or_else(|| panic!("{line:?} lacks a field"));
            let (name, package) = (next().to_owned(), next().to_owned());
            Row { name, package, seeds: next().split_whitespace().map(str::to_owned).collect() }
        })
        .collect()
}

/// The inputs of a target, each with the file it is from, in a fixed order.
pub(crate) fn inputs(row: &Row) -> Vec<(PathBuf, Vec<u8>)> {
    let root = root();
    let own = [format!("fuzz/seeds/{}", row.name), format!("fuzz/regressions/{}", row.name)];
    let mut files = Vec::new();
    for seeds in &row.seeds {
        assert!(
            root.join(seeds).exists(),
            "fuzz/targets.tsv: {} names {seeds}, which is not there",
            row.name
        );
        collect(&root.join(seeds), &mut files);
    }
    own.iter().for_each(|folder| collect(&root.join(folder), &mut files));
    files.sort();
    files.dedup();
    files
        .into_iter()
        .map(|path| {
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, bytes)
        })
        .collect()
}

fn collect(path: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        if path.is_file() {
            into.push(path.to_owned());
        }
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if entry.metadata().is_ok_and(|about| about.len() <= MOST_BYTES) {
            into.push(path);
        }
    }
}
