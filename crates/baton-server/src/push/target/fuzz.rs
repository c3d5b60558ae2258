//! Fuzz targets for what callers say about their webhooks.

use std::net::IpAddr;

use reqwest::Url;

use super::address::{AddressKind, kind};
use super::host::Host;
use super::{Target, TargetRules};
use crate::push::credentials;

/// Whatever is accepted, the URL parser of browsers finds the same host and port in it; and it is on the internet. The header
/// values that are made of the text are visible characters.
pub(crate) fn webhook_url(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for value in [credentials::token(text), credentials::authorization("Bearer", Some(text))].iter().flatten()
    {
        assert!(value.as_bytes().iter().all(|byte| (0x20..0x7f).contains(byte)), "{text:?}");
    }
    if let Ok(value) = credentials::authorization(text, None) {
        assert!(value.as_bytes().iter().all(u8::is_ascii_graphic), "{text:?}");
    }
    let Ok(target) = Target::parse(text, &TargetRules::default()) else { return };
    let Ok(url) = Url::parse(text) else {
        // The ASCII form of a name in no alphabet. A name server knows no such name.
        assert!(target.authority().contains("xn--"), "{text:?} is no URL for others");
        return;
    };
    assert_eq!(
        (url.scheme(), url.username(), url.password(), url.fragment()),
        ("https", "", None, None),
        "{text:?}"
    );
    assert_eq!(url.port_or_known_default(), Some(target.port()), "{text:?}");
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    match target.host() {
        Host::Address(own) => {
            assert_eq!(Some(*own), address, "{text:?}");
            assert_eq!(kind(*own), AddressKind::Global, "{text:?}");
        }
        Host::Name(own) => {
            assert!(host == own && address.is_none() && own.contains('.'), "{text:?}: {host} is not {own}");
        }
    }
    let again = format!("https://{}{}", target.authority(), target.path());
    assert_eq!(Target::parse(&again, &TargetRules::default()).as_ref(), Ok(&target), "{text:?}");
}
