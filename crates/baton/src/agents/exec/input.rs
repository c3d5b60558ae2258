//! What the program reads on stdin.

use baton_protocol::domain::{ActiveExtension, JsonObject, Message, PartContent, SendDetails};
use baton_protocol::wire::v1;
use baton_server::{Asked, Turn};

/// Largest history that is passed to the program; the oldest messages are left out first.
const MOST_HISTORY: usize = 1024 * 1024;

/// A message as plain text: text unchanged, data as JSON, each part on a new line. Files are refused; the error is for
/// the client.
pub(super) fn text(message: &Message) -> Result<Vec<u8>, String> {
    let mut parts = Vec::with_capacity(message.parts.len());
    for (index, part) in message.parts.iter().enumerate() {
        match &part.content {
            PartContent::Text(text) => parts.push(text.as_str()),
            PartContent::Data(json) => parts.push(json.as_str()),
            PartContent::Raw(_) | PartContent::Url(_) => {
                return Err(format!(
                    "This agent reads text and data; parts[{index}] of the message is a file"
                ));
            }
        }
    }
    Ok(parts.join("\n").into_bytes())
}

/// A turn as one line of JSON, with the conversation so far, since a program that exited after its question remembers
/// nothing. `since` holds the messages after the turn began; the last of them is the message to answer.
pub(super) fn turn_line(skill: &str, turn: &Turn, since: &[Message]) -> Vec<u8> {
    let mut line = Vec::with_capacity(1024);
    line.extend_from_slice(b"{\"taskId\":");
    write_string(&mut line, turn.task_id().as_str());
    line.extend_from_slice(b",\"contextId\":");
    write_string(&mut line, turn.context_id().as_str());
    line.extend_from_slice(format!(",\"attempt\":{},\"skill\":", turn.attempt()).as_bytes());
    write_string(&mut line, skill);
    let history = &turn.task().history;
    // The answer comes after the turn's history, even if a message in the history has the same id.
    let (message, since, this) = match since.split_last() {
        Some((answer, since)) => (answer, since, None),
        None => (turn.message(), since, history.iter().rposition(|said| said.id == turn.message().id)),
    };
    let SendDetails { accepted_output_modes, metadata, extensions } = turn.sent_with(message);
    write_details(&mut line, &accepted_output_modes, metadata.as_ref(), &extensions);
    let before = history.iter().enumerate().rev().filter(|(index, _)| Some(*index) != this);
    let newest_first = since.iter().rev().chain(before.map(|(_, said)| &**said));
    if let Some(before) = latest(newest_first, MOST_HISTORY) {
        line.extend_from_slice(b",\"history\":[");
        line.extend_from_slice(&before.join(&b','));
        line.push(b']');
    }
    end_with_message(line, message)
}

/// A message outside any task as one line of JSON.
pub(super) fn message_line(skill: &str, asked: &Asked) -> Vec<u8> {
    let mut line = b"{\"skill\":".to_vec();
    write_string(&mut line, skill);
    let (modes, metadata) = (&asked.accepted_output_modes, asked.request_metadata.as_ref());
    write_details(&mut line, modes, metadata, &asked.extensions);
    end_with_message(line, &asked.message)
}

/// The request's accepted output modes, metadata and activated extensions, if it has any.
fn write_details(
    line: &mut Vec<u8>,
    modes: &[String],
    metadata: Option<&JsonObject>,
    extensions: &[ActiveExtension],
) {
    if !modes.is_empty() {
        line.extend_from_slice(b",\"acceptedOutputModes\":[");
        for (index, mode) in modes.iter().enumerate() {
            if index > 0 {
                line.push(b',');
            }
            write_string(line, mode);
        }
        line.push(b']');
    }
    if let Some(metadata) = metadata {
        line.extend_from_slice(b",\"metadata\":");
        line.extend_from_slice(metadata.as_str().as_bytes());
    }
    for (index, extension) in extensions.iter().enumerate() {
        line.extend_from_slice(if index == 0 { b",\"extensions\":[{\"uri\":" } else { b",{\"uri\":" });
        write_string(line, &extension.uri);
        if let Some(params) = &extension.params {
            line.extend_from_slice(b",\"params\":");
            line.extend_from_slice(params.as_str().as_bytes());
        }
        line.push(b'}');
    }
    if !extensions.is_empty() {
        line.push(b']');
    }
}

/// The answer to a question, for a program that waits for it.
pub(super) fn answer_line(message: &Message, details: &SendDetails) -> Vec<u8> {
    let mut line = b"{\"message\":".to_vec();
    v1::write_message(&mut line, message);
    let SendDetails { accepted_output_modes, metadata, extensions } = details;
    write_details(&mut line, accepted_output_modes, metadata.as_ref(), extensions);
    line.extend_from_slice(b"}\n");
    line
}

fn end_with_message(mut line: Vec<u8>, message: &Message) -> Vec<u8> {
    line.extend_from_slice(b",\"message\":");
    v1::write_message(&mut line, message);
    line.extend_from_slice(b"}\n");
    line
}

fn written(message: &Message) -> Vec<u8> {
    let mut json = Vec::new();
    v1::write_message(&mut json, message);
    json
}

/// The newest messages that fit, in order of time; `None` if there are no messages. Stops at the first that does not
/// fit, so that older messages are not encoded in vain.
fn latest<'a>(newest_first: impl Iterator<Item = &'a Message>, most: usize) -> Option<Vec<Vec<u8>>> {
    let mut newest_first = newest_first.peekable();
    newest_first.peek()?;
    let mut left = Some(most);
    let fitting = newest_first.map_while(|message| {
        let json = written(message);
        left = left?.checked_sub(json.len());
        left.map(|_| json)
    });
    let mut fitting: Vec<_> = fitting.collect();
    fitting.reverse();
    Some(fitting)
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(baton_protocol::domain::JsonText::from_string_value(text).as_str().as_bytes());
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::{JsonText, MessageId, Part, Role};

    use super::*;

    fn message(parts: Vec<Part>) -> Message {
        Message::new(MessageId::parse("m").unwrap(), Role::User, parts)
    }

    #[test]
    fn text_mode_takes_text_and_data_and_refuses_files() {
        let data = Part::data(JsonText::parse("{ \"a\": 1.0 }").unwrap());
        let said = text(&message(vec![Part::text("one\n"), Part::text("é"), data])).unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), "one\n\né\n{\"a\":1.0}");
        assert_eq!(text(&message(vec![Part::text("")])).unwrap(), b"");
        let refused = text(&message(vec![Part::text("see"), Part::raw(vec![1], "image/png", "a.png")]));
        assert!(refused.unwrap_err().contains("parts[1] of the message is a file"));
    }

    #[test]
    fn a_line_holds_no_line_break_but_its_last() {
        let mut asked = Asked::of_text("a\nb");
        asked.accepted_output_modes = vec!["text/plain".to_owned(), "a\nb".to_owned()];
        asked.request_metadata = Some(JsonObject::parse("{\n\"n\": 1.0}").unwrap());
        let params = JsonObject::parse("{\n\"p\": [1]}").ok();
        let extension = |uri: &str, params| ActiveExtension { uri: uri.to_owned(), params };
        asked.extensions = vec![extension("https://a.example/\n", params), extension("urn:b", None)];
        let line = message_line("sk\"ill", &asked);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            (&read["skill"], &read["message"]["parts"][0]["text"]),
            (&"sk\"ill".into(), &"a\nb".into())
        );
        assert_eq!(read["acceptedOutputModes"], serde_json::json!(["text/plain", "a\nb"]));
        assert_eq!(read["metadata"], serde_json::json!({"n": 1.0}));
        let expected =
            serde_json::json!([{"uri": "https://a.example/\n", "params": {"p": [1]}}, {"uri": "urn:b"}]);
        assert_eq!(read["extensions"], expected);
    }

    #[test]
    fn the_oldest_messages_are_left_out_first() {
        let all = ["aaaa", "bb", "cc", "d"].map(|text| message(vec![Part::text(text)]));
        let bytes: usize = all.iter().map(|message| written(message).len()).sum();
        let fitting = |most| latest(all.iter().rev(), most);
        let json = |from: usize| Some(all[from..].iter().map(written).collect::<Vec<_>>());
        assert_eq!(fitting(bytes), json(0));
        assert_eq!(fitting(bytes - 1), json(1));
        assert_eq!(fitting(0), json(4));
        assert_eq!(latest([].into_iter(), bytes), None);
    }
}
