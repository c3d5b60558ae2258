//! Which tests show which requirement.

use std::collections::{BTreeMap, BTreeSet};

use crate::interop::checks::{Verdict, verdicts};

/// A row of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Without the prefix `A2ACLI_`.
    pub id: String,
    pub tier: usize,
    /// Sections of the specification.
    pub spec: String,
    pub text: String,
    pub note: Option<String>,
    /// Not met, and known not to be; the note says why.
    pub is_open: bool,
}

impl Requirement {
    pub fn area(&self) -> &str {
        self.id.rsplit_once('_').map_or("", |(area, _)| area)
    }
}

/// `ID<TAB>tier<TAB>sections<TAB>requirement[<TAB>note]`. A note that begins with `open: ` says why it is not met.
pub fn parse_registry(registry: &str, name: &str) -> Result<Vec<Requirement>, String> {
    let rows = registry.lines().enumerate().filter(|(_, line)| !line.is_empty());
    rows.map(|(number, line)| match *line.split('\t').collect::<Vec<_>>() {
        [id, tier @ ("1" | "2" | "3"), spec, text, ref note @ ..]
            if note.len() <= 1 && number_of(id).is_some() =>
        {
            let note = note.first().map(|note| (*note).to_owned());
            let (is_open, note) = match note.as_deref().and_then(|note| note.strip_prefix("open: ")) {
                Some(reason) => (true, Some(reason.to_owned())),
                None => (false, note),
            };
            let (spec, text) = (spec.to_owned(), text.to_owned());
            let tier = tier.parse().map_err(|_| format!("{name}: a tier is a number"))?;
            Ok(Requirement { id: id.to_owned(), tier, spec, text, note, is_open })
        }
        _ => Err(format!(
            "{name}:{}: not `AREA_000<TAB>tier<TAB>sections<TAB>requirement[<TAB>note]`",
            number + 1
        )),
    })
    .collect()
}

fn number_of(id: &str) -> Option<&str> {
    let (_, number) = id.rsplit_once('_')?;
    (number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// The tests that ran and passed, by requirement.
#[derive(Debug, Default)]
pub struct Evidence {
    by_id: BTreeMap<String, BTreeSet<String>>,
    /// Requirements that the program itself was seen to meet, with an agent at a socket: unit tests alone are not enough.
    live: BTreeSet<String>,
    /// The names of all tests that are evidence for anything.
    names: Vec<String>,
}

/// The test binary that runs the program.
const LIVE: &str = "baton::it ";

impl Evidence {
    /// `tests` are `binary test`; `checks` the output of the commands with agents of other SDKs.
    pub fn collect(
        requirements: &[Requirement],
        tests: &[String],
        checks: &[(String, String)],
    ) -> Result<Self, String> {
        let mut evidence = Evidence::default();
        let areas: BTreeSet<String> = requirements.iter().map(|it| it.area().to_ascii_lowercase()).collect();
        let mut add = |name: &str, shown: &str, is_live: bool| -> Result<(), String> {
            for id in ids(name, &areas) {
                if !requirements.iter().any(|requirement| requirement.id == id) {
                    return Err(format!("{shown}: the registry has no {id}"));
                }
                evidence.by_id.entry(id.clone()).or_default().insert(shown.to_owned());
                if is_live {
                    evidence.live.insert(id);
                }
            }
            evidence.names.push(name.to_owned());
            Ok(())
        };
        for test in tests {
            add(test, test, test.starts_with(LIVE))?;
        }
        let mut passed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (suite, output) in checks {
            for (check, verdict) in verdicts(output) {
                if verdict == Verdict::Passed {
                    passed.entry(check).or_default().push(suite);
                }
            }
        }
        for (check, mut suites) in passed {
            suites.sort_unstable();
            add(check, &format!("{check} with {}", suites.join(", ")), true)?;
        }
        Ok(evidence)
    }

    pub fn of(&self, id: &str) -> impl Iterator<Item = &str> {
        self.by_id.get(id).into_iter().flatten().map(String::as_str)
    }

    pub fn is_shown(&self, id: &str) -> bool {
        self.live.contains(id)
    }

    /// Whether a test whose name has these words passed.
    pub fn names(&self, words: &str) -> bool {
        self.names.iter().any(|name| name.contains(words))
    }
}

/// The ids in a test's name: `cli_` at the start of a segment, then areas with their numbers (`cli_tx_003_ver_001_x`).
fn ids(name: &str, areas: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in name.match_indices("cli_") {
        if at > 0 && !matches!(name.as_bytes()[at - 1], b'_' | b':' | b' ') {
            continue;
        }
        let mut rest = &name[at + "cli_".len()..];
        // The longest area that fits: `task_get` before `task`.
        while let Some(area) =
            areas.iter().filter(|area| numbered(rest, area).is_some()).max_by_key(|area| area.len())
        {
            rest = rest.get(area.len() + 1..).unwrap_or_default();
            // Several numbers of one area may follow each other: `cli_tx_001_002_x`.
            while let Some((number, after)) = leading_number(rest) {
                found.insert(format!("{}_{number}", area.to_ascii_uppercase()));
                rest = after;
            }
        }
    }
    found
}

/// `area_000_` at the start: the number, and what follows.
fn numbered<'a>(text: &'a str, area: &str) -> Option<(&'a str, &'a str)> {
    leading_number(text.strip_prefix(area)?.strip_prefix('_')?)
}

/// `000_` at the start: the number, and what follows.
fn leading_number(text: &str) -> Option<(&str, &str)> {
    let (number, rest) = text.split_once('_')?;
    (number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> Vec<Requirement> {
        let text = "SEND_001\t1\t§1\tsends\nTASK_GET_001\t1\t§2\tgets\tthe rest\nTX_001\t2\t§3\tone\nTX_002\t2\t§3\ttwo\n\
                    PUSH_002\t3\t§4\treceives\topen: not built\n";
        parse_registry(text, "r").unwrap()
    }

    #[test]
    fn ids_are_areas_with_numbers_behind_cli() {
        let areas: BTreeSet<String> =
            registry().iter().map(|it| it.area().to_ascii_lowercase()).chain(["task".to_owned()]).collect();
        let found = |name: &str| ids(name, &areas).into_iter().collect::<Vec<_>>();
        assert_eq!(found("baton::it cli::send::p09_cli_send_001_opens"), ["SEND_001"]);
        assert_eq!(found("cli_tx_001_002_order"), ["TX_001", "TX_002"]);
        assert_eq!(found("p09_cli_tx_002_send_001_task_get_001_x"), ["SEND_001", "TASK_GET_001", "TX_002"]);
        assert_eq!(found("p09_cli_send_9_x p09_click_send_001_x cli_send_001"), Vec::<String>::new());
    }

    #[test]
    fn evidence_is_what_passed_and_ran_the_program() {
        let tests =
            ["baton::it cli::p09_cli_send_001_a", "baton::bin/baton x::cli_tx_001_b"].map(str::to_owned);
        let checks = [
            ("js JSON-RPC".to_owned(), "ok p09_cli_task_get_001_c\nFAIL p09_cli_tx_001_d: no\n".to_owned()),
            ("python JSON-RPC".to_owned(), "ok p09_cli_task_get_001_c\n".to_owned()),
        ];
        let evidence = Evidence::collect(&registry(), &tests, &checks).unwrap();
        assert!(evidence.is_shown("SEND_001") && evidence.is_shown("TASK_GET_001"));
        assert!(!evidence.is_shown("TX_001"), "a unit test alone is not enough");
        let shown: Vec<&str> = evidence.of("TASK_GET_001").collect();
        assert_eq!(shown, ["p09_cli_task_get_001_c with js JSON-RPC, python JSON-RPC"]);
        let unknown = ["baton::it p09_cli_send_009_x".to_owned()];
        assert!(
            Evidence::collect(&registry(), &unknown, &[])
                .unwrap_err()
                .contains("the registry has no SEND_009")
        );
    }

    #[test]
    fn a_bad_row_is_named() {
        assert!(parse_registry("SEND_001\t4\tx\ty\n", "r").unwrap_err().starts_with("r:1: not "));
        assert!(parse_registry("SEND_1\t1\tx\ty\n", "r").is_err());
    }

    #[test]
    fn the_registry_is_whole() {
        let all = parse_registry(include_str!("../../../docs/cli-requirements.tsv"), "r").unwrap();
        let count = |tier| all.iter().filter(|it| it.tier == tier).count();
        assert_eq!((count(1), count(2), count(3)), (39, 15, 12));
        let ids: BTreeSet<&str> = all.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids.len(), 66);
        let open: Vec<&str> = all.iter().filter(|it| it.is_open).map(|it| it.id.as_str()).collect();
        assert_eq!(open, Vec::<&str>::new());
    }
}
