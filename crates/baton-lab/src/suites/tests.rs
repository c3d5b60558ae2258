//! Our own suites are complete: every case has its descriptions, every check is used, every line of the specification's
//! checklist has a case or a reason.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::native;

/// One generation's checklist: number, sentence, case ids or `- ` and the reason why there are none.
struct Checklist {
    /// The prefix of its case ids.
    ids: &'static str,
    /// The prefix of its numbers, and how many there are.
    letter: &'static str,
    lines: u32,
    text: &'static str,
}

const CHECKLISTS: [Checklist; 3] = [
    Checklist { ids: "V1-", letter: "", lines: 286, text: include_str!("../../suites/checklist-v1.tsv") },
    Checklist { ids: "V03-", letter: "a", lines: 35, text: include_str!("../../suites/checklist-v0_3.tsv") },
    Checklist { ids: "V01-", letter: "b", lines: 16, text: include_str!("../../suites/checklist-v0_1.tsv") },
];

fn cases() -> Vec<Arc<Case>> {
    embedded().unwrap()
}

#[test]
fn every_case_says_what_it_is_about() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        let (id, test) = (case.id(), &case.test);
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
        for (name, member) in [
            ("section", &test.section),
            ("requirement", &test.requirement),
            ("remedy", &test.remedy),
            ("category", &test.category),
        ] {
            assert!(member.as_ref().is_some_and(|text| !text.is_empty()), "{id} has no {name}");
        }
        for text in [&test.requirement, &test.remedy].into_iter().flatten() {
            assert!(text.ends_with('.'), "{id}: {text:?} is no sentence");
        }
        if let Some(check) = &test.native {
            assert!(native::find(check).is_some(), "{id}: no check is called {check}");
        }
    }
}

/// Without them the level *minimal* would require nothing of a generation.
#[test]
fn every_generation_has_a_send_and_a_read_that_are_basic() {
    for generation in Generation::ALL {
        let cases = cases();
        let basic = cases
            .iter()
            .filter(|case| case.generation == generation && case.test.tags.iter().any(|tag| tag == "basic"));
        assert_eq!(basic.count(), 2, "{generation}");
    }
}

#[test]
fn every_check_is_used() {
    let cases = cases();
    let used: BTreeSet<&str> = cases.iter().filter_map(|case| case.test.native.as_deref()).collect();
    let idle: Vec<&str> =
        native::names().filter(|name| name.starts_with('v') && !used.contains(name)).collect();
    assert!(idle.is_empty(), "no case uses {idle:?}");
}

#[test]
fn every_line_of_a_checklist_has_a_case_or_a_reason() {
    let cases = cases();
    let known: BTreeSet<&str> = cases.iter().map(|case| case.id()).collect();
    for checklist in &CHECKLISTS {
        check(checklist, &known);
    }
    let strays: Vec<_> =
        known.iter().filter(|id| !CHECKLISTS.iter().any(|list| id.starts_with(list.ids))).collect();
    assert!(strays.is_empty(), "{strays:?} belong to no generation");
}

fn check(checklist: &Checklist, known: &BTreeSet<&str>) {
    let Checklist { ids, letter, lines: count, text } = checklist;
    let mut lines = BTreeMap::new();
    let mut named = BTreeSet::new();
    for line in text.lines().skip(1) {
        let [number, sentence, cases] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line:?}");
        };
        assert!(!sentence.is_empty(), "{number} says nothing");
        assert!(lines.insert(number, cases).is_none(), "{number} is there twice");
        if let Some(reason) = cases.strip_prefix("- ") {
            assert!(reason.len() > 5, "{number} has neither a case nor a reason");
            continue;
        }
        for id in cases.split(' ') {
            assert!(known.contains(id), "{number}: there is no case {id:?}");
            named.insert(id);
        }
    }
    let numbers = (1..=*count).map(|number| format!("{letter}{number}"));
    let missing: Vec<String> = numbers.filter(|number| !lines.contains_key(number.as_str())).collect();
    assert!(missing.is_empty(), "lines {missing:?} are not in the table");
    let unnamed: Vec<_> = known.iter().filter(|id| id.starts_with(ids) && !named.contains(*id)).collect();
    assert!(unnamed.is_empty(), "{unnamed:?} are on no line");
}
