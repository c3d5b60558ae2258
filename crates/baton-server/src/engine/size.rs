//! Computes how large an event will be as JSON, and splits one that is too large.

use baton_protocol::domain::{Artifact, ArtifactUpdate, JsonObject, Message, Part, PartContent, Task};

/// Estimated bytes of ids, braces and member names around the content.
const FRAME: usize = 2048;

/// Length of a text as JSON, without the quotes.
pub(crate) fn of_text(text: &str) -> usize {
    text.bytes().map(|byte| usize::from(WIDTHS[usize::from(byte)])).sum()
}

/// How many bytes each byte becomes when it is escaped.
const WIDTHS: [u8; 256] = {
    let mut widths = [1; 256];
    let mut byte = 0;
    while byte < 256 {
        widths[byte] = match byte as u8 {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0x00..0x20 => 6,
            _ => 1,
        };
        byte += 1;
    }
    widths
};

fn of_part(part: &Part) -> usize {
    let content = match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => of_text(text),
        PartContent::Raw(bytes) => bytes.len().div_ceil(3) * 4,
        PartContent::Data(json) => json.as_str().len(),
    };
    let beside = |text: &Option<String>| text.as_deref().map_or(0, of_text);
    let metadata = part.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
    content + beside(&part.filename) + beside(&part.media_type) + metadata + 64
}

pub(crate) fn of_parts(parts: &[Part]) -> usize {
    parts.iter().map(of_part).sum()
}

pub(crate) fn of_artifact(artifact: &Artifact) -> usize {
    of_parts(&artifact.parts) + beside_parts(artifact)
}

fn beside_parts(artifact: &Artifact) -> usize {
    let text = |text: &Option<String>| text.as_deref().map_or(0, of_text);
    let metadata = artifact.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
    let extensions: usize = artifact.extensions.iter().map(|uri| of_text(uri) + 3).sum();
    FRAME + text(&artifact.name) + text(&artifact.description) + metadata + extensions
}

pub(crate) fn of_message(message: &Message) -> usize {
    let metadata = message.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
    FRAME + of_parts(&message.parts) + metadata
}

/// About how many bytes the whole task has, computed without reading its texts; never more than the events it was folded
/// from.
pub(crate) fn of_task(task: &Task) -> usize {
    let json = |object: &Option<JsonObject>| object.as_ref().map_or(0, |object| object.as_str().len());
    let parts = |parts: &[Part]| -> usize {
        let content = |part: &Part| match &part.content {
            PartContent::Text(text) | PartContent::Url(text) => text.len(),
            PartContent::Raw(bytes) => bytes.len().div_ceil(3) * 4,
            PartContent::Data(json) => json.as_str().len(),
        };
        parts.iter().map(|part| 16 + content(part) + json(&part.metadata)).sum()
    };
    let said = task.history.iter().map(|message| &**message).chain(&task.status.message);
    let said: usize = said.map(|message| 128 + json(&message.metadata) + parts(&message.parts)).sum();
    let made = task.artifacts.iter().map(|artifact| 96 + json(&artifact.metadata) + parts(&artifact.parts));
    said + made.sum::<usize>()
}

/// Cuts a text into pieces of at most `most` bytes as JSON, never inside a character. Empty text is one piece.
pub(crate) fn pieces(text: &str, most: usize) -> Vec<&str> {
    if of_text(text) <= most {
        return vec![text];
    }
    let (mut pieces, mut start, mut size) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        let width = of_text(character.encode_utf8(&mut [0; 4]));
        if size + width > most && at > start {
            pieces.push(&text[start..at]);
            (start, size) = (at, 0);
        }
        size += width;
    }
    pieces.push(&text[start..]);
    pieces
}

/// A part that no event can hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub(crate) bytes: usize,
}

/// Splits an artifact update into events of at most `most` bytes. Text is cut, and its pieces are joined again when the task
/// is folded; other parts are not cut.
pub(crate) fn split(update: ArtifactUpdate, most: usize) -> Result<Vec<ArtifactUpdate>, TooLarge> {
    let whole = of_artifact(&update.artifact);
    if whole <= most {
        return Ok(vec![update]);
    }
    let frame = beside_parts(&update.artifact);
    let room = most.saturating_sub(frame);
    let ArtifactUpdate { mut artifact, append, joins, last_chunk, ordinal, metadata } = update;
    let mut chunks = vec![(Vec::new(), joins)];
    let mut size = 0;
    for part in std::mem::take(&mut artifact.parts) {
        for (n, part) in cut(part, room)?.into_iter().enumerate() {
            let bytes = of_part(&part);
            if n > 0 || (size + bytes > room && size > 0) {
                chunks.push((Vec::new(), n > 0));
                size = 0;
            }
            size += bytes;
            if let Some((chunk, _)) = chunks.last_mut() {
                chunk.push(part);
            }
        }
    }
    let last = chunks.len() - 1;
    let updates = chunks.into_iter().enumerate().map(|(n, (parts, joins))| {
        let rest = Artifact::new(artifact.id.clone(), Vec::new());
        let shell = if n == 0 { std::mem::replace(&mut artifact, rest) } else { artifact.clone() };
        ArtifactUpdate {
            artifact: Artifact { parts, ..shell },
            append: append || n > 0,
            joins,
            last_chunk: last_chunk && n == last,
            ordinal,
            metadata: if n == 0 { metadata.clone() } else { None },
        }
    });
    Ok(updates.collect())
}

/// A part in pieces that fit; only text can be cut.
fn cut(part: Part, room: usize) -> Result<Vec<Part>, TooLarge> {
    let bytes = of_part(&part);
    if bytes <= room {
        return Ok(vec![part]);
    }
    match &part.content {
        PartContent::Text(text) if bytes - of_text(text) < room / 2 => {
            let room = room - (bytes - of_text(text));
            let shell = Part { content: PartContent::Text(String::new()), ..part.clone() };
            let piece = |text: &str| Part { content: PartContent::Text(text.to_owned()), ..shell.clone() };
            Ok(pieces(text, room).into_iter().map(piece).collect())
        }
        _ => Err(TooLarge { bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_protocol::domain::ArtifactId;

    fn update(parts: Vec<Part>) -> ArtifactUpdate {
        let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), parts);
        ArtifactUpdate { artifact, append: false, joins: false, last_chunk: true, ordinal: 0, metadata: None }
    }

    #[test]
    fn long_text_is_cut_and_nothing_is_lost() {
        let text: String = "wörd \u{2028}\n\u{1}".repeat(20_000);
        let most = 16 * 1024;
        let cut = split(update(vec![Part::text("head"), Part::text(text.as_str())]), most).unwrap();
        let mut joined = String::new();
        for (n, chunk) in cut.iter().enumerate() {
            assert!(of_artifact(&chunk.artifact) <= most);
            assert_eq!((chunk.append, chunk.last_chunk), (n > 0, n == cut.len() - 1));
            for part in &chunk.artifact.parts {
                let PartContent::Text(text) = &part.content else { panic!("not text") };
                joined.push_str(text);
            }
        }
        assert_eq!(joined, format!("head{text}"));
    }

    #[test]
    fn what_is_not_text_cannot_be_cut() {
        let raw = Part::raw(vec![0; 20_000], "application/octet-stream", "f");
        assert!(split(update(vec![raw.clone()]), 16 * 1024).is_err());
        // Whole parts are still spread over several events.
        assert_eq!(split(update(vec![raw.clone(), raw]), 40 * 1024).unwrap().len(), 2);
    }
}
