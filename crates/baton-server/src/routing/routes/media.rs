//! Chooses a skill by the media types of files and data, for messages whose words fit no skill.

use baton_protocol::domain::{Message, PartContent};

use super::{Routes, best};
use crate::media::{Fit, fit};

/// The skill that accepts every part and whose modes match them most specifically. `None` if all skills match equally well.
pub(super) fn fitting(routes: &Routes, message: &Message) -> Option<usize> {
    let files = message.parts.iter().filter(|part| !matches!(part.content, PartContent::Text(_)));
    let types: Vec<&str> = files.filter_map(|part| part.effective_media_type()).collect();
    if types.is_empty() {
        return None;
    }
    let taken = routes.modes.iter().enumerate().filter_map(|(skill, modes)| {
        let fits = types.iter().map(|media_type| modes.iter().filter_map(|mode| fit(mode, media_type)).max());
        let fits: Option<Vec<Fit>> = fits.collect();
        Some((skill, fits?.iter().map(|fit| f64::from(*fit as u8)).sum::<f64>()))
    });
    let best = best(taken)?;
    if best.len() == routes.modes.len() { None } else { routes.one_of(&best) }
}
