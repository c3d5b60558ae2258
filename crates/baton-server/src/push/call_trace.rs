//! A call as part of its task's trace: a span of its own, and the headers with which the receiver continues the trace.

use baton_protocol::domain::TraceContext;
use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::Span;

use super::deliver::Outcome;
use super::notification::Notification;
use super::registry::Job;
use crate::telemetry::trace;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The trace of one call.
#[derive(Debug)]
pub(super) struct CallTrace {
    pub(super) span: Span,
    context: Option<TraceContext>,
}

impl CallTrace {
    /// `kept` is the trace of the task.
    pub(super) fn begin(job: &Job, kept: Option<&TraceContext>, notification: &Notification) -> Self {
        // The parent is not whatever the worker happens to be in.
        let span = tracing::debug_span!(parent: None, "webhook", otel.kind = "client", task.id = %job.task);
        if let Some(kept) = kept {
            trace::set_parent(&span, kept);
        }
        trace::attribute(&span, "a2a.task.id", job.task.as_str());
        trace::attribute(&span, "a2a.agent", &job.scope.agent);
        trace::attribute(&span, "http.request.method", "POST");
        trace::number(&span, "a2a.event", i64::try_from(notification.number).unwrap_or(i64::MAX));
        // If this server records no traces, the receiver gets the context that the task's sender gave.
        let context = trace::context_of(&span).or_else(|| kept.cloned());
        CallTrace { span, context }
    }

    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        let Some(context) = &self.context else { return };
        // Both were checked when they came: hexadecimal digits, and visible ASCII characters.
        let value = |text: &str| HeaderValue::from_str(text).ok();
        headers.extend(value(context.parent()).map(|value| (TRACE_PARENT, value)));
        headers.extend(context.state().and_then(value).map(|value| (TRACE_STATE, value)));
    }

    /// Notes what became of the call. The receiver's address is in no trace: it may have a secret in its query.
    pub(super) fn end(self, outcome: &Outcome) {
        let error = match outcome {
            Outcome::Answered { status, .. } => {
                trace::number(&self.span, "http.response.status_code", i64::from(status.as_u16()));
                if status.is_success() {
                    return;
                }
                status.as_str()
            }
            Outcome::NoAnswer(why) => why.kind(),
        };
        trace::attribute(&self.span, "error.type", error);
        trace::set_error(&self.span);
    }
}
