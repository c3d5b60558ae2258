//! Authentication, scoping, in-task authorization.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Cut, Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "strangers-cancel",
        wrong: "Strangers may cancel.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::NoCredentials, V1.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V1-AUTH-001"],
        ..USUAL
    },
    Defect {
        name: "strangers-forbidden",
        wrong: "Strangers get HTTP 403.",
        profile: Profile::Guarded,
        faults: &[Fault::Status(What::Refusal(Some(Kind::Unauthenticated)), V1, 403)],
        caught_by: &["V1-AUTH-002"],
        related: &["V1-AUTH-008"],
        ..USUAL
    },
    Defect {
        name: "no-challenge",
        wrong: "HTTP 401 comes without a challenge.",
        profile: Profile::Guarded,
        faults: &[Fault::Header(What::Refusal(Some(Kind::Unauthenticated)), V1, "www-authenticate", None)],
        caught_by: &["V1-AUTH-003"],
        related: &["V1-AUTH-008"],
        ..USUAL
    },
    Defect {
        name: "liars-believed",
        wrong: "Made-up credentials are taken.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::BadCredentials, V1, Instead::Allow)],
        caught_by: &["V1-AUTH-004"],
        related: &["V1-AUTH-008"],
        ..USUAL
    },
    Defect {
        name: "foreign-task-forbidden",
        wrong: "Another user's task is forbidden, where a missing one is not found.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::Foreign, V1.of(&[Operation::GetTask]), Instead::Refuse(Kind::Forbidden))],
        caught_by: &["V1-AUTH-005"],
        ..USUAL
    },
    Defect {
        name: "foreign-tasks-listed",
        wrong: "Lists show everybody's tasks.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::ListShowsEverybodys, V1)],
        caught_by: &["V1-AUTH-006"],
        related: &["V1-AUTH-010"],
        ..USUAL
    },
    Defect {
        name: "foreign-task-canceled",
        wrong: "Another user's task can be canceled.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::Foreign, V1.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V1-AUTH-007"],
        ..USUAL
    },
    Defect {
        name: "liars-forbidden",
        wrong: "Made-up credentials get HTTP 403.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::BadCredentials, V1, Instead::Refuse(Kind::Forbidden))],
        caught_by: &["V1-AUTH-008"],
        ..USUAL
    },
    Defect {
        name: "body-before-caller",
        wrong: "The body is read before anybody asks who sends it.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::ParsesFirst, V1)],
        caught_by: &["V1-AUTH-009"],
        ..USUAL
    },
    Defect {
        name: "foreign-page-shown",
        wrong: "A list that is continued shows everybody's tasks.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::PageShowsEverybodys, V1)],
        caught_by: &["V1-AUTH-010"],
        ..USUAL
    },
    Defect {
        name: "old-tls",
        wrong: "TLS 1.1 and older are spoken.",
        profile: Profile::Sealed,
        faults: &[Fault::Quirk(Quirk::OldTls, V1)],
        caught_by: &["V1-TLS-001"],
        ..USUAL
    },
    Defect {
        name: "no-tls-1.3",
        wrong: "TLS 1.2 is the newest version.",
        profile: Profile::Sealed,
        faults: &[Fault::Quirk(Quirk::NoTls13, V1)],
        caught_by: &["V1-TLS-002"],
        ..USUAL
    },
    Defect {
        name: "no-hsts",
        wrong: "Answers over TLS come without HSTS.",
        profile: Profile::Sealed,
        faults: &[Fault::Quirk(Quirk::NoHsts, V1)],
        caught_by: &["V1-TLS-003"],
        ..USUAL
    },
    Defect {
        name: "sign-in-not-explained",
        wrong: "A task that needs a sign-in does not say how.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-auth-required"),
            &[Edit::Remove("task.status.message")],
        )],
        caught_by: &["V1-ITA-001"],
        ..USUAL
    },
    Defect {
        name: "sign-in-takes-no-messages",
        wrong: "A task that waits for a sign-in takes no messages.",
        faults: &[Fault::Rule(
            Rule::FollowUp,
            V1.saying("tck-auth-required"),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V1-ITA-002"],
        related: &["V1-ITA-003"],
        ..USUAL
    },
    Defect {
        name: "sign-in-not-told",
        wrong: "A stream does not tell that a sign-in is required.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-auth-required"),
            Cut::DropState("TASK_STATE_AUTH_REQUIRED"),
        )],
        caught_by: &["V1-ITA-003"],
        ..USUAL
    },
];
