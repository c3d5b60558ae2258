//! Refuses what the card does not declare, even where the code could do it.

use baton_protocol::domain::AgentCard;
use baton_protocol::operation::{Call, Capability, Operation};
use baton_protocol::{Error, ErrorKind, Generation, Member, Name};

use super::CallContext;

pub(super) fn check(card: &AgentCard, context: &CallContext, call: &Call) -> Result<(), Error> {
    let facts = call.operation().facts();
    let capabilities = &card.capabilities;
    match facts.capability {
        Capability::None => {}
        Capability::Streaming if capabilities.streaming == Some(true) => {}
        Capability::Streaming => {
            let instead = match facts.operation {
                Operation::SubscribeToTask => Operation::GetTask,
                _ => Operation::SendMessage,
            };
            let (asked, instead) = (Name::Method(facts.operation), Name::Method(instead));
            let message = format!("{asked} needs streaming, which this agent does not offer; use {instead}");
            return Err(Error::new(ErrorKind::UnsupportedOperation, message));
        }
        Capability::PushNotifications if capabilities.push_notifications == Some(true) => {}
        Capability::PushNotifications => return Err(Error::of(ErrorKind::PushNotSupported)),
        Capability::ExtendedCard if capabilities.extended_agent_card == Some(true) => {}
        // 0.3 has only one error for a missing extended card.
        Capability::ExtendedCard if context.generation == Generation::V0_3 => {
            return Err(Error::of(ErrorKind::ExtendedCardNotConfigured));
        }
        Capability::ExtendedCard => {
            let message = "This agent has no extended card; its public card is all there is";
            return Err(Error::new(ErrorKind::UnsupportedOperation, message));
        }
    }
    if let Call::SendMessage(send) | Call::SendStreamingMessage(send) = call {
        if send.push_config.is_some() && capabilities.push_notifications != Some(true) {
            return Err(Error::of(ErrorKind::PushNotSupported));
        }
        for required in capabilities.extensions.iter().filter(|extension| extension.required) {
            if !context.extensions.contains(&required.uri) {
                let (uri, header) = (&required.uri, Name::Member(Member::Extensions));
                let message = format!("This agent requires the extension {uri}; name it in {header}");
                return Err(Error::new(ErrorKind::ExtensionSupportRequired, message)
                    .with_info("extension", required.uri.clone()));
            }
        }
    }
    Ok(())
}
