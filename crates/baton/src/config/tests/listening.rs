//! When the server may listen at an address that other machines can reach.

use super::{complaints, load};

const TOKEN: &str = "[[auth.bearer.token]]\nid = \"ci\"\nsecret = \"0123456789abcdef\"\n";
const PROXY: &str = "trusted_proxies = [\"10.0.0.0/8\"]\n";

/// What is missing, if the server may not listen there.
fn refused(settings: &str, listen: &str) -> Option<String> {
    let flags: &[(&'static str, &'static str, &str)] = &[("--listen", "listen", listen)];
    match load(settings, &[], flags) {
        Ok(_) => None,
        problems => Some(complaints(problems)),
    }
}

#[test]
fn p05_listening_publicly_needs_authentication_and_encryption() {
    let everybody = "nobody is authenticated";
    let clear = "in clear text";
    for (settings, missing) in [
        (String::new(), Some(everybody)),
        (PROXY.to_owned(), Some(everybody)),
        (TOKEN.to_owned(), Some(clear)),
        (format!("{PROXY}{TOKEN}"), None),
        (
            format!("{PROXY}{TOKEN}[auth]\nrequire = [\"none\"]\n"),
            Some("agent `default` needs no credential"),
        ),
        (
            format!("{PROXY}{TOKEN}[auth]\nrequire = [\"bearer\", \"none\"]\n"),
            Some("agent `default` needs no credential"),
        ),
        (format!("{PROXY}{TOKEN}[auth]\nrequire = [\"bearer(read)\"]\n"), None),
        ("allow_public = true\n".to_owned(), None),
        (format!("allow_public = true\n{TOKEN}"), None),
    ] {
        for listen in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0", "[2001:db8::1]:80"] {
            let said = refused(&settings, listen);
            match missing {
                None => assert_eq!(said, None, "{settings}"),
                Some(missing) => {
                    let said = said.unwrap_or_default();
                    assert!(said.starts_with("--listen: other machines may reach "), "{said}");
                    assert!(said.contains(missing) && said.contains("--allow-public"), "{settings}\n{said}");
                }
            }
        }
        for listen in ["127.0.0.1:0", "[::1]:0", "127.9.9.9:1"] {
            assert_eq!(refused(&settings, listen), None, "{settings}");
        }
    }
}

/// The message names the flags that give what is missing, and no others.
#[test]
fn p05_the_message_says_which_flags_are_missing() {
    for (settings, key, tls) in [("", true, true), (PROXY, true, false), (TOKEN, false, true)] {
        let said = refused(settings, "0.0.0.0:0").unwrap();
        assert_eq!(said.contains("--api-key @FILE"), key, "{said}");
        assert_eq!(said.contains("--tls-cert and --tls-key"), tls, "{said}");
    }
}
