//! Matches media types with the modes of a card.

/// How specifically a mode matches a media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// `*/*`
    Anything = 1,
    /// `image/*`
    Kind,
    Exact,
}

/// How a mode matches a media type, if it does. Modes of older cards (`text`, `file`, `data`) are understood.
pub(crate) fn fit(mode: &str, media_type: &str) -> Option<Fit> {
    let (mode, media_type) = (bare(mode), bare(media_type));
    let mode = [("text", "text/*"), ("data", "application/json"), ("file", "*/*"), ("*", "*/*")]
        .into_iter()
        .find_map(|(older, newer)| mode.eq_ignore_ascii_case(older).then_some(newer))
        .unwrap_or(mode);
    match mode.strip_suffix("/*") {
        Some("*") => Some(Fit::Anything),
        Some(kind) => {
            let own = media_type.split('/').next().unwrap_or_default();
            own.eq_ignore_ascii_case(kind).then_some(Fit::Kind)
        }
        None => mode.eq_ignore_ascii_case(media_type).then_some(Fit::Exact),
    }
}

/// Whether a caller who accepts `accepted` can take `made`. Both may be a media type, a range such as `text/*`, or a word
/// of older clients and cards. With `text`, `file` and `data` older callers name kinds of parts rather than media types,
/// so these words match everything.
pub(crate) fn takes(accepted: &str, made: &str) -> bool {
    let (accepted, made) = (bare(accepted), bare(made));
    let is_word = |mode: &str| ["text", "file", "data"].iter().any(|word| mode.eq_ignore_ascii_case(word));
    is_word(accepted) || fit(accepted, made).is_some() || fit(made, accepted).is_some()
}

/// Without parameters.
fn bare(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p01_what_is_accepted_may_be_a_type_a_range_or_a_word() {
        for (accepted, made, expected) in [
            ("text/plain", "text/plain", true),
            ("Text/Plain; charset=utf-8", "text/plain", true),
            ("image/png", "text/plain", false),
            ("text/*", "text/plain", true),
            ("image/*", "text/plain", false),
            ("*/*", "text/plain", true),
            ("*", "text/plain", true),
            ("text/plain", "text/*", true),
            ("text/plain", "*/*", true),
            ("text", "image/png", true),
            ("file", "text/plain", true),
            ("data", "text/plain", true),
            ("image/png", "text", false),
            ("text/plain", "text", true),
            ("", "text/plain", false),
        ] {
            assert_eq!(takes(accepted, made), expected, "{accepted} {made}");
        }
    }

    #[test]
    fn p01_modes_of_every_generation_are_understood() {
        for (mode, media_type, expected) in [
            ("text/plain", "text/plain", Some(Fit::Exact)),
            ("text/plain", "Text/Plain; charset=utf-8", Some(Fit::Exact)),
            ("text/plain", "text/html", None),
            ("text/*", "text/html", Some(Fit::Kind)),
            ("text/*", "textual/html", None),
            ("*/*", "image/png", Some(Fit::Anything)),
            ("text", "text/plain", Some(Fit::Kind)),
            ("text", "application/json", None),
            ("data", "application/json", Some(Fit::Exact)),
            ("file", "image/png", Some(Fit::Anything)),
            ("application/json", "application/json", Some(Fit::Exact)),
            ("application/json", "application/jsonl", None),
        ] {
            assert_eq!(fit(mode, media_type), expected, "{mode} {media_type}");
        }
    }
}
