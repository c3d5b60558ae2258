//! TLS of the agent's address: no old versions, the newest one, HSTS.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw_socket::parts;
use super::talk::{SOON, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.tls.old-versions" => old_versions,
    "v1.tls.newest-version" => newest_version,
    "v1.tls.hsts" => hsts,
};

/// The address, if it is one of TLS.
fn address(bench: &Bench) -> Done<&str> {
    let url = &bench.interface().url;
    let (_, _, tls) = parts(url)?;
    if tls { Ok(url) } else { Err(skip("the agent's address is http://, without TLS")) }
}

/// Versions that must not be in use any more, with their numbers in a handshake.
const OLD: [(&str, [u8; 2]); 3] = [("SSL 3.0", [3, 0]), ("TLS 1.0", [3, 1]), ("TLS 1.1", [3, 2])];

/// No TLS library offers the old versions any more, so the first message of the handshake is written by hand. An agent
/// that continues the handshake would use the version.
async fn old_versions(bench: &Bench) -> Done {
    let url = address(bench)?;
    let (authority, _, _) = parts(url)?;
    let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
    for (name, version) in OLD {
        let mut stream = bench.probe().connect_bare(url).await.map_err(|error| fail(error.why))?;
        let mut head = [0; 6];
        let exchange = async {
            stream.write_all(&client_hello(version, host)).await?;
            stream.read_exact(&mut head).await
        };
        // A refusal is an alert, or the end of the connection.
        let answered = matches!(tokio::time::timeout(SOON, exchange).await, Ok(Ok(_)));
        if answered && is_server_hello(head) {
            return Err(differs(format!("{name} to be refused"), "the agent continues the handshake"));
        }
    }
    Ok(())
}

/// Record type *handshake*, message type *server hello*.
fn is_server_hello(head: [u8; 6]) -> bool {
    head[0] == 22 && head[5] == 2
}

/// The first message of a handshake of an old version: RFC 2246 and RFC 4346, section 7.4.1.2.
fn client_hello(version: [u8; 2], host: &str) -> Vec<u8> {
    // What servers of the time had: ECDHE and RSA with AES and 3DES.
    const SUITES: &[u8] = &[
        0xc0, 0x0a, 0xc0, 0x14, 0xc0, 0x09, 0xc0, 0x13, 0x00, 0x39, 0x00, 0x33, 0x00, 0x35, 0x00, 0x2f, 0x00,
        0x0a,
    ];
    // Curves P-256, P-384, P-521; uncompressed points.
    const CURVES: &[u8] = &[0, 10, 0, 8, 0, 6, 0, 23, 0, 24, 0, 25, 0, 11, 0, 2, 1, 0];
    let long = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut extensions = Vec::new();
    // A host's name; an IP address is none.
    if !is_address(host) {
        let entry = [&[0][..], &long(host.as_bytes()), host.as_bytes()].concat();
        let list = [&long(&entry)[..], &entry].concat();
        extensions = [&[0, 0][..], &long(&list), &list].concat();
    }
    extensions.extend_from_slice(CURVES);
    let random = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
    let body = [&version[..], &random, &[0], &long(SUITES), SUITES, &[1, 0], &long(&extensions), &extensions]
        .concat();
    let message = [&[1, 0][..], &long(&body), &body].concat();
    [&[22, 3, version[1].min(1)][..], &long(&message), &message].concat()
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok()
}

async fn newest_version(bench: &Bench) -> Done {
    let url = address(bench)?;
    let version = bench.probe().tls_version(url).await.map_err(|error| fail(error.why))?;
    if version == "TLS 1.3" { Ok(()) } else { Err(differs("TLS 1.3, which the client offers", version)) }
}

/// Clients ignore the header from an IP address (RFC 6797, section 8.1.1), and on one's own machine it would apply to all
/// other servers there, so an agent need not send it in these cases. Then it is asked as if it had a name.
async fn hsts(bench: &Bench) -> Done {
    let (authority, _, _) = parts(address(bench)?)?;
    let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
    let has_name = !is_address(host) && host != "localhost" && !host.ends_with(".localhost");
    let request = bench.request(Operation::GetTask, &json!({ "id": fresh_id() }));
    let mut request = request.map_err(|none| skip(none.0))?;
    if !has_name {
        request.headers.push(("Host".to_owned(), "agent.example".to_owned()));
    }
    let answer = bench.probe().ask(bench.generation(), bench.binding(), &request).await;
    let answer = answer.map_err(|error| fail(format!("no answer: {error}")))?;
    match answer.header("strict-transport-security") {
        Some(value) if lasts(value) => Ok(()),
        Some(value) => Err(differs("`Strict-Transport-Security` with a `max-age` above 0", value)),
        None if !has_name && matches!(answer.status(), 400 | 403 | 404 | 421) => Err(skip(
            "the agent has no host name here, and takes no other; the header means nothing without one",
        )),
        None => Err(differs("`Strict-Transport-Security` with every answer", "no such header")),
    }
}

fn lasts(value: &str) -> bool {
    value.split(';').any(|part| {
        let part = part.trim().to_ascii_lowercase();
        let seconds = part.strip_prefix("max-age=").map(|number| number.trim_matches('"').parse::<u64>());
        matches!(seconds, Some(Ok(seconds)) if seconds > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_in_a_hello_are_right() {
        for host in ["agent.example", "127.0.0.1", "[::1]"] {
            let hello = client_hello([3, 2], host);
            let number = |at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
            assert_eq!(number(3), hello.len() - 5);
            assert_eq!(number(7), hello.len() - 9);
            let suites = number(44);
            let extensions = 44 + 2 + suites + 2;
            assert_eq!(number(extensions), hello.len() - extensions - 2);
        }
        assert!(is_server_hello([22, 3, 2, 0, 50, 2]) && !is_server_hello([21, 3, 2, 0, 2, 2]));
    }

    #[test]
    fn a_promise_must_last() {
        assert!(lasts("max-age=63072000; includeSubDomains") && lasts("includeSubDomains; Max-Age=\"1\""));
        assert!(!lasts("max-age=0") && !lasts("includeSubDomains") && !lasts("max-age=soon"));
    }
}
