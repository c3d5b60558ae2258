//! Each defect runs the cases of its section and a sample of the others: its own must fail, the others must not. With
//! `BATON_LAB_FULL` set (`cargo xtask lab-mutants` does that) each runs all cases, and the failures are written to the folder
//! that `BATON_LAB_RESULTS` names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use baton_lab::case::Verdict;
use baton_lab::generation::Binding;
use baton_lab::plan::Planned;
use futures_util::StreamExt as _;

use crate::defects;
use crate::mutant::profile::Profile;
use crate::trial::{self, CASES, Judged};

/// Defects at a time.
const AT_ONCE: usize = 6;

async fn prove(table: &str) {
    let full = std::env::var_os("BATON_LAB_FULL").is_some();
    let defects = defects::table(table).iter();
    let judged: Vec<Judged> = futures_util::stream::iter(defects)
        .map(|defect| trial::judge(defect, full))
        .buffered(AT_ONCE)
        .collect()
        .await;
    if let Some(folder) = std::env::var_os("BATON_LAB_RESULTS") {
        write_results(Path::new(&folder), table, &judged);
    }
    let mut report = String::new();
    for one in judged.iter().filter(|one| !one.problems.is_empty()) {
        writeln!(report, "{}: {}\n  {}", one.defect.name, one.defect.wrong, one.problems.join("\n  "))
            .unwrap();
    }
    assert!(report.is_empty(), "not as the table says:\n{report}");
}

/// One line per defect: name, what is wrong, who had to notice, who did, how much of it is not as the table says.
fn write_results(folder: &Path, table: &str, judged: &[Judged]) {
    let mut text = String::new();
    for one in judged {
        let failed: Vec<&str> = one.failed.iter().map(String::as_str).collect();
        let (must, did) = (one.defect.caught_by.join(" "), failed.join(" "));
        let problems = one.problems.len();
        writeln!(text, "{}\t{}\t{must}\t{did}\t{problems}", one.defect.name, one.defect.wrong).unwrap();
    }
    std::fs::write(folder.join(format!("{table}.tsv")), text).unwrap();
}

macro_rules! proofs {
    ($($table:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $table() {
            prove(stringify!($table)).await;
        })*

        #[test]
        fn every_table_is_proved() {
            let proved = [$(stringify!($table)),*];
            let tables: Vec<&str> = defects::TABLES.iter().map(|(name, _)| *name).collect();
            assert_eq!(proved.as_slice(), tables);
        }
    };
}

proofs! {
    two_agents,
    v0_1_agents,
    v0_1_streams,
    v0_1_tasks,
    v0_3_agents,
    v0_3_grpc,
    v0_3_jsonrpc,
    v0_3_push,
    v0_3_rest,
    v0_3_send,
    v0_3_streams,
    v1_cancel,
    v1_cards,
    v1_contexts,
    v1_data,
    v1_equivalence,
    v1_errors,
    v1_get,
    v1_grpc,
    v1_hostile,
    v1_jsonrpc,
    v1_lifecycle,
    v1_lists,
    v1_push,
    v1_rest,
    v1_security,
    v1_send,
    v1_streams,
    v1_subscribe,
}

#[test]
fn t02_t03_t04_t05_every_case_has_a_defect() {
    let known: BTreeSet<&str> = CASES.iter().map(|case| case.id()).collect();
    let caught: BTreeSet<&str> = defects::all().flat_map(|defect| defect.caught_by.iter().copied()).collect();
    let without: Vec<_> = known.difference(&caught).collect();
    assert!(without.is_empty(), "no defect makes these fail: {without:?}");
    let gone: Vec<_> = caught.difference(&known).collect();
    assert!(gone.is_empty(), "there are no such cases: {gone:?}");
}

#[test]
fn every_defect_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for defect in defects::all() {
        assert!(names.insert(defect.name), "{} is there twice", defect.name);
        let wrong = defect.faults.len() + defect.second.len();
        assert!(wrong > 0 && !defect.caught_by.is_empty(), "{}", defect.name);
        assert!(defect.wrong.ends_with('.'), "{}", defect.name);
    }
}

/// A case that only the wrong agents run proves nothing: each passes on the right one, in one form of it at least.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t09_the_right_agent_passes_with_push_and_without() {
    let mut passed: BTreeMap<String, bool> = BTreeMap::new();
    let mut wrong = Vec::new();
    let runs = Profile::ALL.map(|profile| {
        // The other bindings of those that speak gRPC are those of the open and the guarded one.
        let own = move |mut plan: Vec<Planned>| {
            plan.retain(|planned| !profile.speaks_grpc() || planned.binding == Binding::Grpc);
            plan
        };
        // A thread each: one would have to run thousands of cases.
        let here = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || (profile, here.block_on(trial::run(profile, None, own))))
    });
    for run in runs {
        let (profile, outcomes) = run.await.unwrap();
        for outcome in outcomes {
            let id = outcome.case.id().to_owned();
            match &outcome.verdict {
                Verdict::Pass if !outcome.crashed => {
                    passed.insert(id, true);
                }
                Verdict::Skip(_) | Verdict::Inconclusive(_) => {
                    passed.entry(id).or_insert(false);
                }
                other => wrong.push(format!("{profile:?} {id} ({}): {other:?}", outcome.binding)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let never: Vec<_> = passed.iter().filter(|(_, passed)| !**passed).map(|(id, _)| id).collect();
    assert!(never.is_empty(), "the right agent never gets to these: {never:?}");
}
