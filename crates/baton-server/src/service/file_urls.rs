//! Files by reference. The server never fetches them, but agents do, from inside the operator's network: an address there
//! would let a caller read what only the agent can reach.
//!
//! The address is judged as it is written. A name on the internet may still lead into the network, so an agent that fetches has to
//! judge the addresses that it connects to as well.

use baton_protocol::domain::{Message, PartContent};
use baton_protocol::{Error, Member, Name};

use crate::push::target::address::{self, AddressKind};
use crate::push::target::host::Host;

/// Refuses a message with the address of a file on this machine or in its network.
pub(super) fn check(message: &Message) -> Result<(), Error> {
    for (index, part) in message.parts.iter().enumerate() {
        if let PartContent::Url(url) = &part.content
            && leads_inside(url)
        {
            let field = format!("{}[{index}]", Name::Member(Member::Parts));
            let problem =
                "must not give the address of a file on the agent's own machine or network; send its bytes";
            return Err(Error::invalid(field, problem));
        }
    }
    Ok(())
}

/// Whether some reader of URLs could be led to a host that is not on the internet. Addresses that are not of the web, such as
/// `s3://`, are for agents that know them; those of this machine are for none.
fn leads_inside(url: &str) -> bool {
    // Browsers ignore spaces and control characters at both ends, and tabs and line breaks anywhere.
    let url: String = url.chars().filter(|it| !matches!(it, '\t' | '\n' | '\r')).collect();
    let url = url.trim_matches(|it: char| it <= ' ');
    let Some((scheme, rest)) = url.split_once(':') else { return true };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" | "ftp" | "ftps" | "ws" | "wss" => {}
        "file" | "unix" | "gopher" | "dict" | "ldap" | "jar" | "netdoc" => return true,
        _ => return false,
    }
    // Browsers need no slashes at all.
    let rest = rest.trim_start_matches(['/', '\\']);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    // A backslash is a slash for browsers. Of several names some readers take that before the first `@`, and some that after the last.
    let mut names = authority.rsplit(['@', '\\']);
    let host = names.next().unwrap_or_default();
    let may_be_user = !authority.contains('\\');
    let is_harmless = |name: &str| is_on_internet(name) || may_be_user && is_user(name);
    !is_on_internet(host) || !names.all(is_harmless)
}

/// Whether nobody takes this, which stands before an `@`, for a host: a word, with or without a password.
fn is_user(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let is_word = name.starts_with(|it: char| it.is_ascii_alphabetic())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'+'));
    is_word && !name.eq_ignore_ascii_case("localhost")
}

fn is_on_internet(authority: &str) -> bool {
    let host = match authority.rfind(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    };
    match Host::parse(host) {
        Ok(host) if host.is_local_name() => false,
        Ok(Host::Address(address)) => address::kind(address) == AddressKind::Global,
        Ok(Host::Name(_)) => true,
        // Such as `2130706433`, which is 127.0.0.1, or `127。0。0。1`.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_addresses_of_files_that_lead_inside() {
        for url in [
            "http://127.0.0.1/a",
            "http://localhost:8080/a",
            "https://10.0.0.1/a",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/a",
            "http://[::ffff:10.0.0.1]:80/a",
            "http://[fd00:ec2::254]/a",
            "http://2130706433/a",
            "http://0x7f.1/a",
            "http://0/a",
            "HTTP://LOCALHOST/a",
            "http:\\\\127.0.0.1\\a",
            "http:127.0.0.1/a",
            "http:///127.0.0.1/a",
            " http://127.0.0.1/a",
            "ht\ntp://127.0.0.1/a",
            "http://files.example@127.0.0.1/a",
            "http://localhost:80@files.example/a",
            "http://10.0.0.1:80@files.example/a",
            "http://printer\\@files.example/a",
            "http://@files.example/a",
            "http://127.0.0.1@files.example/a",
            "http://127.0.0.1#@files.example/a",
            "http://files.example\\@127.0.0.1@/a",
            "http://printer/a",
            "http://metadata.google.internal/a",
            "http://nas.local/a",
            "http://1\u{3002}1\u{3002}1\u{3002}1/",
            "http://%31%32%37.0.0.1/a",
            "http://",
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "gopher://files.example/",
            "/etc/passwd",
            "",
        ] {
            assert!(leads_inside(url), "{url:?}");
        }
        for url in [
            "https://files.example/a",
            "http://files.example:8080/a?x=http://127.0.0.1/#127.0.0.1",
            "https://files.example",
            "https://user:pass.word@files.example/a",
            "https://8.8.8.8/a",
            "https://[2606:4700::1111]:443/a",
            "HTTPS://Files.Example/a",
            "s3://bucket/key",
            "gs://bucket/key",
            "urn:example:file",
            "data:text/plain,hello",
        ] {
            assert!(!leads_inside(url), "{url:?}");
        }
    }
}
