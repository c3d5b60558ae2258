//! The extended card: what only authenticated callers see.

use std::fmt;
use std::sync::Arc;

use baton_protocol::domain::AgentCard;

use crate::auth::Principal;

/// Makes the extended card for a caller.
type Make = dyn Fn(&Principal, &AgentCard) -> AgentCard + Send + Sync;

/// An extended card, the same for every authenticated caller or made for each.
#[derive(Clone)]
pub(crate) struct ExtendedCard(Arc<Make>);

impl fmt::Debug for ExtendedCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExtendedCard")
    }
}

impl ExtendedCard {
    pub(crate) fn new(make: impl Fn(&Principal, &AgentCard) -> AgentCard + Send + Sync + 'static) -> Self {
        ExtendedCard(Arc::new(make))
    }

    /// The card for this caller. What the server enforces and serves is as on the public card, whatever the author writes:
    /// the security section, and the capabilities.
    pub(crate) fn of(&self, principal: &Principal, public: &AgentCard) -> AgentCard {
        let mut card = (self.0)(principal, public);
        card.security_schemes.clone_from(&public.security_schemes);
        card.security_requirements.clone_from(&public.security_requirements);
        card.capabilities.clone_from(&public.capabilities);
        for skill in &mut card.skills {
            let known = public.skills.iter().find(|known| known.id == skill.id);
            skill.security_requirements =
                known.map(|known| known.security_requirements.clone()).unwrap_or_default();
        }
        if card.default_input_modes.is_empty() {
            card.default_input_modes.clone_from(&public.default_input_modes);
        }
        if card.default_output_modes.is_empty() {
            card.default_output_modes.clone_from(&public.default_output_modes);
        }
        card
    }
}
