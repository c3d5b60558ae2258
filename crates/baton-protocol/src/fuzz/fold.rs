//! Any sequence of events of a task; two bytes are one event. Folding must never panic, a refused event must change
//! nothing, and a task ends once.

use crate::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, Message, MessageId, Part, Role,
    StatusUpdate, TaskId, TaskState, Timestamp,
};
use crate::lifecycle::{Refused, Snapshot, may_follow};

pub(super) fn check(bytes: &[u8]) {
    let id = TaskId::parse("t").expect("an id");
    let context = ContextId::parse("c").expect("an id");
    let mut snapshot = Snapshot::begin(id, context, Timestamp::from_millis(0));
    let mut ends = 0;
    for pair in bytes.chunks_exact(2) {
        let (what, how) = (pair[0], pair[1]);
        let body = body(&snapshot, what, how);
        // Sometimes a number that is not the next one.
        let number = if how == 0xff { snapshot.version + u64::from(what % 3) } else { snapshot.version + 1 };
        let event = Event { number, at: Timestamp::from_millis(i64::from(how)), body };
        let before = snapshot.clone();
        match snapshot.apply(event.clone()) {
            Err(refused) => {
                assert_eq!(snapshot, before, "{refused}, and yet changed");
                assert!(!matches!(refused, Refused::Ended(state) if !state.is_terminal()));
            }
            Ok(()) => {
                assert_eq!((before.version + 1, number), (snapshot.version, snapshot.version));
                assert!(!before.state().is_terminal(), "an ended task took {event:?}");
                ends += usize::from(snapshot.state().is_terminal());
                applied(&before, &snapshot, &event.body);
            }
        }
    }
    assert!(ends <= 1);
    assert_eq!(ends == 1, snapshot.state().is_terminal());
}

fn applied(before: &Snapshot, after: &Snapshot, body: &EventBody) {
    let (from, to) = (before.state(), after.state());
    assert!(from == to || may_follow(from, to), "{from:?} to {to:?}");
    let last = after.task.transitions.last().map(|transition| transition.state);
    assert_eq!(last, Some(to), "the state history ends with the state");
    let changes = usize::from(from != to);
    assert_eq!(after.task.transitions.len(), before.task.transitions.len() + changes);
    // No message is lost: it is the status message, or in the history.
    let said = |snapshot: &Snapshot| {
        snapshot.task.history.len() + usize::from(snapshot.task.status.message.is_some())
    };
    let new = match body {
        EventBody::UserMessage { .. } => 1,
        EventBody::Status(update) => usize::from(update.message.is_some()),
        _ => 0,
    };
    assert_eq!(said(after), said(before) + new, "{body:?}");
    let mut ids: Vec<_> = after.task.artifacts.iter().map(|artifact| &artifact.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), after.task.artifacts.len(), "an artifact is there twice");
    for artifact in &after.task.artifacts {
        assert!(!artifact.parts.is_empty());
        let place = after.task.artifacts.iter().position(|other| other.id == artifact.id);
        assert_eq!(Some(after.ordinal(&artifact.id) as usize), place);
    }
    assert!(after.sealed().all(|sealed| after.task.artifacts.iter().any(|artifact| artifact.id == *sealed)));
    // The running counts equal a recount.
    let sealed: Vec<_> = after.sealed().cloned().collect();
    let again = Snapshot::restore(
        after.task.clone(),
        after.version,
        after.attempts,
        &sealed,
        None,
        None,
        after.details.clone(),
    );
    assert_eq!(again.artifact_bytes(), after.artifact_bytes());
}

fn body(snapshot: &Snapshot, what: u8, how: u8) -> EventBody {
    let message = |role| {
        let id = MessageId::parse(&how.to_string()).expect("an id");
        Message::new(id, role, vec![Part::text("x")])
    };
    match what % 8 {
        0 => EventBody::said(message(Role::User)),
        1 => EventBody::AttemptStarted { attempt: how.into(), skill: None },
        2 => EventBody::CancelRequested { metadata: None },
        3..=5 => EventBody::Status(StatusUpdate {
            state: TaskState::ALL[usize::from(how % 8)],
            message: (how & 0x80 != 0).then(|| message(Role::Agent)),
            metadata: None,
        }),
        _ => {
            let id = ArtifactId::parse(&(how % 4).to_string()).expect("an id");
            let parts = if what & 0x40 != 0 && how & 0x20 != 0 { Vec::new() } else { vec![Part::text("y")] };
            // Usually correct; wrong ones must be refused.
            let ordinal = if what == 0xff { u32::from(how) } else { snapshot.ordinal(&id) };
            EventBody::Artifact(ArtifactUpdate {
                artifact: Artifact::new(id, parts),
                append: how & 0x40 != 0,
                joins: how & 0x10 != 0,
                last_chunk: how & 0x80 != 0,
                ordinal,
                metadata: None,
            })
        }
    }
}
