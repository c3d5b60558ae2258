//! Cards of every generation, also read without knowing the generation: what is read must be written and read again as
//! the same, and a card for several generations must be readable by each.

use super::codecs::{DIALECTS, read_card, settles, write_card};
use super::written;
use crate::domain::AgentCard;
use crate::generation::{AskedVersion, Generation};
use crate::signature::card::CardDocument;
use crate::signature::jws::{Algorithm, card_signature, protected_header};
use crate::wire::card::{read_any, write_superset, write_union_legacy};
use crate::wire::dialect::Dialect;
use crate::wire::v0_1::LegacyCardFacts;

pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for dialect in DIALECTS {
        if let Ok(card) = read_card(dialect, text)
            && has_address(dialect, &card)
        {
            settles(dialect, &card, |card| write_card(dialect, card), |text| read_card(dialect, text));
        }
    }
    if let Ok((generation, card)) = read_any(text) {
        let own = match generation {
            Generation::V1 => Dialect::V1,
            Generation::V0_3 => Dialect::V0_3,
            Generation::V0_1 => Dialect::V0_1,
        };
        let _ = write_card(own, &card);
        served(&card);
    }
    if let Ok(document) = CardDocument::read(text) {
        signed(&document);
    }
}

/// Signatures are no part of what is signed.
fn signed(document: &CardDocument) {
    let signature = card_signature(protected_header(Algorithm::Es256, "k", None), b"s");
    let json = document.with_signatures(&[signature]);
    match CardDocument::read(&json) {
        Ok(other) => assert_eq!(other.payloads(), document.payloads(), "{json}"),
        Err(error) => panic!("nobody can verify {json}: {error}"),
    }
}

/// A 0.3 card without an 0.3 interface has no `url` and is not valid; the server checks that before it serves one.
fn has_address(dialect: Dialect, card: &AgentCard) -> bool {
    let version = |version: &str| AskedVersion::read(Some(version), None);
    let own = AskedVersion::Known(Generation::V0_3);
    dialect.generation() != Generation::V0_3
        || card.interfaces.iter().any(|it| version(&it.protocol_version) == own)
}

/// The documents that `/.well-known/` serves for a card.
fn served(card: &AgentCard) {
    let superset = written(|out| write_superset(out, card));
    let facts = LegacyCardFacts { url: Some("http://127.0.0.1/".to_owned()) };
    let legacy = written(|out| write_union_legacy(out, card, &facts));
    if let Err(error) = read_card(Dialect::V1, &superset) {
        panic!("a client of 1.0 cannot read {superset}: {error}");
    }
    if let Err(error) = read_card(Dialect::V0_1, &legacy) {
        panic!("a client of 0.1 cannot read {legacy}: {error}");
    }
    if let Err(error) = read_any(&legacy) {
        panic!("nobody knows {legacy}: {error}");
    }
}
