//! A checker that cannot fail shows nothing: here each rule is broken, one at a time, and must be the one that is named.

use super::checker::{Facts, Rule, violations};
use super::journal::Entry;
use super::stored::{Answer, Kind, Line, Stored, StoredTask};

const FACTS: Facts<'_> = Facts { rerunnable: &["again"], settled: true };

fn line(number: u64, kind: Kind) -> Line {
    let json = format!("event {number}");
    Line { number, kind, at: 1000 + number as i64, json }
}

fn status(number: u64, state: &str, terminal: bool) -> Line {
    line(number, Kind::Status { state: format!("TASK_STATE_{state}"), terminal })
}

/// m-1 has task t-1 of an agent that may not be run again; m-2 was answered without a task; t-3 had two attempts.
fn good() -> (Vec<Entry>, Stored) {
    let log = |message: &str| {
        vec![
            line(1, Kind::Message(message.to_owned())),
            line(2, Kind::Attempt(1)),
            status(3, "WORKING", false),
            line(4, Kind::Artifact),
            status(5, "COMPLETED", true),
        ]
    };
    let folded = Ok("Completed".to_owned());
    let mut again = log("m-3");
    again.splice(2..2, [line(3, Kind::Attempt(2))]);
    for (line, number) in again.iter_mut().zip(1..) {
        line.number = number;
    }
    let tasks = [
        ("t-1", StoredTask { agent: "once".to_owned(), version: 5, log: log("m-1"), folded: folded.clone() }),
        ("t-3", StoredTask { agent: "again".to_owned(), version: 6, log: again, folded }),
    ];
    let stored = Stored {
        tasks: tasks.into_iter().map(|(id, task)| (id.to_owned(), task)).collect(),
        records: vec![
            ("m-1".to_owned(), Answer::Task("t-1".to_owned())),
            ("m-2".to_owned(), Answer::Reply("r-2".to_owned())),
            ("m-3".to_owned(), Answer::Task("t-3".to_owned())),
        ],
    };
    let seen = |stream, number| Entry::Seen { stream, number, json: format!("event {number}") };
    let opened = |stream, after| Entry::Opened { stream, task: "t-1".to_owned(), after };
    let journal = vec![
        Entry::Sent { message: "m-1".to_owned() },
        Entry::Acked { message: "m-1".to_owned(), task: "t-1".to_owned() },
        Entry::Replied { message: "m-2".to_owned(), reply: "r-2".to_owned() },
        opened(1, 1),
        seen(1, 3),
        seen(1, 4),
        opened(2, 4),
        seen(2, 5),
        Entry::Closed { stream: 2 },
        Entry::Ended { task: "t-1".to_owned(), state: "TASK_STATE_COMPLETED".to_owned() },
        Entry::Began { task: "t-1".to_owned(), attempt: 1 },
        Entry::Began { task: "t-3".to_owned(), attempt: 1 },
        Entry::Began { task: "t-3".to_owned(), attempt: 2 },
    ];
    (journal, stored)
}

/// What is found when the good story is changed like this; each rule once.
fn broken(change: impl FnOnce(&mut Vec<Entry>, &mut Stored)) -> Vec<Rule> {
    let (mut journal, mut stored) = good();
    change(&mut journal, &mut stored);
    let mut rules: Vec<_> =
        violations(&journal, &stored, FACTS).into_iter().map(|violation| violation.rule).collect();
    rules.sort();
    rules.dedup();
    rules
}

fn task<'a>(stored: &'a mut Stored, id: &str) -> &'a mut StoredTask {
    stored.tasks.get_mut(id).unwrap()
}

#[test]
fn s06_a_good_story_passes() {
    assert_eq!(broken(|_, _| {}), []);
}

#[test]
fn s06_what_was_acknowledged_and_is_not_there_is_found() {
    let lost = broken(|journal, _| journal.push(Entry::Acked { message: "m-9".into(), task: "t-9".into() }));
    assert_eq!(lost, [Rule::AckedIsStored]);
    assert_eq!(broken(|_, stored| drop(stored.records.remove(0))), [Rule::AckedIsStored], "no record");
    assert_eq!(broken(|_, stored| drop(stored.records.remove(1))), [Rule::AckedIsStored], "no reply");
    let elsewhere = broken(|_, stored| stored.records[0].1 = Answer::Task("t-3".to_owned()));
    assert_eq!(elsewhere, [Rule::AckedIsStored]);
    let noted = broken(|journal, _| journal.push(Entry::Noted { message: "m-9".into(), task: "t-1".into() }));
    assert_eq!(noted, [Rule::AckedIsStored]);
    let unsaid = broken(|_, stored| {
        task(stored, "t-1").log[0].kind = Kind::Cancel;
    });
    assert_eq!(unsaid, [Rule::AckedIsStored]);
}

#[test]
fn s06_a_follow_up_that_is_not_in_the_log_is_found() {
    let note = |journal: &mut Vec<Entry>, stored: &mut Stored| {
        journal.push(Entry::Noted { message: "m-4".into(), task: "t-3".into() });
        stored.records.push(("m-4".to_owned(), Answer::Task("t-3".to_owned())));
    };
    assert_eq!(broken(note), [Rule::NotedIsInLog]);
    let written = broken(|journal, stored| {
        note(journal, stored);
        let task = task(stored, "t-3");
        let end = task.log.pop().unwrap();
        task.log.push(line(6, Kind::Message("m-4".to_owned())));
        task.log.push(Line { number: 7, ..end });
        task.version += 1;
    });
    assert_eq!(written, []);
}

#[test]
fn s06_a_message_with_two_tasks_is_found() {
    let told = broken(|journal, stored| {
        journal.push(Entry::Acked { message: "m-1".into(), task: "t-3".into() });
        task(stored, "t-3").log[0].kind = Kind::Message("m-1".to_owned());
    });
    assert!(told.contains(&Rule::OneTaskPerMessage), "{told:?}");
    let stored_twice = broken(|_, stored| {
        task(stored, "t-3").log[0].kind = Kind::Message("m-1".to_owned());
    });
    assert_eq!(stored_twice, [Rule::OneTaskPerMessage]);
    let replied = broken(|journal, _| {
        let entry = Entry::Replied { message: "m-2".into(), reply: "r-other".into() };
        journal.insert(0, entry);
    });
    assert_eq!(replied, [Rule::AckedIsStored, Rule::OneTaskPerMessage]);
}

#[test]
fn s06_a_log_with_a_gap_is_found() {
    // t-3 has no stream, so nothing but its log is wrong.
    let gap = broken(|_, stored| drop(task(stored, "t-3").log.remove(4)));
    assert_eq!(gap, [Rule::LogHasNoGap]);
    assert_eq!(
        broken(|_, stored| task(stored, "t-3").log[4].number = 4),
        [Rule::LogHasNoGap],
        "twice the same"
    );
    let unfoldable = broken(|_, stored| task(stored, "t-3").folded = Err("no".to_owned()));
    assert_eq!(unfoldable, [Rule::LogHasNoGap]);
    assert_eq!(
        broken(|_, stored| task(stored, "t-3").log[5].at = 0),
        [Rule::LogHasNoGap],
        "time runs backwards"
    );
}

#[test]
fn s06_a_stream_that_differs_from_the_log_is_found() {
    let differs = [Rule::StreamIsTheLog];
    assert_eq!(broken(|journal, _| drop(journal.remove(5))), [], "cut earlier: a stream may break off");
    assert_eq!(broken(|journal, _| drop(journal.remove(4))), differs, "an event is left out");
    assert_eq!(broken(|journal, _| journal.swap(4, 5)), differs, "out of order");
    assert_eq!(broken(|journal, _| journal.insert(5, journal[4].clone())), differs, "shown twice");
    assert_eq!(broken(|journal, _| drop(journal.remove(7))), differs, "ended without the end");
    let content = broken(|journal, _| {
        journal[4] = Entry::Seen { stream: 1, number: 3, json: "something else".to_owned() };
    });
    assert_eq!(content, differs);
    let invented =
        broken(|journal, _| journal.push(Entry::Seen { stream: 2, number: 6, json: String::new() }));
    assert_eq!(invented, differs);
    let internal = broken(|journal, _| {
        journal[3] = Entry::Opened { stream: 1, task: "t-1".to_owned(), after: 0 };
        journal.insert(4, Entry::Seen { stream: 1, number: 1, json: "event 1".to_owned() });
    });
    assert_eq!(internal, differs, "a user message has no frame");
}

#[test]
fn s06_attempts_that_overlap_are_found() {
    let overlap = [Rule::AttemptsDoNotOverlap];
    let marked = broken(|journal, _| journal.push(Entry::Overlapped { task: "t-3".into(), attempt: 2 }));
    assert_eq!(marked, overlap);
    let twice = broken(|journal, _| journal.push(Entry::Began { task: "t-3".into(), attempt: 2 }));
    assert_eq!(twice, overlap);
    assert_eq!(broken(|_, stored| task(stored, "t-3").log[2].kind = Kind::Attempt(1)), overlap);
    assert_eq!(broken(|_, stored| task(stored, "t-3").log[2].kind = Kind::Attempt(3)), overlap);
}

#[test]
fn s06_a_second_attempt_of_an_agent_that_may_have_one_only_is_found() {
    let second = broken(|_, stored| task(stored, "t-3").agent = "once".to_owned());
    assert_eq!(second, [Rule::OneAttemptUnlessRerunnable]);
    let next_turn = broken(|_, stored| {
        let task = task(stored, "t-3");
        task.agent = "once".to_owned();
        task.log.insert(2, line(3, Kind::Message("m-4".to_owned())));
        for (line, number) in task.log.iter_mut().zip(1..) {
            line.number = number;
            line.at = number as i64;
        }
        task.version += 1;
    });
    assert_eq!(next_turn, [], "another message is another turn");
}

#[test]
fn s06_an_end_that_is_none_or_one_of_two_is_found() {
    let no_end = broken(|_, stored| {
        let task = task(stored, "t-3");
        task.log.pop();
        task.version -= 1;
    });
    assert_eq!(no_end, [Rule::OneEnd]);
    let two = broken(|_, stored| {
        let task = task(stored, "t-3");
        task.log.push(status(7, "FAILED", true));
        task.version += 1;
    });
    assert_eq!(two, [Rule::OneEnd]);
    let told_otherwise = broken(|journal, _| {
        journal.push(Entry::Ended { task: "t-3".into(), state: "TASK_STATE_FAILED".into() });
    });
    assert_eq!(told_otherwise, [Rule::OneEnd]);
}
