//! Push notifications.

use serde_json::{Value, json};

use super::{Correction, Kind, is_prose, relevel};
use crate::acts::document::{Level, Test};

/// Tests that create a configuration and read it.
const CONFIGS: &[&str] =
    &["PUSH-CFG-001", "PUSH-CFG-002", "PUSH-CFG-003", "PUSH-LIST-001", "PUSH-ERR-001", "PUSH-IDEM-001"];

pub(super) const LIST: &[Correction] = &[
    Correction::of(
        Kind::Fix,
        CONFIGS,
        "the configuration is made on a completed task, where an agent may refuse or drop it; level may",
        "made on a task that is still at work (`tck-long-running`); must, since the capability is declared",
        on_a_task_at_work,
    )
    .named("PUSH-AT-WORK"),
    Correction::note(
        "PUSH-DELETE",
        &["PUSH-CFG-003", "PUSH-IDEM-001"],
        "a delete must answer 200",
        "any 2xx, with or without a body",
    ),
    Correction::native(
        &["PUSH-DELIV-001", "SEC-PUSH-001"],
        "the webhook is an example address, and no step looks at what arrives",
        "our own receiver looks for `Authorization: Bearer …`",
        "v1.push.credentials",
        is_prose,
    )
    .named("PUSH-CREDENTIALS"),
    Correction::native(
        &["PUSH-DELIV-002"],
        "the webhook is an example address, and no step looks at what arrives",
        "our own receiver waits until the task's end is told",
        "v1.push.tells-the-end",
        is_prose,
    ),
    Correction::native(
        &["PUSH-DELIV-003"],
        "the webhook is an example address, and no step looks at what arrives",
        "our own receiver looks at the body: one member of a stream response",
        "v1.push.delivered",
        is_prose,
    ),
];

fn on_a_task_at_work(test: &mut Test) -> bool {
    let mut found = false;
    for step in &mut test.steps {
        let Some(params) = step.params.as_mut() else { continue };
        let Some(text) = params.pointer_mut("/message/parts/0/text") else { continue };
        if text.as_str().is_some_and(|text| text.starts_with("tck-complete-task")) {
            *text = json!("tck-long-running for push");
            found = true;
        }
        if found && let Some(params) = params.as_object_mut() {
            let settings = params.entry("configuration").or_insert_with(|| Value::Object(Default::default()));
            settings["returnImmediately"] = json!(true);
        }
    }
    if found {
        test.requires_behaviors = vec!["tck-long-running".to_owned()];
    }
    relevel(test, &[Level::Should, Level::May], Level::Must) || found
}
