//! No absolute path of a developer's machine in the tree.

use super::{Fault, tree::Tree};

const FOLDERS: &[&str] = &["work", "root", "home", "Users"];

pub fn none_of_one_machine(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in tree.files.iter().filter(|file| !file.path.ends_with(".lock")) {
        for (number, line) in file.lines() {
            if let Some(folder) = FOLDERS.iter().find(|folder| names(line, folder)) {
                faults.push(Fault::new(
                    &file.path,
                    number,
                    format!("an absolute path of one machine: `/{folder}`/…"),
                ));
            }
        }
    }
}

/// An absolute path: nothing before it that would make it part of a URL or of a relative path.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(&format!("/{folder}/"))
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn machine_paths_are_refused() {
        let text = "cd ROOT/src\nhttps://example.com/root/x\n../work/x\n\"WORK/x\"\n";
        let text = text.replace("ROOT", "/root").replace("WORK", "/work");
        check(&[("Cargo.lock", &text), ("docs/a.txt", &text)], &["docs/a.txt:1", "docs/a.txt:4"]);
    }
}
