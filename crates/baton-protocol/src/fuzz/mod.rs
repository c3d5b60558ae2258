//! Fuzz targets, one function each: it takes any bytes and panics if a property does not hold.
//!
//! Compiled for tests, which replay corpora and try new inputs for a few seconds, and for libFuzzer (`cargo xtask
//! fuzz`). `fuzz/README.md` says how to add one.

mod calls;
mod cards;
mod codecs;
mod fold;
mod json_text;
mod jsonrpc;
mod messages;
mod notifications;
mod objects;
mod routes;
mod sse;
mod times;

/// Panics if a property does not hold.
pub type Check = fn(&[u8]);

/// In the order of `fuzz/targets.tsv`.
pub const TARGETS: &[(&str, Check)] = &[
    ("json_text", json_text::check),
    ("jsonrpc", jsonrpc::check),
    ("routes", routes::check),
    ("sse", sse::check),
    ("calls", calls::check),
    ("objects", objects::check),
    ("cards", cards::check),
    ("times", times::check),
    ("fold", fold::check),
    ("notifications", notifications::check),
    ("grpc_calls", messages::calls),
    ("grpc_answers", messages::answers),
];

/// The output of a writer, checked to be one line of JSON without duplicate members.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).expect("codecs write text");
    assert!(!text.contains(['\n', '\r']), "a raw line break would end an SSE event: {text}");
    json_text::assert_well_formed(&text);
    text
}

#[cfg(test)]
mod tests {
    baton_fuzz::tests!(super::TARGETS: json_text jsonrpc routes sse calls objects cards times fold notifications grpc_calls grpc_answers);
}
