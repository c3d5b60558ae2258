//! A checker that cannot fail shows nothing: here each rule is broken, one at a time, and must be the one that is named.

use std::collections::BTreeMap;

use baton_protocol::Generation;

use super::checker::{Counts, Entry, Hook, Rule, Since, violations};
use super::told::{TaskLog, Told, hash};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Taken,
    Failed,
    /// The server is killed before the answer.
    Cut,
    /// The answer comes after the next call.
    Late,
}

/// A call: webhook, life, id, body.
#[derive(Debug, Clone)]
struct Step(u64, u64, String, String, End);

/// `id` is the event's number; with a `w`, the whole task as of it.
fn step(hook: u64, life: u64, event: &str, end: End) -> Step {
    let body = match (event.strip_prefix('w'), hook) {
        (Some(number), _) => format!("task {number}"),
        // 0.3 gets the whole task in any case.
        (None, 1) => format!("task {event}"),
        (None, 0 | 3..) if event == "1" => "task 1".to_owned(),
        (None, _) => format!("event {event}"),
    };
    Step(hook, life, format!("{hook}-{event}"), body, end)
}

/// One task: its message, an attempt, a state, an artifact, its end.
fn logs() -> BTreeMap<String, TaskLog> {
    let of = |text: &str| hash(text.as_bytes());
    let event = |number: u64| (number, of(&format!("event {number}")));
    let as_of = ["task 1", "task 1", "task 3", "task 4", "task 5"].map(of).to_vec();
    let told = |due: Vec<(u64, u64)>| Told { due: due.into_iter().collect(), as_of: as_of.clone() };
    let v1 = told(vec![(1, of("task 1")), event(3), event(4), event(5)]);
    let v0_3 = told((3..=5).map(|number| (number, of(&format!("task {number}")))).collect());
    let v0_1 = Told { as_of: Vec::new(), ..told(vec![event(3), event(4), event(5)]) };
    let log = TaskLog {
        at: vec![100, 200, 300, 400, 500],
        messages: [("m-1".to_owned(), 1)].into(),
        told: [(Generation::V1, v1), (Generation::V0_3, v0_3), (Generation::V0_1, v0_1)].into(),
    };
    // An attempt that is killed after its artifact, and another one that makes the same.
    let as_of = ["task 1", "task 1", "task 3", "task 4", "task 4", "task 4", "task 7"].map(of).to_vec();
    let due = [(1, of("task 1")), event(3), event(4), (6, of("event 4")), event(7)].into();
    let told = [(Generation::V1, Told { due, as_of })].into();
    let again = TaskLog { at: vec![100; 7], messages: BTreeMap::new(), told };
    [("t-1".to_owned(), log), ("t-2".to_owned(), again)].into()
}

fn hooks() -> BTreeMap<u64, Hook> {
    let hook = |generation, since| Hook { task: "t-1".to_owned(), generation, since };
    let message = Since::Message("m-1".to_owned());
    [
        (0, hook(Generation::V1, Some(Since::Birth))),
        (1, hook(Generation::V0_3, Some(Since::Birth))),
        (2, hook(Generation::V0_1, Some(Since::Birth))),
        (3, hook(Generation::V1, Some(Since::Time(350)))),
        (4, hook(Generation::V1, None)),
        (5, hook(Generation::V1, Some(message))),
        (6, Hook { task: "t-2".to_owned(), ..hook(Generation::V1, None) }),
    ]
    .into()
}

/// 0 is killed in the middle of 4, before 3 was stored as done. 1 gets the end of the task in place of 3 and 4, 2 is removed.
/// 3 was created between 3 and 4. Nobody was told that 4 exists. 5 came with a message.
fn good() -> Vec<Step> {
    use End::{Cut, Failed, Taken};
    let calls = |hook, events: &[(u64, &str, End)]| -> Vec<Step> {
        events.iter().map(|(life, event, end)| step(hook, *life, event, *end)).collect()
    };
    let each = |hook, events: &[&str]| -> Vec<Step> {
        events.iter().map(|event| step(hook, 2, event, Taken)).collect()
    };
    [
        calls(0, &[(1, "1", Taken), (1, "3", Taken), (1, "4", Cut)]),
        calls(0, &[(2, "3", Taken), (2, "4", Taken), (2, "5", Failed), (2, "5", Taken)]),
        calls(1, &[(1, "3", Failed), (1, "3", Failed), (2, "3", Failed), (2, "5", Taken)]),
        calls(2, &[(1, "3", Taken)]),
        vec![step(2, 1, "4", Failed); 4],
        each(3, &["4", "5"]),
        each(4, &["5"]),
        each(5, &["3", "4", "5"]),
    ]
    .concat()
}

fn entries(steps: &[Step]) -> Vec<Entry> {
    let (mut entries, mut late) = (Vec::new(), None);
    for (call, Step(hook, life, id, body, end)) in (1..).zip(steps) {
        let body = body.clone().into_bytes().into();
        entries.push(Entry::Called { call, hook: *hook, life: *life, id: id.clone(), body, signed: Ok(()) });
        if let Some(call) = late.take() {
            entries.extend([Entry::Over { call, fails: false }, Entry::Accepted { call }]);
        }
        match end {
            End::Taken => entries.extend([Entry::Over { call, fails: false }, Entry::Accepted { call }]),
            End::Failed => entries.push(Entry::Over { call, fails: true }),
            End::Cut => {}
            End::Late => late = Some(call),
        }
    }
    entries
}

/// What is found when the good story is changed like this; each rule once.
fn broken(change: impl FnOnce(&mut Vec<Step>)) -> Vec<Rule> {
    let mut steps = good();
    change(&mut steps);
    rules(&entries(&steps))
}

fn rules(entries: &[Entry]) -> Vec<Rule> {
    let (found, _) = violations(&hooks(), entries, &logs());
    let mut rules: Vec<_> = found.into_iter().map(|violation| violation.rule).collect();
    rules.sort();
    rules.dedup();
    rules
}

/// The place of a webhook's n-th call.
fn at(steps: &[Step], hook: u64, nth: usize) -> usize {
    steps.iter().enumerate().filter(|(_, step)| step.0 == hook).nth(nth).unwrap().0
}

#[test]
fn s14_a_good_story_of_webhooks_passes() {
    let (found, counts) = violations(&hooks(), &entries(&good()), &logs());
    assert_eq!(found, []);
    let expected = Counts { due: 16, repeats: 1, repeats_of_one_life: 0, skips: 1, given_up: 0, removed: 1 };
    assert_eq!(counts, expected);
}

#[test]
fn s14_an_event_that_was_never_taken_is_found() {
    let lost = [Rule::EveryEvent];
    assert_eq!(broken(|steps| drop(steps.pop())), lost, "the end");
    assert_eq!(broken(|steps| steps.retain(|step| step.0 != 3)), lost, "all");
    assert_eq!(broken(|steps| steps.retain(|step| step.0 != 4)), [], "nobody knows that one");
    assert_eq!(broken(|steps| steps.last_mut().unwrap().4 = End::Failed), lost, "a failure is no delivery");
    assert_eq!(broken(|steps| steps.last_mut().unwrap().4 = End::Cut), lost, "nor is a call that was cut");
    let first = broken(|steps| drop(steps.remove(at(steps, 5, 0))));
    assert_eq!(first, lost, "what follows the message that it came with");
    let created = broken(|steps| drop(steps.remove(at(steps, 3, 0))));
    assert_eq!(created, lost, "what follows its creation");
    let first = broken(|steps| drop(steps.remove(at(steps, 0, 0))));
    assert_eq!(first, [Rule::EveryEvent, Rule::InOrder], "what it came with, and then it comes too soon");
    let middle = broken(|steps| drop(steps.remove(at(steps, 5, 1))));
    assert_eq!(middle, [Rule::EveryEvent, Rule::InOrder], "one is left out");
}

#[test]
fn s14_giving_up_too_soon_is_found() {
    assert_eq!(broken(|steps| drop(steps.remove(at(steps, 2, 4)))), [Rule::EveryEvent], "three of four");
    let ends = |failures: usize| {
        broken(|steps| {
            steps.pop();
            steps.extend(vec![step(5, 2, "5", End::Failed); failures]);
        })
    };
    assert_eq!((ends(9), ends(10)), (vec![Rule::EveryEvent], vec![]), "ten attempts in 1.0");
    let other = broken(|steps| {
        let place = at(steps, 5, 2);
        steps.splice(place.., vec![step(5, 2, "4", End::Failed); 10]);
    });
    assert_eq!(other, [], "an event may fail after it was taken, if the process that knew is dead");
}

#[test]
fn s14_events_out_of_order_are_found() {
    let swapped = broken(|steps| {
        let (one, other) = (at(steps, 5, 1), at(steps, 5, 2));
        steps.swap(one, other);
    });
    assert_eq!(swapped, [Rule::InOrder]);
    assert_eq!(broken(|steps| steps.push(step(5, 3, "3", End::Taken))), [], "a repeat is in no order");
    let too_soon = broken(|steps| {
        let place = at(steps, 5, 0);
        steps.insert(place, step(5, 1, "3", End::Failed));
        steps.swap(place + 1, place + 2);
    });
    assert_eq!(too_soon, [Rule::InOrder], "the next one comes when the last one is done");
}

#[test]
fn s14_a_whole_task_that_comes_too_soon_is_found() {
    let early = broken(|steps| drop(steps.remove(at(steps, 1, 0))));
    assert_eq!(early, [Rule::SkipsAfterThreeFailures]);
    let covers = broken(|steps| {
        let place = at(steps, 5, 0);
        let whole = [step(5, 2, "w4", End::Taken)];
        steps.splice(place..place + 2, vec![step(5, 2, "3", End::Failed); 3].into_iter().chain(whole));
    });
    assert_eq!(covers, [], "in 1.0, too");
    let next = broken(|steps| {
        let place = at(steps, 1, 3);
        steps.splice(place.., [step(1, 2, "4", End::Taken), step(1, 2, "5", End::Taken)]);
        steps.extend(good().into_iter().filter(|step| step.0 > 1));
    });
    assert_eq!(next, [], "in 0.3 every event shows the task, the next one as well");
    let status = broken(|steps| {
        let place = at(steps, 2, 4);
        steps[place] = step(2, 1, "5", End::Taken);
    });
    assert_eq!(status, [Rule::EveryEvent, Rule::InOrder], "in 0.1 nothing stands for another event");
    let not_all = broken(|steps| {
        let place = at(steps, 5, 0);
        let whole = [step(5, 2, "w4", End::Taken)];
        steps.splice(place.., vec![step(5, 2, "3", End::Failed); 3].into_iter().chain(whole));
    });
    assert_eq!(not_all, [Rule::EveryEvent], "what comes after it is still due");
}

#[test]
fn s14_bodies_and_ids_that_do_not_belong_together_are_found() {
    let with = |change: fn(&mut Step)| broken(|steps| change(steps.last_mut().unwrap()));
    assert_eq!(with(|step| step.3 = "x".to_owned()), [Rule::EveryEvent, Rule::IsOfTheLog]);
    let other_bytes = broken(|steps| {
        let place = at(steps, 0, 6);
        steps[place].3 = "event 5 ".to_owned();
    });
    assert_eq!(other_bytes, [Rule::OneBodyPerId]);
    let whole_with_its_id = broken(|steps| {
        steps.pop();
        steps.extend(vec![step(5, 2, "5", End::Failed); 3]);
        steps.push(Step(5, 2, "5-5".to_owned(), "task 5".to_owned(), End::Taken));
    });
    assert_eq!(whole_with_its_id, [Rule::OneBodyPerId], "as when the last event fails thrice");
    let foreign = with(|step| step.2 = "0-5".to_owned());
    assert_eq!(foreign, [Rule::OneBodyPerId]);
    assert_eq!(
        broken(|steps| steps.push(Step(5, 3, "x".to_owned(), "event 4".to_owned(), End::Taken))),
        [Rule::OneIdPerEvent]
    );
}

#[test]
fn s14_equal_events_are_told_apart_by_what_follows() {
    let took = |events: &[&str]| {
        broken(|steps| {
            steps.extend(["1", "3"].map(|event| step(6, 2, event, End::Taken)));
            steps.extend(vec![step(6, 2, "4", End::Failed); 3]);
            steps.push(step(6, 2, "w4", End::Taken));
            steps.extend(events.iter().map(|event| step(6, 2, event, End::Taken)));
            steps.iter_mut().filter(|step| step.2 == "6-6").for_each(|step| step.3 = "event 4".to_owned());
        })
    };
    assert_eq!(took(&["6", "7"]), [], "the task was that before the second artifact");
    assert_eq!(took(&["7"]), [], "the task was that after it");
    assert_eq!(took(&["7", "6"]), [Rule::InOrder]);
}

#[test]
fn s14_two_calls_at_a_time_are_found() {
    let late = |hook, nth| broken(|steps| steps[at(&good(), hook, nth)].4 = End::Late);
    assert_eq!(late(5, 0), [Rule::OneCallAtATime]);
    assert_eq!(late(3, 1), [], "another webhook's call may come");
    assert_eq!(late(0, 2), [], "and that of the next process");
}

#[test]
fn s14_a_wrong_signature_is_found() {
    let mut entries = entries(&good());
    let Some(Entry::Called { signed, .. }) = entries.first_mut() else { panic!("the first is a call") };
    *signed = Err("none of its signatures is by a known secret".to_owned());
    assert_eq!(rules(&entries), [Rule::Signed]);
}
