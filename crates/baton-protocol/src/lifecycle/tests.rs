//! What may follow what, and what a task becomes by it.

use super::*;
use crate::domain::{Artifact, MessageId, Part, Role};

fn time(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

fn begin() -> Snapshot {
    Snapshot::begin(TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap(), time(0))
}

fn status(state: TaskState) -> EventBody {
    EventBody::Status(StatusUpdate { state, message: None, metadata: None })
}

fn said(state: TaskState, text: &str) -> EventBody {
    EventBody::Status(StatusUpdate { state, message: Some(message(Role::Agent, text)), metadata: None })
}

fn message(role: Role, text: &str) -> Message {
    Message::new(MessageId::parse(text).unwrap(), role, vec![Part::text(text)])
}

fn chunk(id: &str, text: &str, append: bool, last_chunk: bool, ordinal: u32) -> EventBody {
    let artifact = Artifact::new(ArtifactId::parse(id).unwrap(), vec![Part::text(text)]);
    EventBody::Artifact(ArtifactUpdate {
        artifact,
        append,
        joins: false,
        last_chunk,
        ordinal,
        metadata: None,
    })
}

fn fold(bodies: impl IntoIterator<Item = EventBody>) -> Result<Snapshot, Refused> {
    let mut snapshot = begin();
    for (n, body) in (1..).zip(bodies) {
        snapshot.apply(Event { number: n, at: time(n as i64), body })?;
    }
    Ok(snapshot)
}

fn texts(artifact: &Artifact) -> Vec<&Part> {
    artifact.parts.iter().collect()
}

/// The seeds' table, row by row, plus `rejected` and `auth-required`.
#[test]
fn s05_transition_table() {
    use TaskState::*;
    let table = [
        (Submitted, vec![Working, Failed, Canceled, Rejected]),
        (Working, vec![Working, Completed, Failed, Canceled, InputRequired, AuthRequired, Rejected]),
        (InputRequired, vec![Working, Failed, Canceled]),
        (AuthRequired, vec![Working, Failed, Canceled]),
        (Completed, vec![]),
        (Failed, vec![]),
        (Canceled, vec![]),
        (Rejected, vec![]),
    ];
    assert_eq!(table.len(), TaskState::ALL.len());
    for (from, allowed) in table {
        for to in TaskState::ALL {
            assert_eq!(may_follow(from, to), allowed.contains(&to), "{from:?} -> {to:?}");
        }
    }
}

#[test]
fn s04_every_state_is_reached_and_numbered_apart() {
    use TaskState::*;
    for state in TaskState::ALL {
        assert_eq!(TaskState::from_number(state.number()), Some(state));
        if !matches!(state, Submitted | Working) {
            assert_eq!(fold([status(Working), status(state)]).unwrap().state(), state);
        }
    }
    assert_eq!(begin().state(), Submitted);
}

#[test]
fn s05_an_ended_task_takes_nothing() {
    for end in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let ended = fold([status(TaskState::Working), status(end)]).unwrap();
        for body in [
            status(TaskState::Working),
            status(end),
            chunk("a", "x", false, false, 0),
            EventBody::said(message(Role::User, "more")),
            EventBody::AttemptStarted { attempt: 2, skill: None },
            EventBody::CancelRequested { metadata: None },
        ] {
            assert_eq!(ended.check(&body), Err(Refused::Ended(end)), "{body:?}");
        }
    }
}

#[test]
fn s07_every_change_of_state_is_kept_with_its_time() {
    use TaskState::*;
    let snapshot = fold([
        status(Working),
        said(Working, "half way"),
        status(InputRequired),
        status(Working),
        status(Completed),
    ])
    .unwrap();
    let kept: Vec<_> = snapshot.task.transitions.iter().map(|t| (t.state, t.at.as_millis())).collect();
    assert_eq!(kept, [(Submitted, 0), (Working, 1), (InputRequired, 3), (Working, 4), (Completed, 5)]);
}

#[test]
fn a_replaced_status_message_joins_the_history_before_the_answer() {
    let snapshot = fold([
        EventBody::said(message(Role::User, "go")),
        status(TaskState::Working),
        said(TaskState::InputRequired, "which one?"),
        EventBody::said(message(Role::User, "the blue one")),
        status(TaskState::Working),
    ])
    .unwrap();
    let history: Vec<_> = snapshot.task.history.iter().map(|said| said.text()).collect();
    assert_eq!(history, ["go", "which one?", "the blue one"]);
    assert_eq!(snapshot.task.status.message, None);
}

#[test]
fn artifacts_are_created_appended_replaced_and_sealed() {
    let working = || status(TaskState::Working);
    let snapshot = fold([
        working(),
        chunk("a", "1", false, false, 0),
        chunk("b", "x", false, true, 1),
        chunk("a", "2", true, true, 0),
    ])
    .unwrap();
    assert_eq!(texts(&snapshot.task.artifacts[0]), [&Part::text("1"), &Part::text("2")]);
    assert_eq!(texts(&snapshot.task.artifacts[1]), [&Part::text("x")]);
    assert_eq!(
        snapshot.check(&chunk("a", "3", true, false, 0)),
        Err(Refused::SealedArtifact(ArtifactId::parse("a").unwrap()))
    );

    let replaced =
        fold([working(), chunk("a", "1", false, true, 0), chunk("a", "new", false, false, 0)]).unwrap();
    assert_eq!(texts(&replaced.task.artifacts[0]), [&Part::text("new")]);
    assert_eq!(replaced.check(&chunk("a", "more", true, false, 0)), Ok(()));
}

fn joining(id: &str, parts: &[&str], ordinal: u32) -> EventBody {
    let parts = parts.iter().map(|text| Part::text(*text)).collect();
    let artifact = Artifact::new(ArtifactId::parse(id).unwrap(), parts);
    let (append, joins) = (true, true);
    EventBody::Artifact(ArtifactUpdate {
        artifact,
        append,
        joins,
        last_chunk: false,
        ordinal,
        metadata: None,
    })
}

#[test]
fn p04_text_that_goes_on_is_one_part_and_nothing_else_is_joined() {
    let data = || Part::data(crate::domain::JsonText::parse("1").unwrap());
    let with_data = EventBody::Artifact(ArtifactUpdate {
        artifact: Artifact::new(ArtifactId::parse("a").unwrap(), vec![data()]),
        append: true,
        joins: false,
        last_chunk: false,
        ordinal: 0,
        metadata: None,
    });
    let first = || chunk("a", "1", false, false, 0);
    for (then, expected) in [
        (vec![joining("a", &["2"], 0), joining("a", &["3"], 0)], vec![Part::text("123")]),
        (vec![chunk("a", "2", true, false, 0)], vec![Part::text("1"), Part::text("2")]),
        (vec![joining("a", &["2", "3"], 0)], vec![Part::text("12"), Part::text("3")]),
        (vec![joining("a", &[""], 0)], vec![Part::text("1")]),
        (vec![with_data.clone(), joining("a", &[""], 0)], vec![Part::text("1"), data()]),
        (vec![with_data, joining("a", &["2"], 0)], vec![Part::text("1"), data(), Part::text("2")]),
    ] {
        let events = [status(TaskState::Working), first()].into_iter().chain(then);
        assert_eq!(fold(events).unwrap().task.artifacts[0].parts, expected);
    }
}

/// By the place of each, though beyond a few they are found by a map.
#[test]
fn s22_many_artifacts_are_found_sealed_replaced_and_counted() {
    let mut snapshot = fold([status(TaskState::Working)]).unwrap();
    let next = |snapshot: &mut Snapshot, body| {
        let number = snapshot.version + 1;
        snapshot.apply(Event { number, at: time(number as i64), body })
    };
    let id = |n: u32| format!("artifact-{n}");
    for n in 0..5_000 {
        next(&mut snapshot, chunk(&id(n), "one", false, n % 2 == 0, n)).unwrap();
    }
    assert_eq!(snapshot.artifact_bytes(), 5_000 * 3);
    for n in 0..5_000 {
        let appended = next(&mut snapshot, chunk(&id(n), "two", true, false, n));
        assert_eq!(appended.is_err(), n % 2 == 0, "{n}: sealed ones take nothing");
    }
    for n in (0..5_000).step_by(2) {
        next(&mut snapshot, chunk(&id(n), "three", false, false, n)).unwrap();
    }
    assert_eq!(snapshot.sealed().count(), 0);
    assert_eq!(snapshot.artifact_bytes(), 2_500 * 6 + 2_500 * 5);
    let task = snapshot.task.clone();
    let again =
        Snapshot::restore(task, snapshot.version, snapshot.attempts, &[], None, None, SendDetails::default());
    assert_eq!(again, snapshot);
    assert_eq!(again.ordinal(&ArtifactId::parse(&id(4_321)).unwrap()), 4_321);
    assert_eq!(again.ordinal(&ArtifactId::parse("new").unwrap()), 5_000);
}

#[test]
fn artifact_faults_are_named() {
    let id = |text: &str| ArtifactId::parse(text).unwrap();
    let empty = EventBody::Artifact(ArtifactUpdate {
        artifact: Artifact::new(id("a"), Vec::new()),
        append: false,
        joins: false,
        last_chunk: false,
        ordinal: 0,
        metadata: None,
    });
    for (body, refused) in [
        (empty, Refused::EmptyArtifact(id("a"))),
        (chunk("a", "x", true, false, 0), Refused::UnknownArtifact(id("a"))),
        (chunk("a", "x", false, false, 3), Refused::WrongOrdinal { id: id("a"), expected: 0, got: 3 }),
    ] {
        assert_eq!(fold([status(TaskState::Working), body]), Err(refused));
    }
}

#[test]
fn numbers_have_no_gap() {
    let mut snapshot = begin();
    let event = |number| Event { number, at: time(1), body: status(TaskState::Working) };
    assert_eq!(snapshot.apply(event(2)), Err(Refused::OutOfOrder { last: 0, got: 2 }));
    assert_eq!(snapshot.apply(event(1)), Ok(()));
    assert_eq!(snapshot.apply(event(1)), Err(Refused::OutOfOrder { last: 1, got: 1 }));
}
