//! Objects and parts.

use baton_lab::wire::request::Operation;

use serde_json::Value;

use super::{COMPLETE, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, What};

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "metadata-is-a-list",
        wrong: "The metadata of a task is a list.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Set("task.metadata", "[]")],
        )],
        caught_by: &["V1-DATA-001"],
        ..USUAL
    },
    Defect {
        name: "artifacts-share-an-id",
        wrong: "Two artifacts of a task have the same id.",
        faults: &[
            Fault::Edit(
                What::Reply,
                V1.of(&[Operation::SendMessage]),
                &[Edit::Map("task.artifacts", DOUBLED)],
            ),
            Fault::Edit(What::Reply, V1.of(&[Operation::GetTask]), &[Edit::Map("artifacts", DOUBLED)]),
            Fault::Edit(
                What::Reply,
                V1.of(&[Operation::ListTasks]),
                &[Edit::Map("tasks.*.artifacts", DOUBLED)],
            ),
        ],
        caught_by: &["V1-DATA-002"],
        ..USUAL
    },
    Defect {
        name: "text-part-renamed",
        wrong: "A text part has its text elsewhere.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-artifact-text"),
            &[Edit::Rename("task.artifacts.*.parts.*.text", "content")],
        )],
        caught_by: &["V1-DATA-003"],
        ..USUAL
    },
    Defect {
        name: "file-part-of-0.3",
        wrong: "A file part has its bytes as 0.3 had them.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-artifact-file"),
            &[Edit::Rename("task.artifacts.*.parts.*.raw", "bytes")],
        )],
        caught_by: &["V1-DATA-004"],
        ..USUAL
    },
    Defect {
        name: "link-part-of-0.3",
        wrong: "A link part has its address as 0.3 had it.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-artifact-file-url"),
            &[Edit::Rename("task.artifacts.*.parts.*.url", "uri")],
        )],
        caught_by: &["V1-DATA-005"],
        ..USUAL
    },
    Defect {
        name: "data-part-as-text",
        wrong: "A data part holds JSON as a text.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-artifact-data"),
            &[Edit::Map("task.artifacts.*.parts.*.data", |data| *data = data.to_string().into())],
        )],
        caught_by: &["V1-DATA-006"],
        ..USUAL
    },
    Defect {
        name: "message-without-id",
        wrong: "Messages from the agent have no id.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-message-response"),
            &[Edit::Remove("message.messageId")],
        )],
        caught_by: &["V1-DATA-007"],
        ..USUAL
    },
    Defect {
        name: "snake-case-task",
        wrong: "A task has a member in snake_case.",
        faults: &[Fault::Edit(What::Reply, V1.of(&[Operation::GetTask]), &[Edit::Set("created_at", "1")])],
        caught_by: &["V1-DATA-008"],
        ..USUAL
    },
    Defect {
        name: "time-with-offset",
        wrong: "Times have an offset instead of `Z`.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]),
            &[Edit::Map("task.status.timestamp", |time| {
                *time = time.as_str().unwrap_or_default().replace('Z', "+00:00").into()
            })],
        )],
        caught_by: &["V1-DATA-009"],
        related: &["V1-DATA-001", "V1-DATA-010", "V1-SEND-004"],
        ..USUAL
    },
    Defect {
        name: "time-without-milliseconds",
        wrong: "Times have no milliseconds.",
        faults: &[
            Fault::Edit(
                What::Reply,
                V1.of(&[Operation::SendMessage]),
                &[Edit::Map("task.status.timestamp", WHOLE_SECONDS)],
            ),
            Fault::Edit(
                What::Reply,
                V1.of(&[Operation::GetTask]),
                &[Edit::Map("status.timestamp", WHOLE_SECONDS)],
            ),
        ],
        caught_by: &["V1-DATA-010"],
        ..USUAL
    },
    Defect {
        name: "lower-case-roles",
        wrong: "Messages in a reply have the role `user`.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]),
            &[Edit::Set("task.history.*.role", r#""user""#)],
        )],
        caught_by: &["V1-DATA-011"],
        related: &["V1-DATA-001"],
        ..USUAL
    },
];

const DOUBLED: fn(&mut Value) = |list| {
    if let Some(list) = list.as_array_mut() {
        list.extend(list.first().cloned());
    }
};

const WHOLE_SECONDS: fn(&mut Value) = |time| {
    let seconds = time.as_str().unwrap_or_default().split('.').next().unwrap_or_default();
    *time = format!("{seconds}Z").into();
};
