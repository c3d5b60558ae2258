//! Requests as bytes: built once, with a new number inserted each time.

use memchr::memmem;

/// The placeholder for the number; it has the same width.
pub const MARK: &str = "@@@@@@@@@@@@";

/// The requests that are sent.
#[derive(Debug, Clone)]
pub enum Calls {
    /// One request with a new number in it each time.
    Stamped(Stamped),
    /// These in turn, repeatedly.
    Listed(Vec<Vec<u8>>),
}

#[derive(Debug, Clone)]
pub struct Stamped {
    bytes: Vec<u8>,
    at: Vec<usize>,
    next: u64,
}

impl Calls {
    /// A POST of the body, in which `MARK` is replaced by a new number each time.
    pub fn stamped(path: &str, headers: &str, body: &str) -> Self {
        Self::stamped_bytes(post(path, headers, body))
    }

    /// The bytes, in which `MARK` is replaced by a new number each time.
    pub fn stamped_bytes(bytes: Vec<u8>) -> Self {
        let at = memmem::find_iter(&bytes, MARK.as_bytes()).collect();
        Calls::Stamped(Stamped { bytes, at, next: 0 })
    }

    pub(crate) fn next(&mut self, number: u64) -> &[u8] {
        match self {
            Calls::Stamped(stamped) => stamped.stamp(),
            Calls::Listed(all) => &all[number as usize % all.len()],
        }
    }
}

impl Stamped {
    fn stamp(&mut self) -> &[u8] {
        self.next += 1;
        let mut digits = [b'0'; MARK.len()];
        let mut rest = self.next;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        for &at in &self.at {
            self.bytes[at..at + MARK.len()].copy_from_slice(&digits);
        }
        &self.bytes
    }
}

/// A JSON-RPC request of protocol version 1.0, as a client of any language sends it. `headers` are further ones, as whole
/// lines.
pub fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_another_number() {
        let mut calls = Calls::stamped("/", "", &format!("{{\"id\":\"{MARK}\",\"again\":\"{MARK}\"}}"));
        let first = calls.next(0).to_vec();
        let second = calls.next(1).to_vec();
        assert!(first.ends_with(b"{\"id\":\"000000000001\",\"again\":\"000000000001\"}"));
        assert!(second.ends_with(b"{\"id\":\"000000000002\",\"again\":\"000000000002\"}"));
        assert_eq!(first.len(), second.len());
    }
}
