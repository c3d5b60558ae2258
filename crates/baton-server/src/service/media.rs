//! Media types of parts against the modes a card accepts.

use baton_protocol::domain::{AgentCard, Message};
use baton_protocol::{Error, ErrorKind};

/// Refuses the first part no mode of the agent's accepts.
pub(super) fn check(card: &AgentCard, message: &Message) -> Result<(), Error> {
    let modes =
        || card.default_input_modes.iter().chain(card.skills.iter().flat_map(|skill| &skill.input_modes));
    for (index, part) in message.parts.iter().enumerate() {
        // A file that does not say what it is could be anything; the agent decides.
        let Some(media_type) = part.effective_media_type() else { continue };
        if !modes().any(|mode| accepts(mode, media_type)) {
            let accepted: Vec<&str> = modes().map(String::as_str).collect();
            let message = format!(
                "message.parts[{index}] is {media_type}, which this agent does not take; it takes {}",
                accepted.join(", ")
            );
            return Err(Error::new(ErrorKind::ContentTypeNotSupported, message)
                .with_info("mediaType", media_type)
                .with_info("part", index.to_string()));
        }
    }
    Ok(())
}

/// Does a mode cover a media type? Modes of older cards (`text`, `file`, `data`) are understood.
fn accepts(mode: &str, media_type: &str) -> bool {
    let bare = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let media_type = bare(media_type);
    let mode = match bare(mode).as_str() {
        "text" => "text/*".to_owned(),
        "data" => "application/json".to_owned(),
        "file" | "*" => "*/*".to_owned(),
        mode => mode.to_owned(),
    };
    match mode.strip_suffix("/*") {
        Some("*") => true,
        Some(kind) => media_type.split('/').next() == Some(kind),
        None => mode == media_type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p01_modes_of_every_generation_are_understood() {
        for (mode, media_type, expected) in [
            ("text/plain", "text/plain", true),
            ("text/plain", "Text/Plain; charset=utf-8", true),
            ("text/plain", "text/html", false),
            ("text/*", "text/html", true),
            ("text/*", "textual/html", false),
            ("*/*", "image/png", true),
            ("text", "text/plain", true),
            ("text", "application/json", false),
            ("data", "application/json", true),
            ("file", "image/png", true),
            ("application/json", "application/json", true),
            ("application/json", "application/jsonl", false),
        ] {
            assert_eq!(accepts(mode, media_type), expected, "{mode} {media_type}");
        }
    }
}
