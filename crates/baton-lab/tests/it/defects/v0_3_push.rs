//! Webhooks of 0.3.

use baton_lab::wire::request::Operation;

use super::{RPC_V0_3, USUAL, V0_3};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.3-config-without-url",
        wrong: "In 0.3, a config is set without its url.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::CreatePushConfig]),
            &[Edit::Remove("pushNotificationConfig.url")],
        )],
        caught_by: &["V03-PUSH-001"],
        ..USUAL
    },
    Defect {
        name: "v0.3-config-of-elsewhere",
        wrong: "In 0.3, a config is read with another url.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetPushConfig]),
            &[Edit::Set("pushNotificationConfig.url", r#""https://example.com/other""#)],
        )],
        caught_by: &["V03-PUSH-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-one-config",
        wrong: "In 0.3, a webhook replaces the one before.",
        faults: &[Fault::Quirk(Quirk::OneConfig, V0_3)],
        caught_by: &["V03-PUSH-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-config-not-deleted",
        wrong: "In 0.3, a deleted config stays.",
        faults: &[Fault::Quirk(Quirk::NotDeleted, V0_3)],
        caught_by: &["V03-PUSH-004"],
        related: &["V03-PUSH-012"],
        ..USUAL
    },
    Defect {
        name: "v0.3-delete-is-an-object",
        wrong: "In 0.3, deleting a config is answered with an object.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::DeletePushConfig]),
            &[Edit::Map("", |body| *body = serde_json::json!({}))],
        )],
        caught_by: &["V03-PUSH-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-config-of-nobody",
        wrong: "In 0.3, a config of an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_3.of(&[Operation::CreatePushConfig]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V03-PUSH-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-push-off-is-invalid-params",
        wrong: "In 0.3, webhooks that are not offered are refused with InvalidParamsError.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(Rule::NoPush, V0_3, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V03-PUSH-007"],
        ..USUAL
    },
    Defect {
        name: "v0.3-webhook-learns-nothing",
        wrong: "In 0.3, webhooks are called with an empty object.",
        faults: &[Fault::Edit(What::Call, V0_3, &[Edit::Map("", |body| *body = serde_json::json!({}))])],
        caught_by: &["V03-PUSH-008"],
        ..USUAL
    },
    Defect {
        name: "v0.3-config-in-send-ignored",
        wrong: "In 0.3, a webhook that comes with a message is ignored.",
        faults: &[Fault::Quirk(Quirk::IgnoresConfigInSend, V0_3)],
        caught_by: &["V03-PUSH-009"],
        ..USUAL
    },
    Defect {
        name: "v0.3-webhook-without-token",
        wrong: "In 0.3, webhooks are called without the configured token.",
        faults: &[Fault::Header(What::Call, V0_3, "x-a2a-notification-token", None)],
        caught_by: &["V03-PUSH-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-webhook-without-credentials",
        wrong: "In 0.3, webhooks are called without the configured credentials.",
        faults: &[Fault::Header(What::Call, V0_3, "authorization", None)],
        caught_by: &["V03-PUSH-011"],
        ..USUAL
    },
    Defect {
        name: "v0.3-deleted-webhook-called",
        wrong: "In 0.3, a deleted webhook is called.",
        faults: &[Fault::Quirk(Quirk::CallsDeleted, V0_3)],
        caught_by: &["V03-PUSH-012"],
        ..USUAL
    },
];
