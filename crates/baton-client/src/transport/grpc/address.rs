//! Addresses of gRPC interfaces. Cards give a host and a port, as libraries of gRPC want them, or a URL.

use reqwest::Url;

use crate::origin::Origin;

/// What a card's address means. A host and a port do not tell whether TLS is spoken. It is: what the card was fetched by, if it
/// is the same host and port; no TLS with this machine, or if the user says so; TLS otherwise.
pub(crate) fn parse(address: &str, card: Option<&Origin>, plaintext: bool) -> Result<Url, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("its address cannot be read: {error}");
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
        None => (None, address),
    };
    let secure = match scheme.as_deref() {
        Some("http" | "grpc") => false,
        Some("https" | "grpcs") => true,
        Some(_) => return Err("its address is none of host:port, http, https, grpc or grpcs".to_owned()),
        None => {
            let https = Url::parse(&format!("https://{rest}")).map_err(|error| unreadable(&error))?;
            if https.path() != "/" || https.port().is_none() && !rest.ends_with(":443") {
                return Err("its address is no host:port".to_owned());
            }
            let [secure, plain] = ["https", "http"].map(|it| Origin::parse(&format!("{it}://{rest}")).ok());
            match () {
                () if plaintext => false,
                () if card.is_some() && card == plain.as_ref() => false,
                () if card.is_some() && card == secure.as_ref() => true,
                () => !secure.is_some_and(|origin| origin.is_loopback()),
            }
        }
    };
    let scheme = if secure { "https" } else { "http" };
    Url::parse(&format!("{scheme}://{rest}")).map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_addresses_of_grpc_have_a_scheme_or_a_rule() {
        for (address, card, plaintext, expected) in [
            ("127.0.0.1:3000", None, false, "http://127.0.0.1:3000/"),
            ("localhost:3000", Some("https://a.example"), false, "http://localhost:3000/"),
            ("[::1]:3000", None, false, "http://[::1]:3000/"),
            ("127.0.0.1:3000", Some("https://localhost:3000"), false, "https://127.0.0.1:3000/"),
            ("127.0.0.1:3000", Some("https://localhost:3001"), false, "http://127.0.0.1:3000/"),
            ("a.example:443", None, false, "https://a.example/"),
            ("a.example:443", Some("http://a.example:443"), false, "http://a.example:443/"),
            ("a.example:50051", Some("http://a.example:3000"), false, "https://a.example:50051/"),
            ("10.0.0.7:3000", Some("http://10.0.0.7:3000"), false, "http://10.0.0.7:3000/"),
            ("10.0.0.7:3000", None, false, "https://10.0.0.7:3000/"),
            ("10.0.0.7:3000", None, true, "http://10.0.0.7:3000/"),
            ("a.example:80", None, false, "https://a.example:80/"),
            ("https://a.example", None, true, "https://a.example/"),
            ("http://a.example", None, false, "http://a.example/"),
            ("grpc://a.example:50051", None, false, "http://a.example:50051/"),
            ("GRPCS://a.example", None, false, "https://a.example/"),
            ("https://a.example/below", None, false, "https://a.example/below"),
        ] {
            let card = card.map(|card| Origin::parse(card).unwrap());
            let url = parse(address, card.as_ref(), plaintext);
            assert_eq!(url.as_ref().map(Url::as_str), Ok(expected), "{address}");
        }
        for address in
            ["", "a.example", "a.example/x", "a.example:1/x", "a.example:x", ":443", "unix:///x", "ftp://a:1"]
        {
            parse(address, None, false).unwrap_err();
        }
    }
}
