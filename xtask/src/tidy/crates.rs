//! Which crate may depend on which, and how many test binaries a crate has.

use super::Fault;
use super::tree::Tree;

/// All allowed dependencies. A new one needs a decision note.
const EDGES: &[(&str, &[&str])] = &[
    ("baton-net", &[]),
    ("baton-protocol", &[]),
    ("baton-server", &["baton-net", "baton-protocol"]),
    ("baton-client", &["baton-protocol"]),
    ("baton-lab", &["baton-protocol"]),
    ("baton", &["baton-protocol", "baton-server", "baton-client", "baton-lab"]),
];

/// Dependencies of tests only: a client is tested against a real server.
const TEST_EDGES: &[(&str, &[&str])] = &[("baton-client", &["baton-server"])];

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
        let in_tests =
            TEST_EDGES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, edges)| edges);
        for (number, dependency, for_tests) in dependencies(&file.text) {
            let ours = EDGES.iter().any(|(known, _)| *known == dependency);
            let allowed = allowed.contains(&dependency) || for_tests && in_tests.contains(&dependency);
            if ours && !allowed {
                faults.push(Fault::new(&file.path, number, format!("`{name}` must not know `{dependency}`")));
            }
        }
    }
}

/// Each binary links the whole crate again; `tests/it/main.rs` links it once.
pub fn one_integration_binary(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in &tree.files {
        let Some((name, rest)) = file.crate_path() else { continue };
        // proptest stores the seeds of past failures beside the binary's folder.
        let known = ["it/", "proptest-regressions/"];
        if rest
            .strip_prefix("tests/")
            .is_some_and(|rest| !known.iter().any(|folder| rest.starts_with(folder)))
        {
            faults.push(Fault::new(&file.path, 1, format!("belongs into crates/{name}/tests/it/")));
        }
    }
}

/// Other workspaces, such as the benchmarks, have lock files of their own, which the daily builds do not use. If such a
/// lock lacks a dependency of our crates, that workspace does not build.
pub fn locks_know_our_dependencies(tree: &Tree, faults: &mut Vec<Fault>) {
    for lock in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.lock")) {
        for package in lock.text.split("[[package]]\n").skip(1) {
            let named = package.lines().find_map(|line| line.strip_prefix("name = "));
            let manifest = format!("crates/{}/Cargo.toml", named.unwrap_or_default().trim_matches('"'));
            // A published package has a source.
            let ours = tree.files.iter().find(|file| file.path == manifest && !package.contains("source = "));
            for name in ours.iter().flat_map(|manifest| always_needed(&manifest.text)) {
                // With its version, where there are several.
                if ![format!(" \"{name}\""), format!(" \"{name} ")]
                    .iter()
                    .any(|known| package.contains(known))
                {
                    let message = format!("{manifest} needs `{name}`; run `cargo metadata` in this folder");
                    faults.push(Fault::new(&lock.path, 1, message));
                }
            }
        }
    }
}

/// Debug sections made the binary five times as large. Use the profile `profiling` for them.
pub fn releases_carry_no_debug_sections(tree: &Tree, faults: &mut Vec<Fault>) {
    let Some(manifest) = tree.files.iter().find(|file| file.path == "Cargo.toml") else { return };
    let lines = || manifest.text.lines().enumerate();
    let Some((at, _)) = lines().find(|(_, line)| *line == "[profile.release]") else { return };
    let mut release = lines().skip(at + 1).take_while(|(_, line)| !line.starts_with('['));
    if !release.any(|(_, line)| line == "strip = \"symbols\"") {
        let message = "releases are stripped: `strip = \"symbols\"`; use the profile `profiling` to measure";
        faults.push(Fault::new(&manifest.path, at + 1, message));
    }
}

/// The dependencies of a crate on every platform and with any features.
fn always_needed(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    let lines =
        lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.contains("optional = true"));
    lines
        .filter_map(|line| line.split(['.', '=', ' ']).next().filter(|name| !name.is_empty() && *name != "#"))
}

/// `(line, name, only for tests)` of all dependencies, also those for one platform.
fn dependencies(manifest: &str) -> Vec<(usize, &str, bool)> {
    let mut found = Vec::new();
    let mut in_table = false;
    let mut for_tests = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            in_table = header.ends_with("dependencies");
            for_tests = header.contains("dev-dependencies");
            // `[dependencies.name]`
            if let Some((table, name)) = header.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                found.push((index + 1, name.trim_matches('"'), for_tests));
            }
        } else if in_table && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().expect("a split has a first part");
            if !name.is_empty() {
                found.push((index + 1, name.trim_matches('"'), for_tests));
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

    /// A client's tests may start a server; the client itself must not know it.
    #[test]
    fn some_edges_are_for_tests_only() {
        let dev = "[dev-dependencies]\nbaton-server.workspace = true\n";
        check(&[("crates/baton-client/Cargo.toml", dev)], &[]);
        let shipped = "[dependencies]\nbaton-server.workspace = true\n";
        check(&[("crates/baton-client/Cargo.toml", shipped)], &["crates/baton-client/Cargo.toml:2"]);
    }

    #[test]
    fn dependencies_are_found_in_every_table() {
        let manifest = "[dependencies]\n# a = 1\nb.workspace = true\n\n[target.'cfg(unix)'.build-dependencies]\n\
                        c = \"1\"\n[features]\nd = []\n[dev-dependencies.e]\nf = 1\n";
        assert_eq!(dependencies(manifest), [(3, "b", false), (6, "c", false), (9, "e", true)]);
    }

    #[test]
    fn a_lock_that_does_not_know_a_dependency_is_refused() {
        let manifest = "[dependencies]\n# why\nbytes.workspace = true\nserde = \"1\"\n\
                        foldhash = { workspace = true, optional = true }\n[dev-dependencies]\nproptest = \"1\"\n";
        let package = |needs: &str| {
            format!("[[package]]\nname = \"baton-server\"\nversion = \"0.1.0\"\ndependencies = [\n{needs}]\n")
        };
        let (whole, cut) =
            (package(" \"bytes\",\n \"serde 1.0.1\",\n"), package(" \"bytes\",\n \"serde_json\",\n"));
        check(
            &[
                ("crates/baton-server/Cargo.toml", manifest),
                ("bench/Cargo.lock", &whole),
                ("fuzz/Cargo.lock", &cut),
                ("other/Cargo.lock", "[[package]]\nname = \"bytes\"\nsource = \"registry\"\n"),
            ],
            &["fuzz/Cargo.lock:1"],
        );
    }

    #[test]
    fn a_release_with_debug_sections_is_refused() {
        let profiling = "\n[profile.profiling]\nstrip = \"none\"\n";
        for (release, expected) in [
            ("lto = \"thin\"\nstrip = \"symbols\"\n", &[][..]),
            ("debug = true\n", &["Cargo.toml:2"][..]),
            ("strip = \"none\"\n", &["Cargo.toml:2"][..]),
        ] {
            let manifest = format!("\n[profile.release]\n{release}{profiling}");
            check(&[("Cargo.toml", &manifest)], expected);
        }
    }

    #[test]
    fn a_second_test_binary_is_refused() {
        check(
            &[("crates/baton/tests/it/main.rs", ""), ("crates/baton/tests/smoke.rs", "")],
            &["crates/baton/tests/smoke.rs:1"],
        );
    }
}
