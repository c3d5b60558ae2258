//! Media types against the modes of a card.

/// How expressly a mode covers a media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// `*/*`
    Anything = 1,
    /// `image/*`
    Kind,
    Exact,
}

/// Does a mode cover a media type? Modes of older cards (`text`, `file`, `data`) are understood.
pub(crate) fn fit(mode: &str, media_type: &str) -> Option<Fit> {
    let bare = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let media_type = bare(media_type);
    let mode = match bare(mode).as_str() {
        "text" => "text/*".to_owned(),
        "data" => "application/json".to_owned(),
        "file" | "*" => "*/*".to_owned(),
        mode => mode.to_owned(),
    };
    match mode.strip_suffix("/*") {
        Some("*") => Some(Fit::Anything),
        Some(kind) => (media_type.split('/').next() == Some(kind)).then_some(Fit::Kind),
        None => (mode == media_type).then_some(Fit::Exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
