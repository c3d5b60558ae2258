//! The reasons for which a request is refused before the application gets it, with status and text.
//!
//! A refusal has to come after the answers to earlier requests of the connection, so hyper must write it. The filter
//! therefore gives hyper a request of its own in place of the bad one (a stand-in). The guard knows it by its method, which
//! the filter refuses from clients.

use axum_core::body::Body;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode, Version};

/// The method of a stand-in request. Its path is the refusal's number.
pub(super) const METHOD: &str = "REFUSED-BY-BATON";

macro_rules! refusals {
    ($($name:ident $status:literal $text:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Refusal { $($name),* }

        const TABLE: &[(Refusal, u16, &str)] = &[$((Refusal::$name, $status, $text)),*];
    };
}

refusals! {
    BareLf           400 "A line ends with LF alone; the lines of a request's head end with CR LF"
    BareCr           400 "A CR stands alone; the lines of a request's head end with CR LF"
    Control          400 "The request's head holds a control character"
    RequestLine      400 "The request line is not `METHOD target HTTP/1.1`"
    Version          505 "Only HTTP/1.1, HTTP/1.0 and HTTP/2 are spoken here"
    Method           400 "CONNECT and TRACE are not served: this is no proxy"
    Target           400 "The request's target must be a path, an http URL, or `*` with OPTIONS"
    HeaderLine       400 "A header line is not `name: value`"
    Folded           400 "A header goes on in a second line; put it into one"
    LookAlike        400 "A header's name differs from a name such as Content-Length in punctuation only"
    ContentLength    400 "Content-Length must be there at most once, as a plain number"
    TransferEncoding 400 "The only Transfer-Encoding served is `chunked`, once, in HTTP/1.1"
    BothLengths      400 "Content-Length and Transfer-Encoding do not go together"
    Host             400 "A request needs exactly one Host header, with a name or an address"
    HostDiffers      400 "The Host header names another host than the request's target"
    Expect           417 "The only expectation served is `100-continue`"
    TargetTooLong    414 "The request line is too long"
    HeadTooLarge     431 "The request's headers are too large"
    TooManyHeaders   431 "The request has too many headers"
    Chunk            400 "The body is not framed as Transfer-Encoding `chunked` says"
    Stopping         503 "The server is stopping; try again in a moment"
    GivesWay         429 "The room for request bodies is full, and this caller's hold most of it; send fewer at a time"
    HeadTimeout      408 "The request's head took too long to arrive"
    BodyTimeout      408 "The request's body took too long to arrive"
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        StatusCode::from_u16(TABLE[self as usize].1).unwrap_or(StatusCode::BAD_REQUEST)
    }

    pub(super) fn text(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// As a byte for an atomic; 0 means none.
    pub(super) fn to_byte(self) -> u8 {
        self as u8 + 1
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        TABLE.get(usize::from(byte).checked_sub(1)?).map(|row| row.0)
    }

    /// The request that hyper reads in place of the refused one.
    pub(super) fn stand_in(self) -> Vec<u8> {
        format!("{METHOD} /{} HTTP/1.1\r\nhost: -\r\nconnection: close\r\n\r\n", self.to_byte()).into_bytes()
    }

    /// The refusal, if the request is a stand-in. HTTP/1 only: in HTTP/2 any client could send that method.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        if request.version() > Version::HTTP_11 || request.method().as_str() != METHOD {
            return None;
        }
        Self::from_byte(request.uri().path().get(1..)?.parse().ok()?)
    }

    pub(super) fn response(self, version: Version) -> Response<Body> {
        tracing::debug!(status = self.status().as_u16(), reason = self.text(), "a request was refused");
        let mut response = plain(self.status(), self.text(), version);
        if matches!(self.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// An answer in plain text, after which an HTTP/1 connection is closed: what follows a refused request may have been
/// meant as a part of it.
pub(super) fn plain(status: StatusCode, text: &str, version: Version) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{text}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if version <= Version::HTTP_11 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_found_again_in_its_stand_in() {
        for (index, (refusal, status, text)) in TABLE.iter().enumerate() {
            assert_eq!((*refusal as usize, refusal.status().as_u16()), (index, *status), "{text}");
            assert_eq!(Refusal::from_byte(refusal.to_byte()), Some(*refusal));
            let line = String::from_utf8(refusal.stand_in()).unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            let request = |version| {
                let builder = Request::builder().method(words[0]).uri(words[1]);
                builder.version(version).body(()).unwrap()
            };
            assert_eq!(Refusal::of(&request(Version::HTTP_11)), Some(*refusal));
            assert_eq!(Refusal::of(&request(Version::HTTP_2)), None, "anybody can say that in HTTP/2");
        }
        assert_eq!(Refusal::from_byte(0), None);
        assert_eq!(Refusal::from_byte(TABLE.len() as u8 + 1), None);
    }
}
