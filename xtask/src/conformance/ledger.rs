//! The lines of the checklist, their lab cases, and what `docs/conformance-ledger.tsv` says about each.

use std::collections::BTreeMap;
use std::fs;

use crate::workspace::Workspace;

const LEDGER: &str = "docs/conformance-ledger.tsv";

/// A generation's checklist: its title, the file, the letter before its numbers, and how many there are.
pub struct Checklist {
    pub title: &'static str,
    file: &'static str,
    pub letter: &'static str,
    lines: usize,
}

pub const CHECKLISTS: [Checklist; 3] = [
    Checklist { title: "1.0", file: "crates/baton-lab/suites/checklist-v1.tsv", letter: "", lines: 286 },
    Checklist {
        title: "0.3, where it differs",
        file: "crates/baton-lab/suites/checklist-v0_3.tsv",
        letter: "a",
        lines: 35,
    },
    Checklist { title: "0.1", file: "crates/baton-lab/suites/checklist-v0_1.tsv", letter: "b", lines: 16 },
];

/// A numbered line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub number: String,
    /// MUST, SHOULD and so on.
    pub level: &'static str,
    /// Whom it binds.
    pub who: &'static str,
    /// The bindings it speaks of, or where else it is seen.
    pub bindings: String,
    pub sentence: String,
    pub cases: Vec<String>,
    /// Names of tests; one that ends with `*` stands for all that begin so. And lab cases about clients, which the
    /// checklists do not have.
    pub tests: Vec<String>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The evidence shows all of it.
    Shown,
    /// The evidence shows a part; this is missing.
    Part(String),
    Open(String),
    NotApplicable(String),
}

pub fn read(workspace: &Workspace) -> Result<Vec<Line>, String> {
    let text = |file: &str| {
        let path = workspace.root.join(file);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let mut known = BTreeMap::new();
    for checklist in &CHECKLISTS {
        known.extend(checklist.parse(&text(checklist.file)?)?);
    }
    join(&text(LEDGER)?, &mut known)
}

type Known = BTreeMap<String, (String, Vec<String>)>;

impl Checklist {
    /// `number<TAB>sentence<TAB>cases`; instead of cases `- ` and why there are none. Rows that have no number of this
    /// checklist are left out: they are further groups of the lab's cases.
    fn parse(&self, text: &str) -> Result<Known, String> {
        let mut known = Known::new();
        for (at, row) in text.lines().enumerate().skip(1) {
            let [number, sentence, cases] = *row.split('\t').collect::<Vec<_>>() else {
                return Err(format!("{}:{}: not `number<TAB>sentence<TAB>cases`", self.file, at + 1));
            };
            if !self.has(number) {
                continue;
            }
            let cases = if cases.starts_with("- ") { "" } else { cases };
            let cases = cases.split_whitespace().map(str::to_owned).collect();
            known.insert(number.to_owned(), (sentence.to_owned(), cases));
        }
        Ok(known)
    }

    fn has(&self, number: &str) -> bool {
        let digits = number.strip_prefix(self.letter).unwrap_or_default();
        digits.parse().is_ok_and(|count: usize| (1..=self.lines).contains(&count))
    }

    fn numbers(&self) -> impl Iterator<Item = String> {
        (1..=self.lines).map(|count| format!("{}{count}", self.letter))
    }
}

/// `number<TAB>level<TAB>who<TAB>bindings<TAB>tests<TAB>remark` in the order of the numbers.
fn join(ledger: &str, known: &mut Known) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut expected = CHECKLISTS.iter().flat_map(Checklist::numbers);
    for (at, row) in ledger.lines().enumerate().skip(1) {
        let bad = |why: &str| format!("{LEDGER}:{}: {why}", at + 1);
        let [number, level, who, bindings, tests, remark] = *row.split('\t').collect::<Vec<_>>() else {
            return Err(bad("not `number<TAB>level<TAB>who<TAB>bindings<TAB>tests<TAB>remark`"));
        };
        if expected.next().as_deref() != Some(number) {
            return Err(bad("the numbers are not those of the checklists, in their order"));
        }
        let (sentence, cases) = known.remove(number).ok_or_else(|| bad("no checklist has this line"))?;
        lines.push(Line {
            number: number.to_owned(),
            level: level_of(level).ok_or_else(|| bad("the level is M, N, S, D or M/S"))?,
            who: who_of(who).ok_or_else(|| bad("nobody is called so"))?,
            bindings: bindings.to_owned(),
            sentence,
            cases,
            tests: tests.split_whitespace().map(str::to_owned).collect(),
            verdict: verdict_of(remark)
                .ok_or_else(|| bad("the remark is `part: `, `open: ` or `n/a: ` and why"))?,
        });
    }
    match expected.next() {
        Some(number) => Err(format!("{LEDGER}: line {number} is missing")),
        None => Ok(lines),
    }
}

fn level_of(level: &str) -> Option<&'static str> {
    Some(match level {
        "M" => "MUST",
        "N" => "MUST NOT",
        "S" => "SHOULD",
        "D" => "SHOULD NOT",
        "M/S" => "MUST, SHOULD",
        "M/N" => "MUST, MUST NOT",
        _ => return None,
    })
}

fn who_of(who: &str) -> Option<&'static str> {
    Some(match who {
        "Sv" => "server",
        "Cl" => "client",
        "Im" => "both",
        "Ad" => "author of a card",
        "Bd" => "author of a binding",
        "Xt" => "author of an extension",
        "-" => "the specification",
        _ => return None,
    })
}

fn verdict_of(remark: &str) -> Option<Verdict> {
    if remark.is_empty() {
        return Some(Verdict::Shown);
    }
    let (word, why) = remark.split_once(": ")?;
    Some(match word {
        "part" => Verdict::Part(why.to_owned()),
        "open" => Verdict::Open(why.to_owned()),
        "n/a" => Verdict::NotApplicable(why.to_owned()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of one checklist may be called like a line of another.
    #[test]
    fn a_checklist_gives_its_own_lines_and_their_cases() {
        let text = "number\tsentence\tcases\n6\tAnswers\tV1-A-001 V1-A-002\n7\tDocuments\t- not on the wire\n\
                    T-02\tCard\tV1-B-001\n2.2\tMembers\tV03-C-001\n287\tToo far\tV1-B-001\na1\tHTTP\tV03-A-001\n";
        let [v1, v0_3, _] = &CHECKLISTS;
        let known = v1.parse(text).unwrap();
        assert_eq!(known.keys().collect::<Vec<_>>(), ["6", "7"]);
        assert_eq!(known["6"], ("Answers".to_owned(), vec!["V1-A-001".to_owned(), "V1-A-002".to_owned()]));
        assert!(known["7"].1.is_empty());
        assert_eq!(v0_3.parse(text).unwrap().keys().collect::<Vec<_>>(), ["a1"]);
        let error = v1.parse("number\n6\tAnswers\n").unwrap_err();
        assert!(error.starts_with("crates/baton-lab/suites/checklist-v1.tsv:2: not "), "{error}");
    }

    /// Every number once and in order, each with a level, somebody it binds, and a verdict.
    #[test]
    fn bad_rows_are_named() {
        let known = || {
            CHECKLISTS
                .iter()
                .flat_map(Checklist::numbers)
                .map(|number| (number, ("It does".to_owned(), Vec::new())))
                .collect::<Known>()
        };
        let row = |number: &str, rest: &str| format!("{number}\t{rest}\n");
        let good = "M\tSv\tall\tone two\tpart: the rest";
        let of = |rows: &str| join(&format!("head\n{rows}"), &mut known()).unwrap_err();
        assert!(of(&row("2", good)).contains(":2: the numbers are not those"), "{}", of(&row("2", good)));
        assert!(of(&row("1", good)).contains("line 2 is missing"));
        assert!(of(&row("1", "X\tSv\tall\t\t")).contains("the level is"));
        assert!(of(&row("1", "M\tMe\tall\t\t")).contains("nobody is called so"));
        assert!(of(&row("1", "M\tSv\tall\t\tmaybe")).contains("the remark is"));
        assert!(of(&row("1", "M\tSv\tall")).contains(":2: not `number"));
        let all: String =
            CHECKLISTS.iter().flat_map(Checklist::numbers).map(|number| row(&number, good)).collect();
        let lines = join(&format!("head\n{all}"), &mut known()).unwrap();
        assert_eq!((lines.len(), lines[0].level, lines[0].who), (337, "MUST", "server"));
        assert_eq!(lines[0].tests, ["one", "two"]);
        assert_eq!(lines[0].verdict, Verdict::Part("the rest".to_owned()));
        assert!(of(&(all + &row("b17", good))).contains("the numbers are not those"));
    }

    #[test]
    fn the_ledger_has_every_line_of_the_checklists() {
        let mut known = Known::new();
        for (checklist, text) in CHECKLISTS.iter().zip([
            include_str!("../../../crates/baton-lab/suites/checklist-v1.tsv"),
            include_str!("../../../crates/baton-lab/suites/checklist-v0_3.tsv"),
            include_str!("../../../crates/baton-lab/suites/checklist-v0_1.tsv"),
        ]) {
            known.extend(checklist.parse(text).unwrap());
        }
        let lines = join(include_str!("../../../docs/conformance-ledger.tsv"), &mut known).unwrap();
        assert!(known.is_empty(), "{known:?}");
        for line in &lines {
            let judged = matches!(line.verdict, Verdict::Open(_) | Verdict::NotApplicable(_));
            let evidence = !line.tests.is_empty() || !line.cases.is_empty();
            assert!(judged || evidence, "line {} has neither evidence nor a verdict", line.number);
        }
    }
}
