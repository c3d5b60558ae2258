//! Broken files and all that is said about each, word for word: `broken.golden.txt` has the file, a line of `----`, and
//! the messages; cases are parted by `====`.

use super::{complaints, load};

const CASES: &str = include_str!("broken.golden.txt");

#[test]
fn every_mistake_is_told_with_its_line_and_a_way_out() {
    let cases: Vec<_> = CASES.trim_end().split("\n====\n").collect();
    assert!(cases.len() >= 80, "{} cases", cases.len());
    let mut all = Vec::new();
    for case in &cases {
        let (text, _) = case.split_once("\n----\n").unwrap_or_else(|| panic!("no ---- in\n{case}"));
        all.push(format!("{text}\n----\n{}", complaints(load(text, &[], &[]))));
    }
    super::write_golden("broken.golden.txt", &(all.join("\n====\n") + "\n"));
    for case in cases {
        let (text, expected) = case.split_once("\n----\n").unwrap_or_else(|| panic!("no ---- in\n{case}"));
        assert_eq!(complaints(load(text, &[], &[])), expected, "of\n{text}\n");
    }
}

/// Whatever somebody writes, and wherever it breaks off, the answer is a message and never a panic.
#[test]
fn no_file_is_too_broken_to_be_told_about() {
    let whole = crate::config::DEFAULT_FILE;
    for end in (0..whole.len()).step_by(97).filter(|end| whole.is_char_boundary(*end)) {
        let _ = load(&whole[..end], &[], &[]).map_err(|problems| problems.to_string());
    }
    for value in [
        "\"\"",
        "0",
        "-1",
        "1e400",
        "nan",
        "true",
        "[]",
        "[[]]",
        "{}",
        "{ a = 1 }",
        "1979-05-27",
        "\"\\u0000\"",
    ] {
        for line in whole.lines() {
            let line = line.strip_prefix('#').unwrap_or(line);
            if let Some((key, _)) = line.split_once(" = ") {
                for table in ["", "[limits]\n", "[card]\n", "[[skill]]\n", "[[agent]]\n", "[agent.card]\n"] {
                    let text = format!("{table}{key} = {value}\n");
                    let _ = load(&text, &[], &[]).map_err(|problems| problems.to_string());
                }
            }
        }
    }
}
