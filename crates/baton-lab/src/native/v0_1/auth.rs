//! Authentication, for agents whose card names an authentication scheme.

use crate::native::{Checks, callers, checks};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.auth.strangers" => callers::strangers,
    "v0_1.auth.status" => callers::status,
    "v0_1.auth.challenge" => callers::challenge,
    "v0_1.auth.wrong-credentials" => callers::wrong_credentials,
    "v0_1.auth.broken-body" => callers::broken_body,
    "v0_1.auth.foreign-task" => callers::foreign_task,
    "v0_1.auth.foreign-changes" => callers::foreign_changes,
};
