//! Writes events in all forms that the standard for server-sent events allows.

use serde_json::Value;

use super::script::Framing;

const LARGE: usize = 1024 * 1024;

/// The pieces of the body, in order; each is sent as a chunk of its own.
pub(super) fn pieces(framing: Framing, events: &[Value]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (number, event) in (1..).zip(events) {
        let text = event.to_string();
        match framing {
            Framing::Plain => all.push(format!("data: {text}\n\n")),
            Framing::Comments => {
                all.push(": keep-alive\n\n".to_owned());
                all.push(format!(":\n: hello\ndata: {text}\n: still here\n\n\n"));
            }
            Framing::Crlf => all.push(format!("data: {text}\r\n\r\n")),
            Framing::Lines => {
                let pretty = serde_json::to_string_pretty(event).unwrap_or(text);
                let lines: String = pretty.lines().map(|line| format!("data: {line}\n")).collect();
                all.push(lines + "\n");
            }
            Framing::Fields => {
                all.push(format!("retry:3000\nid:{number}\nevent:message\nmood:good\ndata:{text}\n\n"))
            }
            Framing::Split => all.push(format!("data: {text}\n\n")),
            Framing::Large => all.push(format!("data: {text}\n\n")),
        }
    }
    let bytes: Vec<Vec<u8>> = all.into_iter().map(String::into_bytes).collect();
    if framing == Framing::Split { split(&bytes.concat()) } else { bytes }
}

/// Splits at difficult positions: after `da`, inside every multi-byte character, before the empty line.
fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    const MOST: usize = 24;
    let mut cuts = vec![2];
    let mut inside = bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 == 0x80).map(|(at, _)| at);
    cuts.extend(inside.by_ref().take(MOST));
    cuts.push(bytes.len() - 1);
    cuts.dedup();
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().filter(|cut| *cut > 0) {
        if cut > from {
            pieces.push(bytes[from..cut].to_vec());
            from = cut;
        }
    }
    pieces.push(bytes[from..].to_vec());
    pieces
}

/// Padding for a large event.
pub(super) fn padding(framing: Framing) -> String {
    if framing == Framing::Large { "x".repeat(LARGE) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::sse::Reader;
    use serde_json::json;

    #[test]
    fn every_framing_holds_the_same_events() {
        let events = [json!({"a": "größer 𝄞", "b": [1, 2]}), json!({"c": null})];
        for framing in [
            Framing::Plain,
            Framing::Comments,
            Framing::Crlf,
            Framing::Lines,
            Framing::Fields,
            Framing::Split,
        ] {
            let (mut reader, mut read) = (Reader::default(), Vec::new());
            let pieces = pieces(framing, &events);
            pieces.iter().for_each(|piece| reader.feed(piece, &mut read));
            let read: Vec<Value> =
                read.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
            assert_eq!(read, events, "{framing:?}");
        }
        let split = pieces(Framing::Split, &events);
        assert!(split.iter().any(|piece| std::str::from_utf8(piece).is_err()), "no character is cut");
    }
}
