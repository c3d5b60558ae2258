//! Limits on the content of one message or artifact. A client's message that exceeds them is refused; an agent's output that
//! exceeds them fails the task.

use baton_protocol::domain::json::JsonShape;
use baton_protocol::domain::{Artifact, JsonObject, JsonText, Message, Part, PartContent};

use super::options::Options;

/// The member that exceeds a limit, and how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMuch {
    /// Below the message or artifact, such as `.parts[3].data`.
    pub(crate) member: String,
    pub(crate) fault: String,
}

/// Length of the shortest member of an object, `"":0,`.
const MEMBER: usize = 5;

pub(crate) fn check_message(options: &Options, message: &Message) -> Result<(), TooMuch> {
    check(options, &message.parts, message.metadata.as_ref())
}

pub(crate) fn check_artifact(options: &Options, artifact: &Artifact) -> Result<(), TooMuch> {
    check(options, &artifact.parts, artifact.metadata.as_ref())
}

/// Metadata of a request.
pub(crate) fn check_metadata(options: &Options, metadata: Option<&JsonObject>) -> Result<(), TooMuch> {
    check(options, &[], metadata)
}

fn check(options: &Options, parts: &[Part], metadata: Option<&JsonObject>) -> Result<(), TooMuch> {
    let too_much = |member: String, fault| Err(TooMuch { member, fault });
    if parts.len() > options.max_parts {
        return too_much(".parts".to_owned(), format!("holds more than {} parts", options.max_parts));
    }
    let of_part = |part: &Part| part.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
    let bytes =
        metadata.map_or(0, |metadata| metadata.as_str().len()) + parts.iter().map(of_part).sum::<usize>();
    if bytes > options.max_metadata_bytes {
        let most = options.max_metadata_bytes;
        return too_much(
            ".metadata".to_owned(),
            format!("has {bytes} bytes, those of its parts included; {most} are allowed"),
        );
    }
    if let Some(fault) = metadata.and_then(|it| shape_fault(options, it.as_str(), || it.shape())) {
        return too_much(".metadata".to_owned(), fault);
    }
    for (index, part) in parts.iter().enumerate() {
        let metadata = part.metadata.as_ref();
        if let Some(fault) = metadata.and_then(|it| shape_fault(options, it.as_str(), || it.shape())) {
            return too_much(format!(".parts[{index}].metadata"), fault);
        }
        if let PartContent::Data(data) = &part.content
            && let Some(fault) = shape_fault(options, data.as_str(), || data.shape())
        {
            return too_much(format!(".parts[{index}].data"), fault);
        }
    }
    Ok(())
}

fn shape_fault(options: &Options, text: &str, shape: impl FnOnce() -> JsonShape) -> Option<String> {
    let Options { max_object_keys, max_json_depth, .. } = *options;
    // Most texts are too short to exceed either limit. Parsed JSON is never deeper than `MAX_DEPTH`.
    let may_be_wide = text.len() / MEMBER > max_object_keys;
    let may_be_deep = max_json_depth < JsonText::MAX_DEPTH && text.len() / 2 > max_json_depth;
    if !may_be_wide && !may_be_deep {
        return None;
    }
    let shape = shape();
    if shape.keys > max_object_keys {
        return Some(format!("holds an object with {} members; {max_object_keys} are allowed", shape.keys));
    }
    (shape.depth > max_json_depth)
        .then(|| format!("is nested {} levels deep; {max_json_depth} are allowed", shape.depth))
}
