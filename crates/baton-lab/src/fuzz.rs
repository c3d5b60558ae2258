//! Fuzz targets for agents' answers and for documents. See `fuzz/README.md`.

use serde_json::Value;

use crate::acts::condition::Condition;
use crate::acts::{assertion, corrections, document, path, reading, stream};
use crate::discover;
use crate::generation::{Binding, Generation};
use crate::target;
use crate::wire::sse::{Event, Reader};
use crate::wire::{answer, evidence, grpc, json, proto_json};

/// Panics if a property does not hold.
pub type Check = fn(&[u8]);

/// In the order of `fuzz/targets.tsv`.
pub const TARGETS: &[(&str, Check)] = &[
    ("lab_sse", sse),
    ("lab_card", card),
    ("lab_answer", answers),
    ("lab_acts", acts),
    ("lab_assertion", assertions),
    ("lab_grpc", grpc_messages),
];

/// The same events wherever reads end.
fn sse(bytes: &[u8]) {
    let whole = events(&[bytes]);
    for size in [1, 2, 5] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(events(&pieces), whole, "in reads of {size}");
    }
    for event in whole {
        for (generation, binding) in ways() {
            let _ = answer::read_event(generation, binding, &event);
        }
    }
}

fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut reader, mut events) = (Reader::default(), Vec::new());
    pieces.iter().for_each(|piece| reader.feed(piece, &mut events));
    events
}

fn ways() -> impl Iterator<Item = (Generation, Binding)> {
    Generation::ALL
        .into_iter()
        .flat_map(|generation| Binding::ALL.into_iter().map(move |way| (generation, way)))
}

/// Any card, however wrong. The first line is an address as users type it.
fn card(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(base) = discover::base_of(text.lines().next().unwrap_or_default()) {
        assert!(base.starts_with("http"), "{base}");
        let again = discover::base_of(&base).map_err(|diagnosis| diagnosis.sentence);
        assert_eq!(again.as_ref(), Ok(&base), "asked for what was found");
    }
    let Some(card) = json::read(bytes) else { return };
    for ((generation, _), interface) in target::interfaces(&card) {
        assert!(Generation::ALL.contains(&generation) && interface.tenant != Some(String::new()));
    }
    let _ = target::examples(&card);
    for generation in Generation::ALL {
        let _ = target::extensions_header(&card, generation);
    }
}

fn holds_fractions(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(holds_fractions),
        Value::Object(members) => members.values().any(holds_fractions),
        _ => false,
    }
}

/// Whole answers in every generation and binding.
fn answers(bytes: &[u8]) {
    if let Some(value) = json::read(bytes) {
        let text = value.to_string();
        // A number with many digits may lose its last one, which does not matter for any check.
        if !holds_fractions(&value) {
            assert_eq!(json::read(text.as_bytes()).as_ref(), Some(&value), "{text}");
        }
        let _ = proto_json::reply(&value);
    } else {
        assert!(serde_json::from_slice::<Value>(bytes).is_err());
    }
    for status in [200, 404, 500] {
        let received = evidence::Received { status, headers: Vec::new(), body: evidence::shown(bytes) };
        for (generation, binding) in ways() {
            let read = answer::read(generation, binding, &received, bytes);
            assert_eq!(read.status(), status);
            assert!(!read.summary().is_empty());
        }
    }
}

/// Any bytes as every message of gRPC, as details of an error and as frames. What is read without anything odd is the
/// same after it was written.
fn grpc_messages(bytes: &[u8]) {
    for generation in [Generation::V1, Generation::V0_3] {
        grpc::reread(generation, bytes);
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let headers = [("grpc-status".to_owned(), "5".to_owned()), ("grpc-status-details-bin".to_owned(), text)];
    assert!(grpc::status::Status::read(&headers).is_some_and(|status| status.code == 5));
    let mut frames = grpc::frames::Reader::default();
    frames.feed(bytes);
    let read: usize = std::iter::from_fn(|| frames.next()).map(|frame| frame.message.len() + 5).sum();
    assert_eq!(read + frames.left(), bytes.len());
}

/// A document, and all processing of it before anything is sent.
fn acts(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut document = match document::parse("a.acts.yaml", text) {
        Ok(document) => document,
        Err(bad) => {
            assert!(bad.to_string().starts_with("a.acts.yaml") && !bad.reason.contains('\n'), "{bad}");
            return;
        }
    };
    for test in document.suites.iter_mut().flat_map(|suite| &mut suite.tests) {
        let once = corrections::apply(test);
        let mended = format!("{test:?}");
        let twice = corrections::apply(test);
        assert!(
            twice.len() <= once.len() && format!("{test:?}") == mended,
            "corrected twice: {once:?} {twice:?}"
        );
        for step in &test.steps {
            if let Some(operation) = &step.operation {
                assert!(reading::operation(operation).is_some());
            }
        }
    }
}

/// The input is a path or a condition on the first line, then the expected value, then the actual one.
fn assertions(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let mut value = || lines.next().and_then(|line| json::read(line.as_bytes())).unwrap_or_default();
    let (expected, actual) = (value(), value());
    let one = path::one(&actual, first);
    let every = path::every(&actual, first);
    if let (Ok(Some(one)), Ok(every)) = (&one, &every) {
        assert_eq!(*every, [*one], "one node, by two ways");
    }
    if let Ok(condition) = Condition::parse(first) {
        let _ = condition.is_met(&actual);
    }
    let _ = assertion::check(&expected, Some(&actual));
    let _ = assertion::check(&expected, None);
    let _ = stream::kind_of(&actual);
    let _ = stream::state_of(&actual);
}

#[cfg(test)]
mod tests {
    baton_fuzz::tests!(super::TARGETS: lab_sse lab_card lab_answer lab_acts lab_assertion lab_grpc);
}
