//! HTTP/2 frame by frame, for what no client library would send.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{TEST_TIMEOUT, TestServer};
use crate::socket;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The headers of a request, none of them compressed.
pub(crate) fn header_block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut fields =
        vec![(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    fields.extend_from_slice(more);
    let mut block = Vec::new();
    for (name, value) in fields {
        // Literal header field without indexing.
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "lengths of one byte only");
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A connection on which preface and settings have been sent.
pub(crate) async fn connect(server: &TestServer) -> TcpStream {
    let mut stream = socket::connect(server).await;
    stream.set_nodelay(true).unwrap();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat()).await.unwrap();
    stream
}

/// One received frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// The next frame; `None` when the connection is closed.
pub(crate) async fn next(stream: &mut TcpStream) -> Option<Frame> {
    let reading = async {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes(header[5..].try_into().expect("four bytes"));
        Some(Frame { kind: header[3], flags: header[4], stream, payload })
    };
    tokio::time::timeout(TEST_TIMEOUT, reading).await.expect("the connection goes on or ends")
}

/// Everything up to the close.
pub(crate) async fn rest(stream: &mut TcpStream) -> Vec<Frame> {
    let mut all = Vec::new();
    while let Some(came) = next(stream).await {
        all.push(came);
    }
    all
}
