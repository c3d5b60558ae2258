//! Bytes on a bare socket, for what no HTTP client would send.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::talk::skip;
use crate::native::{Done, fail};

const CONNECT: Duration = Duration::from_secs(5);

/// Host and path of a plain HTTP address.
pub(super) fn plain(url: &str) -> Done<(String, String)> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(skip("half requests are only sent without TLS"));
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let port = if authority.ends_with(']') || !authority.contains(':') { ":80" } else { "" };
    Ok((format!("{authority}{port}"), if path.is_empty() { "/".to_owned() } else { path.to_owned() }))
}

/// Connects, writes, and leaves.
pub(super) async fn write_and_leave(address: &str, bytes: &[u8]) -> Done {
    let connected = tokio::time::timeout(CONNECT, TcpStream::connect(address)).await;
    let mut stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(fail(format!("no connection to {address}: {error}"))),
        Err(_) => return Err(fail(format!("no connection to {address} within 5 s"))),
    };
    // The agent may hang up first; that is its right.
    let _ = stream.write_all(bytes).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(plain("http://h:1/a/b").unwrap(), ("h:1".to_owned(), "/a/b".to_owned()));
        assert_eq!(plain("http://h").unwrap(), ("h:80".to_owned(), "/".to_owned()));
        assert_eq!(plain("http://[::1]/").unwrap(), ("[::1]:80".to_owned(), "/".to_owned()));
        plain("https://h/").unwrap_err();
    }
}
