//! The names of the tests that passed, from the JUnit file nextest writes.

/// `(binary, test)` of every passed case, e.g. `("baton-server::it", "send::s01_malformed_json")`.
pub fn passed(junit: &str) -> Vec<(String, String)> {
    let mut cases = Vec::new();
    let mut rest = junit;
    while let Some(start) = rest.find("<testcase ") {
        rest = &rest[start..];
        let Some(end) = rest.find('>') else { break };
        let (tag, after) = rest.split_at(end + 1);
        // The tests' output is escaped in this file, so a tag in the body is a real one.
        let whole = if tag.ends_with("/>") { Some(("", after)) } else { after.split_once("</testcase>") };
        let Some((body, next)) = whole else { break };
        let failed = ["<failure", "<error", "<skipped"].iter().any(|mark| body.contains(mark));
        if let (false, Some(binary), Some(test)) =
            (failed, attribute(tag, "classname"), attribute(tag, "name"))
        {
            cases.push((binary, test));
        }
        rest = next;
    }
    cases
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    Some(
        value
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&amp;", "&"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passed_cases_count() {
        let junit = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="4" failures="1" errors="1">
  <testsuite name="baton-server::it" tests="4">
    <testcase name="send::s01_a" classname="baton-server::it" time="0.01">
    </testcase>
    <testcase name="send::s01_b" classname="baton-server::it" time="0.01">
      <failure message="s01 &gt; no" type="test failure">left &lt;x&gt;</failure>
    </testcase>
    <testcase name="send::s01_c" classname="baton-server::it" time="0.01"><error type="timeout"/></testcase>
    <testcase name="send::s01_d&amp;e" classname="baton-server::it" time="0.01"/>
  </testsuite>
</testsuites>"#;
        let names: Vec<String> = passed(junit).into_iter().map(|(_, test)| test).collect();
        assert_eq!(names, ["send::s01_a", "send::s01_d&e"]);
    }

    #[test]
    fn a_cut_file_gives_what_it_holds() {
        assert!(passed("").is_empty());
        assert!(passed("<testcase name=\"a\" classn").is_empty());
        assert!(passed("<testcase name=\"a\" classname=\"b\"><fail").is_empty());
    }
}
