//! A call over HTTP/2: what goes, and what comes, frame by frame. Nothing of it is understood here.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{HeaderName, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::frames::{Frame, Reader};
use crate::wire::no_answer::NoAnswer;
use crate::wire::socket::Socket;

/// Time limit for the first bytes of HTTP/2.
const SHAKE: Duration = Duration::from_secs(5);
/// Largest answer that is read.
const MOST: usize = 16 * 1024 * 1024;

pub(crate) type Channel = SendRequest<Full<Bytes>>;
type Headers = Vec<(String, String)>;

/// Speaks HTTP/2 on a connection. It is closed when all channels and answers of it are dropped.
pub(crate) async fn channel(socket: Socket) -> Result<Channel, NoAnswer> {
    let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
    match tokio::time::timeout(SHAKE, shaken).await {
        Ok(Ok((channel, connection))) => {
            tokio::spawn(connection);
            Ok(channel)
        }
        Ok(Err(error)) => Err(NoAnswer::new(format!("HTTP/2 is not spoken there: {}", NoAnswer::of(&error)))),
        Err(_) => Err(NoAnswer::new("HTTP/2 is not spoken there: no answer within 5 s")),
    }
}

/// An answer whose head has arrived.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) status: u16,
    pub(crate) head: Headers,
    /// Once they are there.
    pub(crate) trailers: Option<Headers>,
    body: Incoming,
    reader: Reader,
    read: usize,
    /// The connection lives as long as somebody can send.
    _channel: Channel,
}

/// Sends the body, framed already, and waits for the head of the answer.
pub(crate) async fn send(
    mut channel: Channel,
    url: &str,
    headers: &Headers,
    body: Vec<u8>,
) -> Result<Call, NoAnswer> {
    let mut request = hyper::Request::post(url);
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| NoAnswer::of(&error))?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| NoAnswer::of(&error))?;
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| NoAnswer::of(&error))?;
    let response = channel.send_request(request).await.map_err(|error| NoAnswer::of(&error))?;
    let (head, body) = response.into_parts();
    Ok(Call {
        status: head.status.as_u16(),
        head: named(&head.headers),
        trailers: None,
        body,
        reader: Reader::default(),
        read: 0,
        _channel: channel,
    })
}

fn named(headers: &hyper::HeaderMap) -> Headers {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.head, name)
    }

    /// The next message; `None` at the end of the answer.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, NoAnswer> {
        loop {
            if let Some(frame) = self.reader.next() {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                Some(Ok(part)) => match part.into_data() {
                    Ok(data) => {
                        self.read += data.len();
                        if self.read > MOST {
                            return Err(NoAnswer::new(format!("the answer is larger than {MOST} bytes")));
                        }
                        self.reader.feed(&data);
                    }
                    Err(part) => self.trailers = part.trailers_ref().map(named),
                },
                Some(Err(error)) => return Err(NoAnswer::of(&error)),
                None if self.reader.left() > 0 => {
                    return Err(NoAnswer::new("the answer ends within a message"));
                }
                None => return Ok(None),
            }
        }
    }

    /// The trailers; those of an answer that has nothing else are its head.
    pub(crate) fn end(&self) -> &Headers {
        self.trailers.as_ref().unwrap_or(&self.head)
    }
}

pub(crate) fn find<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
