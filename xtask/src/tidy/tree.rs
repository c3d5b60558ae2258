//! The files of the repository, in memory, and access to them for the rules.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;

pub struct Tree {
    pub files: Vec<File>,
}

pub struct File {
    /// From the root of the repository, with `/`.
    pub path: String,
    /// Empty when it is not text.
    pub text: String,
}

impl Tree {
    /// Files that git tracks, or would track after `git add`, so that faults are found before the commit.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
        let names = process::output(list.current_dir(root))?;
        let files = names.split('\0').filter(|name| root.join(name).is_file()).map(|name| {
            let bytes = fs::read(root.join(name)).map_err(|e| format!("{name}: {e}"))?;
            Ok(File { path: name.to_owned(), text: String::from_utf8(bytes).unwrap_or_default() })
        });
        Ok(Self { files: files.collect::<Result<_, String>>()? })
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect() }
    }

    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// Rust files that are compiled into a crate: `crates/*/src/**`.
    pub fn sources(&self) -> impl Iterator<Item = &File> {
        self.rust().filter(|file| file.crate_path().is_some_and(|(_, rest)| rest.starts_with("src/")))
    }
}

impl File {
    /// `crates/baton-server/src/lib.rs` is `("baton-server", "src/lib.rs")`.
    pub fn crate_path(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')
    }

    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Lines of code that is not a test: without comments, and without inline `#[cfg(test)]` modules and
    /// `tests` files.
    pub fn shipped_lines(&self) -> Vec<(usize, &str)> {
        let is_test_file = self.path.split('/').any(|part| ["tests", "tests.rs", "suite"].contains(&part));
        if is_test_file {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut after_attribute = false;
        let mut in_tests = false;
        for (number, line) in self.lines() {
            if in_tests {
                in_tests = line != "}";
                continue;
            }
            if after_attribute && line.starts_with("mod ") && line.ends_with('{') {
                in_tests = true;
                continue;
            }
            // Other attributes may come between `#[cfg(test)]` and its module.
            after_attribute = line == "#[cfg(test)]" || (after_attribute && line.starts_with("#["));
            lines.push((number, code(line)));
        }
        lines
    }
}

/// The line without its comment. `//` after a colon belongs to a URL.
pub fn code(line: &str) -> &str {
    let comment = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// The identifiers and keywords of a line.
pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stops_at_a_comment_but_not_at_a_url() {
        assert_eq!(code("let a = 1; // one"), "let a = 1; ");
        assert_eq!(code("let a = \"http://b\"; // c"), "let a = \"http://b\"; ");
        assert_eq!(code("/// doc"), "");
    }

    #[test]
    fn shipped_lines_leave_tests_out() {
        let text = "a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    b\n}\nc // d\n";
        let file = File { path: "crates/x/src/lib.rs".into(), text: text.into() };
        let kept: Vec<&str> = file.shipped_lines().into_iter().map(|(_, line)| line).collect();
        assert_eq!(kept, ["a", "#[cfg(test)]", "#[allow(x)]", "c "]);
        let file = File { path: "crates/x/src/a/tests.rs".into(), text: "a\n".into() };
        assert!(file.shipped_lines().is_empty());
    }
}
