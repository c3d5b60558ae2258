//! Sends raw bytes over a socket, for requests that no HTTP client would send.

use tokio::io::AsyncWriteExt as _;

use crate::native::{Done, fail};
use crate::wire::{Probe, detour};

/// Host with port, and path, of an address; and whether it is TLS.
pub(super) fn parts(url: &str) -> Done<(String, String, bool)> {
    let (authority, tls) = detour::place_of(url).ok_or_else(|| fail(format!("{url} is no address")))?;
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    Ok((authority, path.to_owned(), tls))
}

/// Connects, writes, and disconnects; over TLS if the address says so.
pub(super) async fn write_and_leave(probe: &Probe, url: &str, bytes: &[u8]) -> Done {
    let mut stream = probe.connect(url).await.map_err(|error| fail(error.why))?;
    // The agent may close the connection first.
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    Ok(())
}

/// The same without TLS, whatever the address says.
pub(super) async fn write_bare_and_leave(probe: &Probe, url: &str, bytes: &[u8]) -> Done {
    let mut stream = probe.connect_bare(url).await.map_err(|error| fail(error.why))?;
    let _ = stream.write_all(bytes).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let place = |authority: &str, path: &str, tls| (authority.to_owned(), path.to_owned(), tls);
        assert_eq!(parts("http://h:1/a/b").unwrap(), place("h:1", "/a/b", false));
        assert_eq!(parts("http://h").unwrap(), place("h:80", "/", false));
        assert_eq!(parts("http://[::1]/").unwrap(), place("[::1]:80", "/", false));
        assert_eq!(parts("https://h/").unwrap(), place("h:443", "/", true));
        parts("ftp://h/").unwrap_err();
    }
}
