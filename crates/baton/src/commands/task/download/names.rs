//! Names for files that an agent named: the last part only, without anything that a system or a shell treats specially.

use std::collections::HashSet;

use crate::output::safe::is_unsafe;

/// In bytes. Most file systems allow 255; a few are left for a number and for `.part`.
const LONGEST: usize = 200;

/// Names that Windows keeps for devices, with any ending.
const RESERVED: &[&str] = &[
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
    "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Gives out each name once.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// In lower case: some file systems make no difference.
    given: HashSet<String>,
}

impl Names {
    /// A safe name that was not given before. `ending` is added if the name has none.
    pub(super) fn next(&mut self, wanted: &str, ending: Option<&str>) -> String {
        let name = safe(wanted);
        let (stem, own) = match name.rsplit_once('.') {
            Some((stem, own)) if !stem.is_empty() && own.len() <= 16 => {
                (stem.to_owned(), Some(own.to_owned()))
            }
            _ => (name, None),
        };
        let ending =
            own.or_else(|| ending.map(str::to_owned)).map(|ending| format!(".{ending}")).unwrap_or_default();
        let stem = shortened(&stem, LONGEST - ending.len());
        let mut name = format!("{stem}{ending}");
        let mut number = 2;
        while !self.given.insert(name.to_lowercase()) {
            name = format!("{stem}-{number}{ending}");
            number += 1;
        }
        name
    }
}

fn safe(wanted: &str) -> String {
    let last = wanted.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or_default();
    let plain = |c: char| if is_unsafe(c) || "<>:\"|?*".contains(c) { '_' } else { c };
    let name: String = last.chars().map(plain).collect();
    // A leading dot hides a file, a leading dash looks like an option, and Windows drops dots and spaces at the end.
    let name = name.trim_start_matches(['.', '-', ' ', '~']).trim_end_matches(['.', ' ']);
    let stem = name.split('.').next().unwrap_or_default();
    match name {
        "" => "artifact".to_owned(),
        name if RESERVED.contains(&stem.trim_end().to_lowercase().as_str()) => format!("_{name}"),
        name => name.to_owned(),
    }
}

fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_safe() {
        let long = format!("{}.txt", "ä".repeat(300));
        for (wanted, ending, expected) in [
            ("map.png", None, "map.png"),
            ("../../.ssh/authorized_keys", None, "authorized_keys"),
            ("..", None, "artifact"),
            ("C:\\Windows\\System32\\evil.exe", None, "evil.exe"),
            ("/", None, "artifact"),
            ("", Some("txt"), "artifact.txt"),
            (".bashrc", None, "bashrc"),
            ("-rf", None, "rf"),
            ("con", Some("txt"), "_con.txt"),
            ("NUL.tar.gz", None, "_NUL.tar.gz"),
            ("a\u{202e}gpj.exe", None, "a_gpj.exe"),
            ("a\nb\0c", None, "a_b_c"),
            ("what?*.txt", None, "what__.txt"),
            ("trailing. . ", None, "trailing"),
            ("notes", Some("md"), "notes.md"),
            (&long, None, &format!("{}.txt", "ä".repeat(98))),
        ] {
            assert_eq!(Names::default().next(wanted, ending), expected, "{wanted:?}");
        }
    }

    #[test]
    fn the_same_name_is_given_once() {
        let mut names = Names::default();
        let given = ["a.txt", "A.txt", "x/a.txt"].map(|wanted| names.next(wanted, None));
        assert_eq!(given, ["a.txt", "A-2.txt", "a-3.txt"]);
    }
}
