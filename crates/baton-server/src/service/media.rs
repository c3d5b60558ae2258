//! Refuses messages with parts of a media type that the agent does not accept.

use baton_protocol::domain::{AgentCard, Message};
use baton_protocol::{Error, ErrorKind, Member, Name};

use crate::media::fit;

/// The error names the first part that no input mode of the card or its skills accepts.
pub(super) fn check(card: &AgentCard, message: &Message) -> Result<(), Error> {
    let modes =
        || card.default_input_modes.iter().chain(card.skills.iter().flat_map(|skill| &skill.input_modes));
    for (index, part) in message.parts.iter().enumerate() {
        // A file without a media type is accepted; the agent decides.
        let Some(media_type) = part.effective_media_type() else { continue };
        if !modes().any(|mode| fit(mode, media_type).is_some()) {
            let accepted: Vec<&str> = modes().map(String::as_str).collect();
            let message = format!(
                "{}[{index}] is {media_type}, which this agent does not take; it takes {}",
                Name::Member(Member::Parts),
                accepted.join(", ")
            );
            return Err(Error::new(ErrorKind::ContentTypeNotSupported, message)
                .with_info("mediaType", media_type)
                .with_info("part", index.to_string()));
        }
    }
    Ok(())
}
