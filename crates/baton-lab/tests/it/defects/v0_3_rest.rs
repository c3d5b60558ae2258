//! HTTP+JSON of 0.3.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, REST_V0_3, USUAL};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.3-rest-reply-unwrapped",
        wrong: "Over HTTP+JSON of 0.3, a send is answered with a bare task.",
        faults: &[Fault::Edit(
            What::Reply,
            REST_V0_3.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Map("", |reply| *reply = reply["task"].take())],
        )],
        caught_by: &["V03-REST-001"],
        related: &["V03-REST-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-task-wrapped",
        wrong: "Over HTTP+JSON of 0.3, a task is read in a wrapper.",
        faults: &[Fault::Edit(
            What::Reply,
            REST_V0_3.of(&[Operation::GetTask]),
            &[Edit::Map("", |task| *task = serde_json::json!({"task": task}))],
        )],
        caught_by: &["V03-REST-002"],
        related: &["V03-REST-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-member-of-its-own",
        wrong: "Over HTTP+JSON of 0.3, a task has a member that the `.proto` has not.",
        faults: &[Fault::Edit(
            What::Reply,
            REST_V0_3.of(&[Operation::GetTask]),
            &[Edit::Set("createdAt", r#""today""#)],
        )],
        caught_by: &["V03-REST-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-event-without-task",
        wrong: "Over HTTP+JSON of 0.3, status updates do not name their task.",
        faults: &[Fault::Edit(
            What::Event,
            REST_V0_3.saying(COMPLETE),
            &[Edit::Remove("statusUpdate.taskId")],
        )],
        caught_by: &["V03-REST-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-of-1.0",
        wrong: "HTTP+JSON of 0.3 has the content type of 1.0.",
        faults: &[Fault::Header(
            What::Reply,
            REST_V0_3.of(&[Operation::SendMessage]),
            "content-type",
            Some("application/a2a+json"),
        )],
        caught_by: &["V03-REST-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-errors-are-html",
        wrong: "Errors over HTTP+JSON of 0.3 have the content type text/html.",
        faults: &[Fault::Header(What::Refusal(None), REST_V0_3, "content-type", Some("text/html"))],
        caught_by: &["V03-REST-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-errors-of-two-forms",
        wrong: "Over HTTP+JSON of 0.3, one error tells its text elsewhere than the others.",
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::Parse)),
            REST_V0_3,
            &[Edit::Rename("message", "reason")],
        )],
        caught_by: &["V03-REST-007"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-unknown-task-gone",
        wrong: "Over HTTP+JSON of 0.3, an unknown task is HTTP 410.",
        faults: &[Fault::Status(What::Refusal(Some(Kind::TaskNotFound)), REST_V0_3, 410)],
        caught_by: &["V03-REST-008"],
        related: &["V03-CARD-009", "V1-CARD-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-no-message-is-an-accident",
        wrong: "Over HTTP+JSON of 0.3, a send without a message is HTTP 500.",
        faults: &[Fault::Rule(Rule::MessageMissing, REST_V0_3, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-REST-009"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-any-verb",
        wrong: "HTTP+JSON of 0.3 answers to every verb.",
        faults: &[Fault::Rule(Rule::WrongVerb, REST_V0_3, Instead::Allow)],
        caught_by: &["V03-REST-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-any-path",
        wrong: "HTTP+JSON of 0.3 answers at every path.",
        faults: &[Fault::Rule(Rule::UnknownPath, REST_V0_3, Instead::Allow)],
        caught_by: &["V03-REST-011"],
        related: &["V03-RPC-015"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-listed-without-context",
        wrong: "Over HTTP+JSON of 0.3, listed tasks have no context.",
        faults: &[Fault::Edit(
            What::Reply,
            REST_V0_3.of(&[Operation::ListTasks]),
            &[Edit::Remove("tasks.*.contextId")],
        )],
        caught_by: &["V03-REST-012"],
        ..USUAL
    },
];
