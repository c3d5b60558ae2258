//! Reads `.env` files: `NAME=VALUE` lines, as many tools do. Only names of the client are kept, so a file that is meant
//! for other programs does no harm.

use super::key::PREFIX;

/// The client's assignments in the order of the file; the number is that of a line that is wrong.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, (usize, &'static str)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        if line.starts_with('#') || !line.starts_with(PREFIX) {
            continue;
        }
        let wrong = |why| (at + 1, why);
        let Some((name, value)) = line.split_once('=') else { return Err(wrong("write NAME=VALUE")) };
        let value = unquoted(value.trim()).ok_or_else(|| wrong("a quote is not closed"))?;
        found.push((name.trim_end().to_owned(), value));
    }
    Ok(found)
}

/// In double quotes `\n`, `\"` and `\\` are escapes; in single quotes nothing is. Without quotes, ` #` begins a comment.
fn unquoted(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix('\'') {
        return rest.split_once('\'').map(|(inner, _)| inner.to_owned());
    }
    if let Some(rest) = value.strip_prefix('"') {
        let mut out = String::new();
        let mut chars = rest.chars();
        loop {
            match chars.next()? {
                '"' => return Some(out),
                '\\' => match chars.next()? {
                    'n' => out.push('\n'),
                    c @ ('"' | '\\') => out.push(c),
                    other => out.extend(['\\', other]),
                },
                c => out.push(c),
            }
        }
    }
    Some(value.split(" #").next().unwrap_or_default().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_config_002_files_are_read_as_people_write_them() {
        let text = "# a comment\nOTHER=x y z\nbroken line\nA2ACLI_OUTPUT=json # why\nexport A2ACLI_BEARER='a #b'\r\n\
                    A2ACLI_SVC_PARAM=\"a:1\\nb:\\\"2\\\"\"\nA2ACLI_EMPTY=\n A2ACLI_TASK_ID = t=1\n";
        let expected = [
            ("A2ACLI_OUTPUT", "json"),
            ("A2ACLI_BEARER", "a #b"),
            ("A2ACLI_SVC_PARAM", "a:1\nb:\"2\""),
            ("A2ACLI_EMPTY", ""),
            ("A2ACLI_TASK_ID", "t=1"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read(text), Ok(expected.to_vec()));
        for (bad, line) in [("\nA2ACLI_OUTPUT", 2), ("A2ACLI_BEARER=\"x", 1), ("A2ACLI_BEARER='x", 1)] {
            assert_eq!(read(bad).unwrap_err().0, line, "{bad}");
        }
    }
}
