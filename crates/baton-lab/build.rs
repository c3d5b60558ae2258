//! Embeds the suites: every `suites/<generation>/*.acts.yaml`, in order.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("suites");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    // The folder may be missing: an empty one is not kept in the repository.
    for folder in fs::read_dir(&root).into_iter().flatten() {
        let folder = folder.expect("readable").path();
        if !folder.is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", folder.display());
        for file in fs::read_dir(&folder).expect("readable") {
            let file = file.expect("readable").path();
            if file.to_string_lossy().ends_with(".acts.yaml") {
                files.push(file);
            }
        }
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&root).expect("below the folder").display().to_string();
        writeln!(list, "({name:?}, include_str!({:?})),", file.display().to_string()).expect("into memory");
    }
    list += "]";
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("suites.rs");
    fs::write(out, list).expect("the output folder can be written");
}
