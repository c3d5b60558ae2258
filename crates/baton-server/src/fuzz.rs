//! What must hold for any bytes that come from outside: targets for the fuzzers, each beside what it checks. See
//! `fuzz/README.md`.

use baton_protocol::wire::card::read_any;
use baton_protocol::wire::v1;

use crate::card;

/// Panics when something does not hold.
pub type Check = fn(&[u8]);

/// In the order of `fuzz/targets.tsv`.
pub const TARGETS: &[(&str, Check)] = &[
    ("http1", crate::net::fuzz::http1),
    ("http2_frames", crate::net::fuzz::http2_frames),
    ("names", crate::net::fuzz::names),
    ("page_token", crate::service::fuzz::page_token),
    ("last_event_id", crate::service::fuzz::last_event_id),
    ("records", crate::store::fuzz::records),
    ("card_file", card_file),
    ("requests", crate::binding::fuzz::requests),
];

/// A card as an author writes it. Where a card from the network is understood, a file is, too.
fn card_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match card::read(text) {
        Err(error) => {
            assert!(read_any(text).is_err(), "a card for all but us: {error}");
            assert!(error.to_string().len() < 2000, "an error as long as the card");
        }
        Ok(card) => {
            // It is served as one of 1.0, with addresses of ours.
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
        super::TARGETS: http1 http2_frames names page_token last_event_id records card_file requests
    );
}
