//! Links in Markdown to files of this repository must resolve.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::{File, Tree};

pub fn local_links_resolve(tree: &Tree, faults: &mut Vec<Fault>) {
    let mut known: BTreeSet<&str> = BTreeSet::from([""]);
    for file in &tree.files {
        known.insert(&file.path);
        known.extend(file.path.match_indices('/').map(|(at, _)| &file.path[..at]));
    }
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, target) in links(file) {
            let found = resolve(&file.path, target).is_some_and(|path| known.contains(path.as_str()));
            if !found {
                faults.push(Fault::new(
                    &file.path,
                    number,
                    format!("the link to `{target}` does not resolve"),
                ));
            }
        }
    }
}

/// `(line, target)` of links to files, without their fragment; code is skipped.
fn links(file: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        // Every second piece is outside of backticks; a link's text may contain code, so the pieces are joined again.
        let prose = line.split('`').step_by(2);
        let inline = prose.flat_map(|piece| {
            piece
                .match_indices("](")
                .filter_map(|(at, mark)| piece[at + mark.len()..].split([')', ' ']).next())
        });
        let reference =
            line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
        let targets = inline.chain(reference).filter(|target| !is_elsewhere(target));
        found.extend(
            targets.map(|target| (number, target.split('#').next().expect("a split has a first part"))),
        );
    }
    found
}

fn is_elsewhere(target: &str) -> bool {
    target.starts_with('#') || target.contains("://") || target.starts_with("mailto:")
}

/// The path from the root of the repository; `None` if the link leaves it.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn dead_links_are_refused() {
        let text = "[ok](../README.md#top) [dead](gone.md) [out](../../x)\n[web](https://a.b/c) [here](#x)\n\
                    ```\n[code](gone.md)\n```\n`[code](gone.md)` [folder](../docs/) [`a`](a.md \"title\")\n\
                    [ref]: gone.md\n";
        check(
            &[("README.md", "[a](/docs/a.md) [b](./docs/b.md)\n"), ("docs/a.md", text)],
            &["README.md:1", "docs/a.md:1", "docs/a.md:1", "docs/a.md:7"],
        );
    }
}
