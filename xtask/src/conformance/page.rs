//! What the evidence says about each line, and the page that tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::lab_agents::Passed;
use super::ledger::{CHECKLISTS, Line, Verdict};

/// A line with its evidence that passed.
pub struct Judged<'a> {
    line: &'a Line,
    /// Lab cases by the bindings they passed in.
    lab: BTreeMap<String, Vec<&'a str>>,
    tests: Vec<String>,
}

/// Fails, and names everything that is wrong, if a line lacks evidence or names some that did not pass.
pub fn judge<'a>(lines: &'a [Line], tests: &[String], lab: &Passed) -> Result<Vec<Judged<'a>>, String> {
    let mut problems = Vec::new();
    let judged: Vec<Judged> = lines
        .iter()
        .map(|line| {
            let judged = Judged::of(line, tests, lab, &mut problems);
            problems.extend(judged.problem().map(|problem| format!("line {}: {problem}", line.number)));
            judged
        })
        .collect();
    match problems.len() {
        0 => Ok(judged),
        _ => Err(format!("the ledger of conformance does not fit the results:\n  {}", problems.join("\n  "))),
    }
}

impl<'a> Judged<'a> {
    fn of(line: &'a Line, tests: &[String], lab: &Passed, problems: &mut Vec<String>) -> Self {
        let mut judged = Judged { line, lab: BTreeMap::new(), tests: Vec::new() };
        // A case may pass because there is nothing to look at; the ledger says where that is so.
        if matches!(line.verdict, Verdict::NotApplicable(_)) {
            return judged;
        }
        for case in &line.cases {
            if let Some(places) = lab.get(case) {
                judged.lab.entry(bindings(places)).or_default().push(case);
            }
        }
        let mut found = BTreeSet::new();
        for name in &line.tests {
            // A case of the lab that is about clients: `C1-CARD-003`.
            if name.contains('-') {
                match lab.get(name) {
                    Some(places) => judged.lab.entry(bindings(places)).or_default().push(name),
                    None => problems.push(format!("line {}: no lab case {name} passed", line.number)),
                }
                continue;
            }
            let passed: Vec<&str> =
                tests.iter().map(String::as_str).filter(|test| fits(name, test)).collect();
            if passed.is_empty() {
                problems.push(format!("line {}: no test `{name}` passed", line.number));
            }
            found.extend(passed);
        }
        judged.tests = listed(&found);
        judged
    }

    fn problem(&self) -> Option<String> {
        let line = self.line;
        let case = self.lab.values().flatten().next();
        match &line.verdict {
            Verdict::NotApplicable(_) if !line.tests.is_empty() => {
                Some("does not apply, but names tests".to_owned())
            }
            Verdict::Open(_) if !line.tests.is_empty() => Some("is open, but names tests".to_owned()),
            Verdict::Open(_) => case.map(|case| format!("is open, but {case} passed")),
            Verdict::Shown | Verdict::Part(_) if case.is_none() && self.tests.is_empty() => {
                Some("no lab case and no test shows it".to_owned())
            }
            _ => None,
        }
    }
}

/// Whether a passed test (`binary module::name`) is the one with this name, or one of those that begin so (`name*`). The
/// modules before it may be left out.
fn fits(name: &str, test: &str) -> bool {
    let (_, path) = test.rsplit_once(' ').unwrap_or(("", test));
    let starts = std::iter::once(0).chain(path.match_indices("::").map(|(at, colons)| at + colons.len()));
    let mut ends = starts.map(|at| &path[at..]);
    match name.strip_suffix('*') {
        Some(beginning) => ends.any(|end| end.starts_with(beginning)),
        None => ends.any(|end| end == name),
    }
}

/// Tests, and checks once each with all clients that passed them.
fn listed(found: &BTreeSet<&str>) -> Vec<String> {
    let mut clients: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut all = Vec::new();
    for test in found {
        match test.strip_prefix("interop::").and_then(|rest| rest.rsplit_once(' ')) {
            Some((client, check)) => clients.entry(check).or_default().push(client),
            None => all.push(format!("`{test}`")),
        }
    }
    all.extend(
        clients.iter().map(|(check, clients)| format!("`interop {check}` with {}", clients.join(", "))),
    );
    all
}

/// `1.0 jsonrpc` and so on as a list of bindings; the generation is in the case's id.
fn bindings(places: &BTreeSet<String>) -> String {
    let name = |place: &str| match place.rsplit_once(' ').map_or(place, |(_, binding)| binding) {
        "jsonrpc" => "JSON-RPC",
        "rest" => "HTTP+JSON",
        "grpc" => "gRPC",
        _ => "another binding",
    };
    let names: Vec<&str> = places.iter().map(|place| name(place)).collect();
    names.join(", ")
}

#[derive(Debug, Default, PartialEq)]
struct Counts {
    shown: usize,
    part: usize,
    open: usize,
    not_applicable: usize,
}

impl Counts {
    fn of<'a>(lines: impl Iterator<Item = &'a Judged<'a>>) -> Self {
        let mut counts = Self::default();
        for judged in lines {
            *match judged.line.verdict {
                Verdict::Shown => &mut counts.shown,
                Verdict::Part(_) => &mut counts.part,
                Verdict::Open(_) => &mut counts.open,
                Verdict::NotApplicable(_) => &mut counts.not_applicable,
            } += 1;
        }
        counts
    }

    fn all(&self) -> usize {
        self.shown + self.part + self.open + self.not_applicable
    }
}

pub fn summary(lines: &[Judged]) -> String {
    let Counts { shown, part, open, not_applicable } = Counts::of(lines.iter());
    format!("{shown} lines shown, {part} in part, {open} open, {not_applicable} do not apply")
}

pub fn render(lines: &[Judged]) -> String {
    let mut page = "# Conformance\n\n\
        Every numbered line of the specification's checklist, with the lab cases and the tests that show that Baton \
        keeps it.\n\
        The lines and their lab cases are the lab's ([1.0](../crates/baton-lab/suites/checklist-v1.tsv), \
        [0.3](../crates/baton-lab/suites/checklist-v0_3.tsv), [0.1](../crates/baton-lab/suites/checklist-v0_1.tsv)); \
        tests and verdicts are in the [ledger](conformance-ledger.tsv).\n\
        A lab case names the bindings that it passed in, and those whose id begins with C judge our client. That every \
        binding does the same is shown at lines 127 to 130.\n\
        Generated by `cargo xtask conformance --write`, which runs the lab on our own agents and reads the last test \
        results; `cargo xtask test` fails when this page is out of date.\n\n\
        | checklist | lines | shown | in part | open | do not apply |\n\
        |---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut say = |text: std::fmt::Arguments| page.write_fmt(text).expect("a string grows");
    let of =
        |letter: &'static str| lines.iter().filter(move |judged| letter_of(&judged.line.number) == letter);
    for checklist in &CHECKLISTS {
        let counts = Counts::of(of(checklist.letter));
        let Counts { shown, part, open, not_applicable } = counts;
        let (title, all) = (checklist.title, counts.all());
        say(format_args!("| {title} | {all} | {shown} | {part} | {open} | {not_applicable} |\n"));
    }
    for checklist in &CHECKLISTS {
        say(format_args!("\n## {}\n", checklist.title));
        for Judged { line, lab, tests } in of(checklist.letter) {
            let (number, level, who, bindings) = (&line.number, line.level, line.who, &line.bindings);
            say(format_args!("\n**{number}** {} ({level}, {who}; {bindings})\n\n", line.sentence));
            for (bindings, cases) in lab {
                say(format_args!("- lab: {} ({bindings})\n", cases.join(", ")));
            }
            for test in tests {
                say(format_args!("- {test}\n"));
            }
            match &line.verdict {
                Verdict::Shown => {}
                Verdict::Part(missing) => say(format_args!("- still missing: {missing}\n")),
                Verdict::Open(why) => say(format_args!("- open: {why}\n")),
                Verdict::NotApplicable(why) => say(format_args!("- does not apply: {why}\n")),
            }
        }
    }
    page
}

/// The letter before the number: none in 1.0.
fn letter_of(number: &str) -> &str {
    number.trim_end_matches(|character: char| character.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: &str, cases: &str, tests: &str, verdict: Verdict) -> Line {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Line {
            number: number.to_owned(),
            level: "MUST",
            who: "server",
            bindings: "all".to_owned(),
            sentence: "It does".to_owned(),
            cases: words(cases),
            tests: words(tests),
            verdict,
        }
    }

    fn lab() -> Passed {
        let places = |places: &[&str]| places.iter().map(|place| (*place).to_owned()).collect();
        [
            ("V1-A-001".to_owned(), places(&["1.0 jsonrpc", "1.0 rest"])),
            ("V1-A-002".to_owned(), places(&["1.0 jsonrpc", "1.0 rest"])),
            ("V1-A-003".to_owned(), places(&["1.0 jsonrpc"])),
        ]
        .into()
    }

    const TESTS: [&str; 4] =
        ["b::it send::s01_a", "b::it send::s01_b", "interop::js 1.0 p02_c", "interop::python 1.0 p02_c"];

    fn tests() -> Vec<String> {
        TESTS.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_test_is_found_by_the_end_of_its_path_or_by_its_beginning() {
        assert!(fits("s01_a", TESTS[0]) && fits("send::s01_a", TESTS[0]) && fits("s01_*", TESTS[0]));
        assert!(fits("send::*", TESTS[1]) && fits("p02_c", TESTS[2]));
        for name in ["s01", "a", "d::s01_a", "it send::s01_a", "b*", ""] {
            assert!(!fits(name, TESTS[0]), "{name}");
        }
    }

    #[test]
    fn the_page_tells_the_evidence_and_what_is_missing() {
        let lines = [
            line("1", "V1-A-001 V1-A-002 V1-A-003 V1-A-009", "", Verdict::Shown),
            line("2", "", "s01_* p02_c", Verdict::Part("half".to_owned())),
            line("a1", "", "", Verdict::Open("not built".to_owned())),
            line("a2", "V1-A-001", "", Verdict::NotApplicable("documents".to_owned())),
        ];
        let judged = judge(&lines, &tests(), &lab()).unwrap();
        assert_eq!(summary(&judged), "1 lines shown, 1 in part, 1 open, 1 do not apply");
        let page = render(&judged);
        assert!(page.contains("| 1.0 | 2 | 1 | 1 | 0 | 0 |\n"), "{page}");
        assert!(page.contains("| 0.3, where it differs | 2 | 0 | 0 | 1 | 1 |\n"), "{page}");
        let (_, body) = page.split_once("\n## 1.0\n").unwrap();
        let expected = "\n**1** It does (MUST, server; all)\n\n- lab: V1-A-003 (JSON-RPC)\n\
                        - lab: V1-A-001, V1-A-002 (JSON-RPC, HTTP+JSON)\n\n\
                        **2** It does (MUST, server; all)\n\n- `b::it send::s01_a`\n- `b::it send::s01_b`\n\
                        - `interop p02_c` with js 1.0, python 1.0\n- still missing: half\n\n\
                        ## 0.3, where it differs\n\n**a1** It does (MUST, server; all)\n\n- open: not built\n\n\
                        **a2** It does (MUST, server; all)\n\n- does not apply: documents\n\n## 0.1\n";
        assert_eq!(body, expected);
    }

    #[test]
    fn evidence_that_is_not_there_is_named() {
        let problem = |line: Line| judge(&[line], &tests(), &lab()).err().unwrap_or_default();
        assert!(
            problem(line("1", "V1-A-001", "s01_c", Verdict::Shown))
                .contains("line 1: no test `s01_c` passed")
        );
        assert!(
            problem(line("1", "V1-A-009", "", Verdict::Shown)).contains("no lab case and no test shows it")
        );
        let part = Verdict::Part("half".to_owned());
        assert!(problem(line("1", "", "", part)).contains("no lab case and no test shows it"));
        let open = || Verdict::Open("not built".to_owned());
        assert!(problem(line("1", "V1-A-001", "", open())).contains("is open, but V1-A-001 passed"));
        assert!(problem(line("1", "", "s01_a", open())).contains("is open, but names tests"));
        assert!(problem(line("1", "", "C1-A-001", Verdict::Shown)).contains("no lab case C1-A-001 passed"));
        assert_eq!(problem(line("1", "", "V1-A-003", Verdict::Shown)), "");
        let other = Verdict::NotApplicable("documents".to_owned());
        assert!(problem(line("1", "", "s01_a", other)).contains("does not apply, but names tests"));
        assert_eq!(problem(line("1", "V1-A-001", "s01_a s01_*", Verdict::Shown)), "");
    }
}
