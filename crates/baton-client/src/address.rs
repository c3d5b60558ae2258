//! Addresses as messages show them. User, password, query and fragment may each be a credential, so none of them is shown.

use reqwest::Url;

/// Stands for what is not shown.
const HIDDEN: &str = "[redacted]";

/// An address.
pub(crate) fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail for addresses that have no host, and so no user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// Text that was meant to be an address and may not be one. A password may contain any character, so everything in front of
/// the last `@` is taken for a part of it.
pub(crate) fn typed(text: &str) -> String {
    let scheme = text.find("://").map_or(0, |at| at + 3);
    let shown = match text.rfind('@').filter(|at| *at >= scheme) {
        Some(at) => format!("{}{HIDDEN}{}", &text[..scheme], &text[at..]),
        None => text.to_owned(),
    };
    match shown.find(['?', '#']) {
        Some(end) => shown[..end].to_owned(),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_addresses_are_shown_without_secrets() {
        let shown = |url: &str| without_secrets(&Url::parse(url).unwrap());
        assert_eq!(shown("https://user:s3cret@h/x?key=s3cret#s3cret"), "https://h/x");
        assert_eq!(shown("https://s3cret@h"), "https://h/");
        for (text, expected) in [
            ("https://user:s3cret@h/x", "https://[redacted]@h/x"),
            ("https://user:s3/c?r#et@h", "https://[redacted]@h"),
            ("user:s3cret@h", "[redacted]@h"),
            ("ftp://h/x?key=s3cret", "ftp://h/x"),
            ("https://", "https://"),
            ("a@://b", "a@://b"),
        ] {
            assert_eq!(typed(text), expected);
        }
    }
}
