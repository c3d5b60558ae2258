//! Places in traces.
//!
//! A task belongs to the trace it was sent in: its first message keeps that place in the log, and whatever happens to
//! the task later (a second turn, a re-run after a crash, a webhook) continues there. With the feature `otel` and a
//! layer of `tracing-opentelemetry` in the process the kept place is the request's own span, so that turns hang below
//! the send. Without, it is the caller's, as its headers say, and is handed on unchanged.
//!
//! Spans are of level `debug`: with a log of level `info` and no traces they cost a comparison.

use baton_protocol::domain::{ContextId, TaskId, TraceContext};
use tracing::Span;
use tracing::level_filters::LevelFilter;

/// Does anybody want spans? Asked before anything is made for them.
pub(crate) fn wanted() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Might they be recorded for traces, or only be written to a log?
pub(crate) fn records() -> bool {
    cfg!(feature = "otel") && wanted()
}

/// The place of the span this is called in, if it is recorded.
pub(crate) fn here() -> Option<TraceContext> {
    if wanted() { place(&Span::current()) } else { None }
}

/// Says on the current span which task it is about.
pub(crate) fn about(task: &TaskId, context: Option<&ContextId>) {
    if !wanted() {
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

    /// The span's own place; starts it.
    pub(crate) fn place(span: &Span) -> Option<TraceContext> {
        if span.is_disabled() {
            return None;
        }
        let context = span.context();
        let place = context.span().span_context().clone();
        if !place.is_valid() {
            return None;
        }
        let (trace, own, flags) = (place.trace_id(), place.span_id(), place.trace_flags().to_u8());
        let state = place.trace_state().header();
        TraceContext::parse(&format!("00-{trace:032x}-{own:016x}-{flags:02x}"), Some(&state))
    }

    /// Puts a span below a place that may be in another process. Too late for a span that has been started: it is
    /// linked to the place then.
    pub(crate) fn put_below(span: &Span, place: &TraceContext) {
        if span.is_disabled() {
            return;
        }
        if let Some(place) = read(place)
            && span.set_parent(Context::new().with_remote_span_context(place.clone())).is_err()
        {
            span.add_link(place);
        }
    }

    /// Points from a span to another place, of another trace maybe.
    pub(crate) fn link(span: &Span, place: &TraceContext) {
        if let Some(place) = (!span.is_disabled()).then(|| read(place)).flatten() {
            span.add_link(place);
        }
    }

    /// For traces alone, where names differ from those of the log.
    pub(crate) fn attribute(span: &Span, name: &'static str, text: &str) {
        if !span.is_disabled() {
            span.set_attribute(name, text.to_owned());
        }
    }

    /// The span is about something that went wrong here.
    pub(crate) fn fault(span: &Span) {
        if !span.is_disabled() {
            span.set_status(Status::error(""));
        }
    }

    pub(crate) fn number(span: &Span, name: &'static str, number: i64) {
        if !span.is_disabled() {
            span.set_attribute(name, number);
        }
    }

    fn read(place: &TraceContext) -> Option<SpanContext> {
        let mut fields = place.parent().split('-').skip(1);
        let trace = TraceId::from_hex(fields.next()?).ok()?;
        let span = SpanId::from_hex(fields.next()?).ok()?;
        let flags = u8::from_str_radix(fields.next()?, 16).ok()?;
        // Bits a later version may give a meaning to are not ours to hand on.
        let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
        let state = place.state().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
        Some(SpanContext::new(trace, span, flags, true, state))
    }
}

#[cfg(not(feature = "otel"))]
mod recorded {
    use baton_protocol::domain::TraceContext;
    use tracing::Span;

    pub(crate) fn place(_: &Span) -> Option<TraceContext> {
        None
    }

    pub(crate) fn put_below(_: &Span, _: &TraceContext) {}

    pub(crate) fn link(_: &Span, _: &TraceContext) {}

    pub(crate) fn attribute(_: &Span, _: &'static str, _: &str) {}

    pub(crate) fn fault(_: &Span) {}

    pub(crate) fn number(_: &Span, _: &'static str, _: i64) {}
}

pub(crate) use recorded::{attribute, fault, link, number, place, put_below};
