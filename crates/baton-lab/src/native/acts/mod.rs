//! What the official files only describe in prose, behind their own ids. [`corrections`](crate::acts::corrections) puts
//! each check in its test's place.

mod conversations;
mod credentials;
mod headers;
mod streams;

use super::{Checks, checks};

pub(super) const CHECKS: Checks = checks! {
    "acts-unsupported-type" => conversations::unsupported_type,
    "acts-client-context" => conversations::client_context,
    "acts-history-order" => conversations::history_order,
    "acts-no-version" => headers::no_version,
    "acts-rest-content-type" => headers::rest_content_type,
    "acts-two-streams" => streams::two_streams,
    "acts-one-stream-closed" => streams::one_stream_closed,
    "acts-resubscribe" => streams::resubscribe,
    "acts-refused" => credentials::refused,
    "acts-all-refused" => credentials::all_refused,
    "acts-foreign-task" => credentials::foreign_task,
    "acts-challenge" => credentials::challenge,
    "acts-lesser-card" => credentials::lesser_card,
    "acts-extended-card" => credentials::extended_card,
};
