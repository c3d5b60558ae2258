//! The tracing span of a turn: one for each attempt, in the trace of its task.

use baton_protocol::domain::{Scope, TraceContext};
use baton_protocol::lifecycle::Snapshot;
use tracing::Span;

use crate::store::TaskKey;
use crate::telemetry::trace;

/// The span, and the trace context that agents pass on in their own calls.
///
/// Its parent is the context stored with the task, not the current request: a request ends long before its turn, and a
/// second turn or a re-run has another request or none. The request that started the turn, `origin`, is linked.
pub(super) fn of(
    scope: &Scope,
    snapshot: &Snapshot,
    key: TaskKey,
    origin: Option<&TraceContext>,
) -> (Span, Option<TraceContext>) {
    let task = &snapshot.task;
    // Signed, because OpenTelemetry has no unsigned integers.
    let span = tracing::debug_span!(parent: None, "turn", task.id = %task.id, task.key = key.0.cast_signed(), attempt = i64::from(snapshot.attempts));
    if let Some(kept) = &snapshot.trace {
        trace::set_parent(&span, kept);
    }
    if let Some(origin) = origin.filter(|origin| Some(*origin) != snapshot.trace.as_ref()) {
        trace::link(&span, origin);
    }
    trace::attribute(&span, "a2a.task.id", task.id.as_str());
    trace::attribute(&span, "a2a.context.id", task.context_id.as_str());
    trace::attribute(&span, "a2a.agent", &scope.agent);
    if let Some(skill) = &snapshot.skill {
        trace::attribute(&span, "a2a.skill", skill);
    }
    let context = trace::context_of(&span).or_else(|| snapshot.trace.clone());
    (span, context)
}
