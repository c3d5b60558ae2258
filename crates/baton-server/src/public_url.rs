//! The configured address that clients use.

use std::sync::Arc;

/// Shared by the card, the site and the listener, so that all read the URL in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicUrl(Arc<str>);

impl PublicUrl {
    pub(crate) fn new(url: &str) -> Self {
        PublicUrl(Arc::from(url))
    }

    /// As it was given.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        self.0.trim_end_matches('/')
    }

    /// A slash at the end matters: a proxy that forwards `/x` need not forward `/x/`, nor the other way round.
    pub(crate) fn ends_with_slash(&self) -> bool {
        self.0.ends_with('/')
    }

    /// Its path without a slash at the end; empty when it has none.
    pub(crate) fn path(&self) -> &str {
        path_of(&self.0)
    }
}

/// The path of a URL without a slash at the end; empty when it has none.
pub(crate) fn path_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map(|(_, rest)| rest);
    let path = after_scheme.and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    path.unwrap_or_default().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_in_its_parts() {
        for (url, base, slash, path) in [
            ("https://a.example", "https://a.example", false, ""),
            ("https://a.example/", "https://a.example", true, ""),
            ("https://a.example/x", "https://a.example/x", false, "/x"),
            ("https://a.example/x/y/", "https://a.example/x/y", true, "/x/y"),
        ] {
            let public = PublicUrl::new(url);
            assert_eq!(
                (public.base(), public.ends_with_slash(), public.path()),
                (base, slash, path),
                "{url}"
            );
        }
    }
}
