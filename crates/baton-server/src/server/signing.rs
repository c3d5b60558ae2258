//! Signed cards, in a build that has them.

use super::Builder;
use crate::card::CardSigning;

impl Builder {
    /// Signs the cards of all agents, and publishes the public keys at `/.well-known/jwks.json`. Needs a
    /// [`public_url`](Self::public_url).
    pub fn sign_cards(mut self, signing: CardSigning) -> Self {
        self.signing = Some(signing);
        self
    }
}
