//! Webhooks.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "config-nested",
        wrong: "A config is answered as 0.3 had it, nested.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::CreatePushConfig]),
            &[Edit::Map("", |config| *config = serde_json::json!({"pushNotificationConfig": config}))],
        )],
        caught_by: &["V1-PUSH-001"],
        related: &["V1-PUSH-002", "V1-PUSH-004"],
        ..USUAL
    },
    Defect {
        name: "config-read-without-url",
        wrong: "A config is read without its url.",
        faults: &[Fault::Edit(What::Reply, V1.of(&[Operation::GetPushConfig]), &[Edit::Remove("url")])],
        caught_by: &["V1-PUSH-002"],
        ..USUAL
    },
    Defect {
        name: "unknown-config-is-empty",
        wrong: "A config that is not there is read as an empty one.",
        faults: &[Fault::Rule(Rule::UnknownConfig, V1, Instead::Allow)],
        caught_by: &["V1-PUSH-003"],
        related: &["V1-PUSH-005"],
        ..USUAL
    },
    Defect {
        name: "one-config",
        wrong: "A webhook replaces the one before.",
        faults: &[Fault::Quirk(Quirk::OneConfig, V1)],
        caught_by: &["V1-PUSH-004"],
        ..USUAL
    },
    Defect {
        name: "config-not-deleted",
        wrong: "A deleted config stays.",
        faults: &[Fault::Quirk(Quirk::NotDeleted, V1)],
        caught_by: &["V1-PUSH-005"],
        related: &["V1-PUSH-015"],
        ..USUAL
    },
    Defect {
        name: "second-delete-refused",
        wrong: "A second delete is refused.",
        faults: &[Fault::Rule(Rule::DeleteUnknownConfig, V1, Instead::Refuse(Kind::TaskNotFound))],
        caught_by: &["V1-PUSH-006"],
        ..USUAL
    },
    Defect {
        name: "configs-of-nobody",
        wrong: "The configs of an unknown task are an empty list.",
        faults: &[Fault::Rule(Rule::UnknownTask, V1.of(&[Operation::ListPushConfigs]), Instead::Allow)],
        caught_by: &["V1-PUSH-007"],
        ..USUAL
    },
    Defect {
        name: "config-without-url-taken",
        wrong: "A config without a url is taken.",
        faults: &[Fault::Rule(Rule::ConfigUrl, V1, Instead::Allow)],
        caught_by: &["V1-PUSH-008"],
        ..USUAL
    },
    Defect {
        name: "webhook-called-with-text",
        wrong: "Webhooks are called with the content type text/plain.",
        faults: &[Fault::Header(What::Call, V1, "content-type", Some("text/plain"))],
        caught_by: &["V1-PUSH-010"],
        ..USUAL
    },
    Defect {
        name: "webhook-does-not-learn-the-end",
        wrong: "Webhooks are not told the terminal state.",
        faults: &[Fault::Edit(
            What::Call,
            V1,
            &[Edit::Set("statusUpdate.status.state", r#""TASK_STATE_WORKING""#)],
        )],
        caught_by: &["V1-PUSH-011"],
        ..USUAL
    },
    Defect {
        name: "config-in-send-ignored",
        wrong: "A webhook that comes with a message is ignored.",
        faults: &[Fault::Quirk(Quirk::IgnoresConfigInSend, V1)],
        caught_by: &["V1-PUSH-012"],
        ..USUAL
    },
    Defect {
        name: "webhook-without-credentials",
        wrong: "Webhooks are called without the configured credentials.",
        faults: &[Fault::Header(What::Call, V1, "authorization", None)],
        caught_by: &["V1-PUSH-013"],
        ..USUAL
    },
    Defect {
        name: "webhook-without-token",
        wrong: "Webhooks are called without the configured token.",
        faults: &[Fault::Header(What::Call, V1, "x-a2a-notification-token", None)],
        caught_by: &["V1-PUSH-014"],
        ..USUAL
    },
    Defect {
        name: "deleted-webhook-called",
        wrong: "A deleted webhook is called.",
        faults: &[Fault::Quirk(Quirk::CallsDeleted, V1)],
        caught_by: &["V1-PUSH-015"],
        ..USUAL
    },
];
