//! What must hold for any bytes: targets for the fuzzers, one function each. It takes an input and panics when something
//! is wrong.
//!
//! Compiled for tests, which replay corpora and try new inputs for a few seconds, and for libFuzzer (`cargo xtask fuzz`).
//! `fuzz/README.md` tells how to add one.

mod calls;
mod cards;
mod codecs;
mod fold;
mod json_text;
mod jsonrpc;
mod objects;
mod routes;
mod sse;
mod times;

/// Panics when something does not hold.
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
];

/// What a writer made: one line, and JSON in which no member is there twice.
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
    baton_fuzz::tests!(super::TARGETS: json_text jsonrpc routes sse calls objects cards times fold);
}
