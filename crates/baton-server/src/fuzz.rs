//! Fuzz targets for input from outside. Each target is in the module that it checks. See `fuzz/README.md`.

use baton_protocol::wire::card::read_any;
use baton_protocol::wire::v1;

use crate::card;

/// Panics when a property does not hold for these bytes.
pub type Check = fn(&[u8]);

/// In the order of `fuzz/targets.tsv`.
pub const TARGETS: &[(&str, Check)] = &[
    ("page_token", crate::service::fuzz::page_token),
    ("last_event_id", crate::service::fuzz::last_event_id),
    ("records", crate::store::fuzz::records),
    ("card_file", card_file),
    ("requests", crate::binding::fuzz::requests),
    ("authorization", crate::auth::fuzz::authorization),
    ("digest", crate::auth::fuzz::digest),
    ("webhook_url", crate::push::target::fuzz::webhook_url),
];

/// A card file. `card::read` accepts every card that `read_any` accepts.
fn card_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match card::read(text) {
        Err(error) => {
            assert!(read_any(text).is_err(), "read_any accepts this card, card::read does not: {error}");
            assert!(error.to_string().len() < 2000, "the error quotes the whole card");
        }
        Ok(card) => {
            // It is served as a 1.0 card, so writing it and reading it again must work.
            let mut out = Vec::new();
            v1::write_card(&mut out, &card);
            let again = card::read(str::from_utf8(&out).expect("codecs write text")).expect("a card of 1.0");
            assert_eq!((&again.name, &again.skills.len()), (&card.name, &card.skills.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    baton_fuzz::tests!(
        super::TARGETS: page_token last_event_id records card_file requests authorization digest webhook_url
    );
}
