//! Credentials.

use super::{Correction, Kind, is_prose, relevel};
use crate::acts::document::Level;

pub(super) const LIST: &[Correction] = &[
    Correction::native(
        &["SEC-AUTH-001", "SEC-AUTH-002", "SEC-EXTCARD-001", "SEC-EXTCARD-004"],
        "the body must hold `error` or `title`",
        "with HTTP 401 or 403 the body is not looked at; the user's own credentials are left out",
        "acts.refused",
        is_prose,
    )
    .named("AUTH-BODY"),
    Correction::of(
        Kind::Soften,
        &["SEC-EXTCARD-002"],
        "users with fewer rights must be refused, but an agent may also serve them a card with less",
        "refused, or a card; a failure counts as should",
        |test| {
            let found = is_prose(test) && relevel(test, &[Level::Must], Level::Should);
            if found {
                test.native = Some("acts.lesser-card".to_owned());
            }
            found
        },
    ),
    Correction::native(
        &["SEC-AUTH-003"],
        "compares nothing",
        "a foreign task and a missing one give the same error name, status and message",
        "acts.foreign-task",
        is_prose,
    ),
    Correction::native(
        &["SEC-AUTH-004"],
        "one operation stands for all",
        "all operations are called without credentials",
        "v1.auth.strangers",
        is_prose,
    ),
    Correction::native(
        &["SEC-AUTH-006"],
        "fetches the public card, and expects an error: no correct agent passes",
        "an operation without credentials is refused with HTTP 401",
        "v1.auth.status",
        is_prose,
    ),
    Correction::note(
        "SEC-EXTCARD-003",
        &["SEC-EXTCARD-003"],
        "the draft has another name for this error",
        "UnsupportedOperationError, as the file says",
    ),
    Correction::of(
        Kind::Off,
        &["SEC-PUSH-002"],
        "tests the receiver of webhooks, which is a client, with steps for an agent",
        "skipped: no agent can pass or fail it",
        |test| {
            test.off =
                Some("it tests the receiver of webhooks, which is not the agent under test".to_owned());
            true
        },
    ),
];
