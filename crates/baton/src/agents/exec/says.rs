//! Parses a line of JSON: one object with one member; the member's name says what kind of statement it is.

use baton_protocol::domain::json::{JsonKind, JsonRefused};
use baton_protocol::domain::{Artifact, ArtifactId, JsonObject, JsonText, Part};
use baton_protocol::wire::v1;

/// One parsed line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Says {
    /// A status text; the task stays in state working.
    Progress(Vec<Part>),
    Artifact(Piece),
    /// A question; the task waits for the answer.
    InputRequired(String),
    /// The user must authorise something elsewhere; the task waits for a message.
    AuthRequired(String),
    /// The agent will not do this.
    Reject(Vec<Part>),
    Fail(Vec<Part>),
    /// The final message of a completed task.
    Complete(Vec<Part>),
}

/// A piece of an artifact, or all of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) id: Option<ArtifactId>,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) metadata: Option<JsonObject>,
    pub(super) parts: Vec<Part>,
    pub(super) append: bool,
    pub(super) last: bool,
}

const VERBS: &[&str] =
    &["progress", "artifact", "inputRequired", "authRequired", "reject", "fail", "complete", "message"];

/// Members of a part, which an artifact with only one part may have directly.
const PART: &[&str] = &["text", "raw", "url", "data", "filename", "mediaType"];
const ARTIFACT: &[&str] = &["id", "name", "description", "metadata", "parts", "append", "lastChunk"];

/// Parses a line; the error says what is wrong and what is expected.
pub(super) fn read(line: &str) -> Result<Says, String> {
    let object = JsonObject::parse(line.trim()).map_err(|refused| match refused {
        JsonRefused::Syntax { .. } => {
            format!(
                "is not JSON. Each line must be {}. What is meant for people belongs on stderr",
                allowed()
            )
        }
        JsonRefused::NotAnObject => format!("is not an object. Each line must be {}", allowed()),
        refused => refused.to_string(),
    })?;
    let mut members = object.members();
    let (Some((verb, value)), None) = (members.next(), members.next()) else {
        return Err(format!("must have exactly one member: {}", allowed()));
    };
    match verb.as_ref() {
        "progress" => words(&verb, value).map(Says::Progress),
        "artifact" => piece(value).map(Says::Artifact),
        "inputRequired" => text(&verb, value).map(Says::InputRequired),
        "authRequired" => text(&verb, value).map(Says::AuthRequired),
        "reject" => words(&verb, value).map(Says::Reject),
        "fail" => words(&verb, value).map(Says::Fail),
        "complete" | "message" => words(&verb, value).map(Says::Complete),
        other => Err(format!("says {}. Each line must be {}", unknown(other, VERBS), allowed())),
    }
}

fn allowed() -> String {
    format!("one JSON object with one of {}", VERBS.join(", "))
}

/// An unknown name, with the most similar known one.
fn unknown(name: &str, known: &[&str]) -> String {
    const MOST: usize = 40;
    let shown: String = name.chars().take(MOST).flat_map(char::escape_default).collect();
    let near = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()), known));
    match near.filter(|_| name.len() <= MOST).min() {
        Some((distance, meant)) if distance <= 2 || distance * 3 <= name.len() => {
            format!("`{shown}`, which is not known; did you mean `{meant}`?")
        }
        _ => format!("`{shown}`, which is not known"),
    }
}

/// A string.
fn text(verb: &str, value: &str) -> Result<String, String> {
    serde_json::from_str(value).map_err(|_| format!("`{verb}` must be a string"))
}

/// A string, or an object with `parts`.
fn words(verb: &str, value: &str) -> Result<Vec<Part>, String> {
    if kind(value) == JsonKind::String {
        return text(verb, value).map(|text| vec![Part::text(text)]);
    }
    let object =
        JsonObject::parse(value).map_err(|_| format!("`{verb}` must be a string or {{\"parts\": […]}}"))?;
    match object.members().collect::<Vec<_>>().as_slice() {
        [(name, list)] if name == "parts" => parts(list),
        _ => Err(format!("`{verb}` must be a string or {{\"parts\": […]}}")),
    }
}

fn piece(value: &str) -> Result<Piece, String> {
    if kind(value) == JsonKind::String {
        return Err(
            "`artifact` must be an object, such as {\"name\": \"greeting\", \"text\": \"Hello\"}".to_owned()
        );
    }
    let object = JsonObject::parse(value).map_err(|_| "`artifact` must be an object".to_owned())?;
    let (mut single, mut append, mut last) = (Vec::new(), false, None);
    let (mut id, mut list) = (None, None);
    let (mut name, mut description, mut metadata) = (None, None, None);
    for (member, value) in object.members() {
        let path = format!("artifact.{member}");
        match member.as_ref() {
            "id" => {
                let parsed = ArtifactId::parse(&text(&path, value)?);
                id = Some(parsed.map_err(|bad| format!("`artifact.id` {bad}"))?);
            }
            "name" => name = Some(text(&path, value)?),
            "description" => description = Some(text(&path, value)?),
            "metadata" => {
                let object = JsonObject::parse(value);
                metadata = Some(object.map_err(|_| "`artifact.metadata` must be an object".to_owned())?);
            }
            "append" => append = flag(&path, value)?,
            "lastChunk" => last = Some(flag(&path, value)?),
            "parts" => list = Some(parts(value)?),
            known if PART.contains(&known) => single.push(format!("\"{known}\":{value}")),
            "file" => {
                return Err("`artifact.file` is not known; a file is `raw` (base64) or `url`".to_owned());
            }
            other => {
                let known = [ARTIFACT, PART].concat();
                return Err(format!("`artifact` has {}", unknown(other, &known)));
            }
        }
    }
    let parts = match (list, single.is_empty()) {
        (Some(list), true) => list,
        (None, false) => parts(&format!("[{{{}}}]", single.join(",")))?,
        (Some(_), false) => {
            return Err("`artifact` has `parts` and a part of its own; use one of them".to_owned());
        }
        (None, true) => return Err("`artifact` needs one of text, raw, url, data and parts".to_owned()),
    };
    Ok(Piece { id, name, description, metadata, parts, append, last: last.unwrap_or(!append) })
}

impl Piece {
    pub(super) fn artifact(self, id: ArtifactId) -> Artifact {
        Artifact {
            name: self.name,
            description: self.description,
            metadata: self.metadata,
            ..Artifact::new(id, self.parts)
        }
    }
}

fn flag(path: &str, value: &str) -> Result<bool, String> {
    serde_json::from_str(value).map_err(|_| format!("`{path}` must be true or false"))
}

/// Parts are spelled as in A2A 1.0: the codec reads them as those of a message.
fn parts(list: &str) -> Result<Vec<Part>, String> {
    if kind(list) != JsonKind::Array {
        return Err("`parts` must be a list".to_owned());
    }
    let message = format!("{{\"messageId\":\"line\",\"role\":\"ROLE_AGENT\",\"parts\":{list}}}");
    let message = v1::read_message(&message).map_err(|error| {
        let told = error.to_string();
        // The caller adds its own prefix.
        told.strip_prefix("Invalid response: ").map(str::to_owned).unwrap_or(told)
    })?;
    Ok(message.parts)
}

fn kind(value: &str) -> JsonKind {
    JsonText::parse(value).map_or(JsonKind::Null, |json| json.kind())
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::PartContent;

    use super::*;

    #[test]
    fn every_verb_is_understood() {
        let words = || vec![Part::text("a\n\"é")];
        let line = |verb: &str| format!(" {{\"{verb}\": \"a\\n\\\"\\u00e9\"}}\r");
        for (verb, expected) in [
            ("progress", Says::Progress(words())),
            ("reject", Says::Reject(words())),
            ("fail", Says::Fail(words())),
            ("complete", Says::Complete(words())),
            ("message", Says::Complete(words())),
            ("inputRequired", Says::InputRequired("a\n\"é".to_owned())),
            ("authRequired", Says::AuthRequired("a\n\"é".to_owned())),
        ] {
            assert_eq!(read(&line(verb)), Ok(expected));
        }
        let two = read(r#"{"message":{"parts":[{"text":"a"},{"data":{"n":1.0}}]}}"#).unwrap();
        let Says::Complete(parts) = two else { panic!("{two:?}") };
        assert_eq!(parts[1].content, PartContent::Data(JsonText::parse(r#"{"n":1.0}"#).unwrap()));
    }

    #[test]
    fn artifacts_hold_one_part_or_a_list() {
        let piece = |line: &str| match read(line) {
            Ok(Says::Artifact(piece)) => piece,
            other => panic!("{other:?}"),
        };
        let text = piece(r#"{"artifact":{"name":"n","text":"t","mediaType":"text/markdown"}}"#);
        assert_eq!((text.name.as_deref(), text.append, text.last), (Some("n"), false, true));
        assert_eq!(text.parts[0].media_type.as_deref(), Some("text/markdown"));
        let raw = piece(r#"{"artifact":{"id":"i","raw":"aGk=","filename":"f","append":true}}"#);
        assert_eq!(raw.parts[0].content, PartContent::Raw(b"hi".to_vec()));
        assert_eq!((raw.append, raw.last, raw.id.unwrap().as_str()), (true, false, "i"));
        let more = piece(
            r#"{"artifact":{"parts":[{"url":"https://x"},{"data":null}],"lastChunk":false,"metadata":{"a":1}}}"#,
        );
        assert_eq!((more.parts.len(), more.last, more.metadata.unwrap().as_str()), (2, false, r#"{"a":1}"#));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (line, reason) in [
            ("hello", "is not JSON. Each line must be one JSON object with one of progress, artifact"),
            ("Traceback: {", "belongs on stderr"),
            ("[1]", "is not an object"),
            ("{}", "exactly one member"),
            (r#"{"progress":"a","fail":"b"}"#, "exactly one member"),
            (r#"{"progress":"a","progress":"b"}"#, "duplicate key"),
            (r#"{"progres":"a"}"#, "did you mean `progress`?"),
            (r#"{"input_required":"a"}"#, "did you mean `inputRequired`?"),
            (r#"{"PROGRESS":"a"}"#, "did you mean `progress`?"),
            (r#"{"state":"a"}"#, "`state`, which is not known. Each line"),
            (r#"{"\u001b[31m":"a"}"#, "\\u{1b}[31m"),
            (r#"{"progress":7}"#, "`progress` must be a string or"),
            (r#"{"inputRequired":{"parts":[]}}"#, "`inputRequired` must be a string"),
            (r#"{"artifact":"text"}"#, "`artifact` must be an object, such as"),
            (r#"{"artifact":{}}"#, "needs one of text, raw, url, data and parts"),
            (r#"{"artifact":{"file":{}}}"#, "a file is `raw` (base64) or `url`"),
            (r#"{"artifact":{"text":"a","parts":[{"text":"b"}]}}"#, "use one of them"),
            (r#"{"artifact":{"parts":[]}}"#, "parts must hold at least one part"),
            (r#"{"artifact":{"text":"a","url":"b"}}"#, "exactly one of text, raw, url and data"),
            (r#"{"artifact":{"text":"a","lastchunk":true}}"#, "did you mean `lastChunk`?"),
            (r#"{"artifact":{"text":"a","append":"yes"}}"#, "`artifact.append` must be true or false"),
            (r#"{"artifact":{"text":7}}"#, "text"),
            (r#"{"artifact":{"raw":"%"}}"#, "raw"),
            (r#"{"artifact":{"id":"","text":"a"}}"#, "`artifact.id` must not be empty"),
        ] {
            let refused = read(line).expect_err(line);
            assert!(refused.contains(reason), "{line}: {refused}");
            assert!(refused.len() < 400, "{refused}");
        }
    }
}
