//! Which crate may know which, and how many test binaries a crate links.

use super::Fault;
use super::tree::Tree;

/// Every edge there is. A new one needs a decision note.
const EDGES: &[(&str, &[&str])] = &[
    ("baton-protocol", &[]),
    ("baton-server", &["baton-protocol"]),
    ("baton-client", &["baton-protocol"]),
    ("baton-lab", &["baton-protocol"]),
    ("baton", &["baton-protocol", "baton-server", "baton-client", "baton-lab"]),
];

pub fn edges(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in &tree.files {
        let Some((name, "Cargo.toml")) = file.crate_path() else { continue };
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
            faults.push(Fault::new(
                &file.path,
                1,
                format!("`{name}` is not among the crates that tidy knows"),
            ));
            continue;
        };
        for (number, dependency) in dependencies(&file.text) {
            let ours = EDGES.iter().any(|(known, _)| *known == dependency);
            if ours && !allowed.contains(&dependency) {
                faults.push(Fault::new(&file.path, number, format!("`{name}` must not know `{dependency}`")));
            }
        }
    }
}

/// Each binary links the whole crate again; `tests/it/main.rs` links it once.
pub fn one_integration_binary(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in &tree.files {
        let Some((name, rest)) = file.crate_path() else { continue };
        // proptest keeps the seeds of past failures beside the binary's folder.
        let known = ["it/", "proptest-regressions/"];
        if rest
            .strip_prefix("tests/")
            .is_some_and(|rest| !known.iter().any(|folder| rest.starts_with(folder)))
        {
            faults.push(Fault::new(&file.path, 1, format!("belongs into crates/{name}/tests/it/")));
        }
    }
}

/// `(line, name)` of all dependencies, also those for development and for one platform.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_table = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            in_table = header.ends_with("dependencies");
            // `[dependencies.name]`
            if let Some((table, name)) = header.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                found.push((index + 1, name.trim_matches('"')));
            }
        } else if in_table && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().expect("a split has a first part");
            if !name.is_empty() {
                found.push((index + 1, name.trim_matches('"')));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn unknown_edges_are_refused() {
        check(
            &[
                ("crates/baton/Cargo.toml", "[dependencies]\nbaton-lab.workspace = true\n"),
                (
                    "crates/baton-lab/Cargo.toml",
                    "[package]\nname = \"baton-lab\"\n[dependencies]\nbaton-protocol.workspace = true\n\
                     baton-client.workspace = true\n[dev-dependencies]\nbaton-server = { path = \"../x\" }\n",
                ),
                ("crates/baton-protocol/Cargo.toml", "[dependencies.baton-server]\nworkspace = true\n"),
                ("crates/baton-side/Cargo.toml", "[package]\n"),
            ],
            &[
                "crates/baton-lab/Cargo.toml:5",
                "crates/baton-lab/Cargo.toml:7",
                "crates/baton-protocol/Cargo.toml:1",
                "crates/baton-side/Cargo.toml:1",
            ],
        );
    }

    #[test]
    fn dependencies_are_found_in_every_table() {
        let manifest = "[dependencies]\n# a = 1\nb.workspace = true\n\n[target.'cfg(unix)'.build-dependencies]\n\
                        c = \"1\"\n[features]\nd = []\n[dev-dependencies.e]\nf = 1\n";
        assert_eq!(dependencies(manifest), [(3, "b"), (6, "c"), (9, "e")]);
    }

    #[test]
    fn a_second_test_binary_is_refused() {
        check(
            &[("crates/baton/tests/it/main.rs", ""), ("crates/baton/tests/smoke.rs", "")],
            &["crates/baton/tests/smoke.rs:1"],
        );
    }
}
