//! The labels of metrics: small closed sets of values, each with an index and a name. A label's value is never text from a
//! request.

use std::sync::LazyLock;

use baton_protocol::domain::TaskState;
use baton_protocol::error::TABLE;
use baton_protocol::operation::{FACTS, Operation};
use baton_protocol::{ErrorKind, Generation};

use crate::store::StoreError;

/// The binding of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
    /// The public agent card, which belongs to no binding.
    Card,
    #[cfg(feature = "grpc")]
    Grpc,
}

impl Binding {
    pub(crate) const ALL: &'static [Binding] = &[
        Self::JsonRpc,
        Self::HttpJson,
        Self::Card,
        #[cfg(feature = "grpc")]
        Self::Grpc,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http_json",
            Self::Card => "card",
            #[cfg(feature = "grpc")]
            Self::Grpc => "grpc",
        }
    }
}

/// What a request kind for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Operation(Operation),
    Card,
    /// The request failed before this was known.
    Unknown,
}

impl RequestKind {
    pub(crate) const COUNT: usize = FACTS.len() + 2;

    pub(crate) fn all() -> impl Iterator<Item = RequestKind> {
        FACTS.iter().map(|facts| Self::Operation(facts.operation)).chain([Self::Card, Self::Unknown])
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Operation(operation) => operation as usize,
            Self::Card => FACTS.len(),
            Self::Unknown => FACTS.len() + 1,
        }
    }

    /// Operations have their 1.0 names in all generations.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Operation(operation) => operation.facts().v1,
            Self::Card => "AgentCard",
            Self::Unknown => "unknown",
        }
    }
}

/// The generations, and `None` for requests that failed before theirs was known.
pub(crate) const GENERATIONS: [Option<Generation>; 4] =
    [None, Some(Generation::V0_1), Some(Generation::V0_3), Some(Generation::V1)];

pub(crate) fn generation_index(generation: Option<Generation>) -> usize {
    match generation {
        None => 0,
        Some(Generation::V0_1) => 1,
        Some(Generation::V0_3) => 2,
        Some(Generation::V1) => 3,
    }
}

pub(crate) fn generation_name(generation: Option<Generation>) -> &'static str {
    generation.map_or("unknown", Generation::version)
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    /// The client disconnected before it was answered.
    ClientGone,
    Error(ErrorKind),
}

/// Names of outcomes. An error's name is its reason, which clients get as well; several kinds of errors may share one.
struct Reasons {
    names: Vec<&'static str>,
    /// Index into `names` for each row of [`TABLE`].
    of_kind: Vec<usize>,
}

static REASONS: LazyLock<Reasons> = LazyLock::new(|| {
    let mut reasons = Reasons { names: vec!["ok", "client_gone"], of_kind: Vec::with_capacity(TABLE.len()) };
    for row in TABLE {
        let known = reasons.names.iter().position(|name| *name == row.reason);
        reasons.of_kind.push(known.unwrap_or(reasons.names.len()));
        if known.is_none() {
            reasons.names.push(row.reason);
        }
    }
    reasons
});

impl Outcome {
    pub(crate) fn count() -> usize {
        REASONS.names.len()
    }

    pub(crate) fn name_at(index: usize) -> &'static str {
        REASONS.names[index]
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::ClientGone => 1,
            Self::Error(kind) => REASONS.of_kind[kind as usize],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        Self::name_at(self.index())
    }
}

/// A limit that each caller has for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    /// Running and queued tasks.
    Tasks,
    /// Stored tasks.
    Stored,
    /// Stored bytes.
    StoredBytes,
    Streams,
    /// Requests under way.
    Requests,
    Rate,
    /// Failed attempts to authenticate.
    Authentication,
}

impl Limited {
    pub(crate) const ALL: [Limited; 7] = [
        Self::Tasks,
        Self::Stored,
        Self::StoredBytes,
        Self::Streams,
        Self::Requests,
        Self::Rate,
        Self::Authentication,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Stored => "stored",
            Self::StoredBytes => "stored_bytes",
            Self::Streams => "streams",
            Self::Requests => "requests",
            Self::Rate => "rate",
            Self::Authentication => "authentication",
        }
    }
}

/// What became of a call to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebhookCall {
    Delivered,
    /// It failed, and is tried again.
    Retried,
    /// It failed, and the webhook has failed for good.
    Failed,
    /// The receiver wants no more calls.
    Gone,
}

impl WebhookCall {
    pub(crate) const ALL: [WebhookCall; 4] = [Self::Delivered, Self::Retried, Self::Failed, Self::Gone];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }
}

pub(crate) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input_required",
        TaskState::AuthRequired => "auth_required",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::Rejected => "rejected",
    }
}

/// Named after the variants of [`StoreError`].
pub(crate) const STORE_ERRORS: [&str; 4] = ["full", "unavailable", "damaged", "fatal"];

pub(crate) fn store_error_index(error: &StoreError) -> usize {
    match error {
        StoreError::Full(_) => 0,
        StoreError::Unavailable(_) => 1,
        StoreError::Damaged(_) => 2,
        StoreError::Fatal(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn indexes_are_places_in_their_lists() {
        for (at, binding) in Binding::ALL.iter().enumerate() {
            assert_eq!(*binding as usize, at);
        }
        for (at, kind) in RequestKind::all().enumerate() {
            assert_eq!(kind.index(), at);
        }
        assert_eq!(RequestKind::all().count(), RequestKind::COUNT);
        for (at, state) in TaskState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, at);
        }
        for (at, generation) in GENERATIONS.into_iter().enumerate() {
            assert_eq!(generation_index(generation), at);
        }
    }

    #[test]
    fn every_kind_of_error_has_an_outcome_named_by_its_reason() {
        for row in TABLE {
            assert_eq!(Outcome::Error(row.kind).name(), row.reason);
        }
        let names: BTreeSet<_> = (0..Outcome::count()).map(Outcome::name_at).collect();
        assert_eq!(names.len(), Outcome::count(), "no name stands for two outcomes");
        let reasons: BTreeSet<_> = TABLE.iter().map(|row| row.reason).collect();
        assert_eq!(names.len(), reasons.len() + 2);
    }
}
