//! The trace context of a request: the W3C `traceparent` and `tracestate` headers.

use std::sync::Arc;

/// Longest `tracestate` that is kept; W3C requires at least this.
const MOST_STATE: usize = 512;

/// A validated trace context. Stored with a task, so that its later turns belong to the same trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: Arc<str>,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// `None` if `traceparent` is not valid: it is ignored, never an error. A `tracestate` that cannot be kept is
    /// dropped without affecting `traceparent`.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let known = parent.len() == 55 || (parent.len() > 55 && !parent.starts_with("00") && at(parent, 55));
        let head = parent.get(..55)?;
        let hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let mut fields = head.split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let lengths = (version.len(), trace.len(), span.len(), flags.len()) == (2, 32, 16, 2);
        let digits = [version, trace, span, flags].into_iter().all(hex) && fields.next().is_none();
        if !known || !lengths || !digits || version == "ff" || zero(trace) || zero(span) {
            return None;
        }
        let keepable = |state: &&str| {
            let visible = state.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            !state.is_empty() && state.len() <= MOST_STATE && visible
        };
        let state = state.map(str::trim).filter(keepable).map(Arc::from);
        Some(TraceContext { parent: Arc::from(head), state })
    }

    /// The value of the `traceparent` header.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The value of the `tracestate` header.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The trace's own id, 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.parent[3..35]
    }
}

/// Later versions may have more fields, after another dash.
fn at(parent: &str, end: usize) -> bool {
    parent.as_bytes().get(end) == Some(&b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_traceparent_counts() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (text, counts) in [
            (good.to_owned(), true),
            (good.replacen("00", "cc", 1), true),
            (format!("{}-more", good.replacen("00", "cc", 1)), true),
            (format!("{}more", good.replacen("00", "cc", 1)), false),
            (format!("{good}-more"), false),
            (good.replacen("00", "ff", 1), false),
            (good.to_uppercase(), false),
            (good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)), false),
            (good.replace("b7ad6b7169203331", &"0".repeat(16)), false),
            (good.replace('-', "_"), false),
            (good[..54].to_owned(), false),
            ("é".repeat(40), false),
            (String::new(), false),
        ] {
            assert_eq!(TraceContext::parse(&text, None).is_some(), counts, "{text}");
        }
        let context = TraceContext::parse(good, Some(" a=1,b=2 ")).unwrap();
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.state(), Some("a=1,b=2"));
        for dropped in ["", "a=\u{7f}", "a=ä", &"x".repeat(513)] {
            assert_eq!(TraceContext::parse(good, Some(dropped)).unwrap().state(), None);
        }
    }
}
