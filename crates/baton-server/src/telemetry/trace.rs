//! Trace contexts: which span of which trace a request, a task or a turn belongs to.
//!
//! A task belongs to the trace of the request that created it: its first message stores that trace context, and whatever
//! happens to the task later (a second turn, a re-run after a crash, a webhook) continues the trace. With the feature
//! `otel` and a layer of `tracing-opentelemetry` in the process, the stored context is the request's own span, so that turns
//! are children of the send. Without, it is the caller's context from the headers, and is passed on unchanged.
//!
//! Spans have level `debug`: with a log of level `info` and no tracing layer they cost one comparison.

use baton_protocol::domain::{ContextId, TaskId, TraceContext};
use tracing::Span;
use tracing::level_filters::LevelFilter;

/// Whether spans may be recorded at all. Checked before anything is allocated for them.
pub(crate) fn enabled() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Whether spans may be exported as traces, and not only written to the log.
pub(crate) fn exported() -> bool {
    cfg!(feature = "otel") && enabled()
}

/// The trace context of the current span, if it is exported.
pub(crate) fn current_context() -> Option<TraceContext> {
    if enabled() { context_of(&Span::current()) } else { None }
}

/// Records on the current span which task it is about.
pub(crate) fn record_task(task: &TaskId, context: Option<&ContextId>) {
    if !enabled() {
        return;
    }
    let span = Span::current();
    span.record("task.id", tracing::field::display(task));
    attribute(&span, "a2a.task.id", task.as_str());
    if let Some(context) = context {
        attribute(&span, "a2a.context.id", context.as_str());
    }
}

#[cfg(feature = "otel")]
mod recorded {
    use baton_protocol::domain::TraceContext;
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    };
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    /// The span's trace context. This starts the span.
    pub(crate) fn context_of(span: &Span) -> Option<TraceContext> {
        if span.is_disabled() {
            return None;
        }
        let context = span.context();
        let own = context.span().span_context().clone();
        if !own.is_valid() {
            return None;
        }
        let (trace, id, flags) = (own.trace_id(), own.span_id(), own.trace_flags().to_u8());
        let state = own.trace_state().header();
        TraceContext::parse(&format!("00-{trace:032x}-{id:016x}-{flags:02x}"), Some(&state))
    }

    /// Makes `context`, which may be a span in another process, the parent of a span. A span that has been started cannot
    /// change its parent; it is linked instead.
    pub(crate) fn set_parent(span: &Span, context: &TraceContext) {
        if span.is_disabled() {
            return;
        }
        if let Some(parent) = read(context)
            && span.set_parent(Context::new().with_remote_span_context(parent.clone())).is_err()
        {
            span.add_link(parent);
        }
    }

    /// Links a span to another one, which may be in another trace.
    pub(crate) fn link(span: &Span, context: &TraceContext) {
        if let Some(other) = (!span.is_disabled()).then(|| read(context)).flatten() {
            span.add_link(other);
        }
    }

    /// Sets an attribute that is only exported, not logged.
    pub(crate) fn attribute(span: &Span, name: &'static str, text: &str) {
        if !span.is_disabled() {
            span.set_attribute(name, text.to_owned());
        }
    }

    /// Sets the span's status to error.
    pub(crate) fn set_error(span: &Span) {
        if !span.is_disabled() {
            span.set_status(Status::error(""));
        }
    }

    pub(crate) fn number(span: &Span, name: &'static str, number: i64) {
        if !span.is_disabled() {
            span.set_attribute(name, number);
        }
    }

    fn read(context: &TraceContext) -> Option<SpanContext> {
        let mut fields = context.parent().split('-').skip(1);
        let trace = TraceId::from_hex(fields.next()?).ok()?;
        let span = SpanId::from_hex(fields.next()?).ok()?;
        let flags = u8::from_str_radix(fields.next()?, 16).ok()?;
        // Other flags are undefined in this version of the format and are not passed on.
        let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
        let state = context.state().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
        Some(SpanContext::new(trace, span, flags, true, state))
    }
}

#[cfg(not(feature = "otel"))]
mod recorded {
    use baton_protocol::domain::TraceContext;
    use tracing::Span;

    pub(crate) fn context_of(_: &Span) -> Option<TraceContext> {
        None
    }

    pub(crate) fn set_parent(_: &Span, _: &TraceContext) {}

    pub(crate) fn link(_: &Span, _: &TraceContext) {}

    pub(crate) fn attribute(_: &Span, _: &'static str, _: &str) {}

    pub(crate) fn set_error(_: &Span) {}

    pub(crate) fn number(_: &Span, _: &'static str, _: i64) {}
}

pub(crate) use recorded::{attribute, context_of, link, number, set_error, set_parent};
