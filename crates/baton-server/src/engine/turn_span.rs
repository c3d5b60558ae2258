//! A turn's span: one for each attempt, in the trace its task belongs to.

use baton_protocol::domain::{Scope, TraceContext};
use baton_protocol::lifecycle::Snapshot;
use tracing::Span;

use crate::store::TaskKey;
use crate::telemetry::trace;

/// The span, and the place agents hand on to whatever they call.
///
/// It hangs below the place that is kept with the task, not below the request at hand: that one ends long before the
/// turn, and a second turn or a re-run has another or none. The request that started the turn, `origin`, is linked.
pub(super) fn of(
    scope: &Scope,
    snapshot: &Snapshot,
    key: TaskKey,
    origin: Option<&TraceContext>,
) -> (Span, Option<TraceContext>) {
    let task = &snapshot.task;
    // Signed: OpenTelemetry knows no other whole numbers.
    let span = tracing::debug_span!(parent: None, "turn", task.id = %task.id, task.key = key.0.cast_signed(), attempt = i64::from(snapshot.attempts));
    if span.is_disabled() {
        return (span, snapshot.trace.clone());
    }
    if let Some(kept) = &snapshot.trace {
        trace::put_below(&span, kept);
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
    let place = trace::place(&span).or_else(|| snapshot.trace.clone());
    (span, place)
}
