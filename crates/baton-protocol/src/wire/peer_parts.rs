//! Parts in a peer's answers of a kind that nobody knows: a later version may have them. A client takes such a part for
//! data, whole and with all its members, so that the rest of the answer can be read and nothing of it is lost. What the
//! server stores is not read in this way.

use std::ops::Range;

use super::members::{Members, items};

/// The deepest way to a part: list, task, history, message, parts, part.
const DEEPEST: usize = 8;

/// Members that lead to parts.
const ON_THE_WAY: &[&str] = &[
    "artifact",
    "artifacts",
    "artifactUpdate",
    "artifact_update",
    "history",
    "message",
    "msg",
    "status",
    "statusUpdate",
    "status_update",
    "task",
    "tasks",
    "update",
];

/// Members that are lists of parts; `content` is that of messages in 0.3 by HTTP+JSON.
const LISTS: &[&str] = &["parts", "content"];

/// What a part is known by: its content, in any generation, or the name of its kind.
const CONTENTS: &[&str] = &["text", "raw", "url", "data", "file", "bytes", "uri"];
const KINDS: &[&str] = &["\"text\"", "\"file\"", "\"data\""];

/// The text with parts of unknown kinds as data; `None` if there are none.
pub(super) fn as_data(text: &str) -> Option<String> {
    let mut found = Vec::new();
    find(text, text, DEEPEST, &mut found);
    if found.is_empty() {
        return None;
    }
    let edits = found.into_iter().map(|part| {
        let whole = format!("{{\"data\":{}}}", &text[part.clone()]);
        (part, whole)
    });
    Some(spliced(text, edits))
}

/// The text with other text at some places, which are in order.
pub(super) fn spliced(text: &str, edits: impl IntoIterator<Item = (Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (place, instead) in edits {
        out.push_str(&text[copied..place.start]);
        out.push_str(&instead);
        copied = place.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// Where a piece of a text is.
pub(super) fn place_of(text: &str, piece: &str) -> Option<Range<usize>> {
    let start = piece.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(start..start + piece.len())
}

/// Looks for such parts below a value, in the order of the text.
fn find(text: &str, value: &str, depth: usize, found: &mut Vec<Range<usize>>) {
    if depth == 0 {
        return;
    }
    if let Some(items) = items(value) {
        return items.iter().for_each(|item| find(text, item.get(), depth - 1, found));
    }
    let Some(members) = Members::of(value) else { return };
    for (name, value) in &members.0 {
        if LISTS.contains(&&**name) {
            let parts = items(value.get()).unwrap_or_default();
            let unknown = parts.iter().map(|part| part.get()).filter(|part| is_unknown(part));
            found.extend(unknown.filter_map(|part| place_of(text, part)));
        } else if ON_THE_WAY.contains(&&**name) {
            find(text, value.get(), depth - 1, found);
        }
    }
}

fn is_unknown(part: &str) -> bool {
    let Some(members) = Members::of(part) else { return false };
    // In 0.1 the kind was called type.
    match members.get("kind").or_else(|| members.get("type")) {
        Some(kind) if kind.starts_with('"') => !KINDS.contains(&kind),
        _ => !CONTENTS.iter().any(|name| members.get(name).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::PartContent;
    use crate::operation::{Operation, Reply};
    use crate::wire::StreamItem;
    use crate::wire::dialect::Dialect;

    #[test]
    fn a_part_of_an_unknown_kind_is_data_with_all_its_members() {
        let hologram = r#"{"hologram":[1.0, {"text":"x"}],"filename":"h"}"#;
        let of_kind = r#"{"kind":"hologram","text":"x"}"#;
        for (dialect, text, part) in [
            (
                Dialect::V1,
                format!(
                    r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","artifact":{{"artifactId":"a","parts":[{{"text":"known"}},{hologram}]}}}}}}"#
                ),
                hologram,
            ),
            (
                Dialect::V0_3,
                format!(
                    r#"{{"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{{"artifactId":"a","parts":[{{"kind":"text","text":"known"}},{of_kind}]}}}}"#
                ),
                of_kind,
            ),
            (
                Dialect::V0_3Rest,
                format!(
                    r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","artifact":{{"artifactId":"a","parts":[{{"text":"known"}},{hologram}]}}}}}}"#
                ),
                hologram,
            ),
            (
                Dialect::V0_1,
                format!(
                    r#"{{"id":"t","artifact":{{"index":0,"parts":[{{"type":"text","text":"known"}},{}]}}}}"#,
                    of_kind.replace("kind", "type")
                ),
                &of_kind.replace("kind", "type"),
            ),
        ] {
            let item = dialect.read_stream_item(&text).unwrap_or_else(|error| panic!("{dialect:?}: {error}"));
            let StreamItem::Artifact { update, .. } = item.value else { panic!("{dialect:?}: {item:?}") };
            let parts = &update.artifact.parts;
            assert!(matches!(&parts[0].content, PartContent::Text(text) if text == "known"), "{dialect:?}");
            let PartContent::Data(data) = &parts[1].content else { panic!("{dialect:?}: {parts:?}") };
            assert_eq!(data.as_str(), part.replace(", ", ","), "{dialect:?}");
        }
    }

    #[test]
    fn parts_of_every_message_are_looked_at_and_nothing_else() {
        let message = r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"x":1}]}"#;
        let text = format!(
            r#"{{"id":"t","contextId":"c","metadata":{{"parts":[{{"x":2}}]}},"history":[{message}],
                "status":{{"state":"TASK_STATE_DREAMING","message":{message}}},"artifacts":[{{"artifactId":"a","parts":[{{"x":3}}]}}]}}"#
        );
        let read = Dialect::V1.read_reply(Operation::GetTask, &text).unwrap();
        assert_eq!(read.unknown_state(), Some("TASK_STATE_DREAMING"));
        let Reply::Task(task) = read.value else { panic!("{read:?}") };
        let said = task.status.message.as_ref().unwrap();
        for parts in [&said.parts, &task.history[0].parts, &task.artifacts[0].parts] {
            assert!(matches!(parts[0].content, PartContent::Data(_)), "{parts:?}");
        }
        assert_eq!(task.metadata.unwrap().as_str(), r#"{"parts":[{"x":2}]}"#);
    }

    /// Nesting without end, and as many parts as fit: neither takes long, nor much of the stack.
    #[test]
    fn p09_hostile_answers_are_read_in_one_pass() {
        let deep = r#"{"task":"#.repeat(200_000) + "1" + &"}".repeat(200_000);
        assert_eq!(as_data(&deep), None);
        let many = format!(r#"{{"parts":[{}{{"x":1}}]}}"#, r#"{"x":1},"#.repeat(300_000));
        assert_eq!(as_data(&many).unwrap().matches("data").count(), 300_001);
    }
}
