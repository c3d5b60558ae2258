//! The documents in which a card is served: one for each kind of reader.

use std::sync::{Arc, OnceLock};

use baton_protocol::domain::AgentCard;
use baton_protocol::wire::v0_1::LegacyCardFacts;
use baton_protocol::wire::{card, v0_3, v1};

use super::Signer;

/// For whom a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    /// Readers of 1.0.
    V1,
    /// Readers of 1.0 and of 0.3, of one document.
    Superset,
    /// Readers of 0.3.
    V0_3,
    /// Readers of 0.1 and 0.2, who know no signatures.
    Legacy,
}

impl Document {
    pub(super) fn of(self, card: &AgentCard) -> Vec<u8> {
        let mut json = Vec::with_capacity(4096);
        match self {
            Document::V1 => v1::write_card(&mut json, card),
            Document::Superset => card::write_superset(&mut json, &with_modes(card)),
            Document::V0_3 => v0_3::write_card(&mut json, &with_modes(card)),
            Document::Legacy => {
                card::write_union_legacy(&mut json, &with_modes(card), &LegacyCardFacts::default());
            }
        }
        json
    }
}

/// The signed documents of one version of a card. Each is signed once, when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct SignedDocuments([OnceLock<Arc<[u8]>>; 3]);

impl SignedDocuments {
    pub(super) fn get(&self, document: Document, card: &AgentCard, signer: &Signer) -> Vec<u8> {
        let place = match document {
            Document::V1 => 0,
            Document::Superset => 1,
            Document::V0_3 => 2,
            Document::Legacy => return document.of(card),
        };
        self.0[place].get_or_init(|| signer.sign(document.of(card)).into()).to_vec()
    }
}

/// The card with modes on every skill: some older clients do not fall back to the card's default modes.
fn with_modes(served: &AgentCard) -> AgentCard {
    let mut card = served.clone();
    for skill in &mut card.skills {
        if skill.input_modes.is_empty() {
            skill.input_modes.clone_from(&card.default_input_modes);
        }
        if skill.output_modes.is_empty() {
            skill.output_modes.clone_from(&card.default_output_modes);
        }
    }
    card
}
