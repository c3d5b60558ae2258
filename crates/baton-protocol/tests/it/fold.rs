//! A client that folds a stream ends with the task the server has.
//!
//! Internal events (user message, attempt, cancel request) have no frame, so the two folds are compared without
//! what only they bring: user messages in the history, and the moment at which a user message moves what the
//! agent asked from the status into the history (the stream shows that with the next status).

use std::sync::Arc;

use baton_protocol::domain::{
    ContextId, Event, EventBody, Role, StatusUpdate, Task, TaskId, TaskState, Timestamp,
};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::wire::v1::{self, StreamItem};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies;

fn body() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        1 => strategies::message().prop_map(|mut message| {
            message.role = Role::User;
            EventBody::said(message)
        }),
        1 => (1..5u32).prop_map(|attempt| EventBody::AttemptStarted { attempt, skill: None }),
        1 => Just(EventBody::CancelRequested { metadata: None }),
        5 => strategies::status_update().prop_map(|mut update| {
            // Only agents speak in a status; user messages are told apart by their role below.
            if let Some(message) = &mut update.message {
                message.role = Role::Agent;
            }
            EventBody::Status(update)
        }),
        5 => strategies::artifact_update().prop_map(EventBody::Artifact),
    ]
}

/// Stamps the ordinal as the engine does.
fn stamped(snapshot: &Snapshot, mut body: EventBody) -> EventBody {
    if let EventBody::Artifact(update) = &mut body {
        update.ordinal = snapshot.ordinal(&update.artifact.id);
    }
    body
}

/// Numbers, checks and applies; what the task may not take is left out.
fn append(snapshot: &mut Snapshot, at: Timestamp, body: EventBody) -> Option<Event> {
    let body = stamped(snapshot, body);
    snapshot.check(&body).ok()?;
    let event = Event { number: snapshot.version + 1, at, body };
    snapshot.apply(event.clone()).expect("it was checked");
    Some(event)
}

fn frame(task_id: &TaskId, context_id: &ContextId, event: &Event) -> Option<String> {
    let mut out = Vec::new();
    match &event.body {
        EventBody::Status(update) => v1::write_stream_status(&mut out, task_id, context_id, event.at, update),
        EventBody::Artifact(update) => v1::write_stream_artifact(&mut out, task_id, context_id, update),
        internal => {
            assert!(internal.kind().is_internal());
            return None;
        }
    }
    Some(String::from_utf8(out).expect("JSON is UTF-8"))
}

fn without_internal_events(mut task: Task) -> Task {
    task.history.extend(task.status.message.take().map(Arc::new));
    task.history.retain(|message| message.role != Role::User);
    task
}

proptest! {
    #[test]
    fn p04_the_fold_of_a_stream_is_the_task(
        task_id in strategies::task_id(),
        context_id in strategies::context_id(),
        bodies in vec((strategies::timestamp(), body()), 0..25),
    ) {
        let begin = Timestamp::from_millis(1);
        let mut server = Snapshot::begin(task_id.clone(), context_id.clone(), begin);
        let mut frames = Vec::new();
        // A turn begins with WORKING; without it most random events would be refused.
        let working = EventBody::Status(StatusUpdate {
            state: TaskState::Working,
            message: None,
            metadata: None,
        });
        for (at, body) in [(begin, working)].into_iter().chain(bodies) {
            if let Some(event) = append(&mut server, at, body) {
                frames.extend(frame(&task_id, &context_id, &event));
            }
        }

        let mut client = Snapshot::begin(task_id.clone(), context_id.clone(), begin);
        for text in frames {
            let (at, body) = match v1::read_stream_item(&text).unwrap() {
                StreamItem::Status { task_id: id, context_id: context, at, update } => {
                    prop_assert_eq!((&id, &context), (&task_id, &context_id));
                    (at, EventBody::Status(update))
                }
                StreamItem::Artifact { update, .. } => (begin, EventBody::Artifact(update)),
                other => panic!("{other:?} was not written"),
            };
            prop_assert!(append(&mut client, at, body).is_some(), "the client refused {}", text);
        }
        prop_assert_eq!(&client.task.transitions, &server.task.transitions);
        prop_assert!(client.sealed().eq(server.sealed()));
        prop_assert_eq!(without_internal_events(client.task), without_internal_events(server.task));
    }
}
