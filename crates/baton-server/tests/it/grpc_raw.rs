//! Calls over gRPC byte by byte: for what no client of gRPC would send, and what none shows.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::grpc_client::path;
use crate::harness::{TEST_TIMEOUT, TestServer};
use crate::socket;
use baton_protocol::wire::pb::Package;

/// Everything that an answer had.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) data: Vec<u8>,
    /// `None`: the answer had no trailers.
    pub(crate) trailers: Option<HeaderMap>,
}

impl RawAnswer {
    /// The code of gRPC: in the trailers, or in the headers of an answer that has nothing else.
    #[track_caller]
    pub(crate) fn code(&self) -> u16 {
        let said = |headers: &HeaderMap| headers.get("grpc-status")?.to_str().ok()?.parse().ok();
        let code = match &self.trailers {
            Some(trailers) => said(trailers),
            None => said(&self.headers).filter(|_| self.data.is_empty()),
        };
        code.unwrap_or_else(|| panic!("no status: {self:?}"))
    }
}

/// A message as a request has it.
pub(crate) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    [&[flag][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

/// Calls a method of 1.0 with these bytes as the body.
pub(crate) async fn raw(
    server: &TestServer,
    method: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> RawAnswer {
    raw_at(server, &path(Package::V1, method), headers, body).await
}

/// The same for either package, naming its version.
pub(crate) async fn raw_in(
    server: &TestServer,
    package: Package,
    method: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> RawAnswer {
    let version = ("a2a-version", package.generation().version());
    let headers: Vec<_> = [version].iter().chain(headers).copied().collect();
    raw_at(server, &path(package, method), &headers, body).await
}

/// The same for any path.
pub(crate) async fn raw_at(
    server: &TestServer,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> RawAnswer {
    let io = socket::connect(server).await;
    over(io, &format!("http://{}", socket::address(server)), path, headers, body).await
}

/// Calls a method of 1.0 with these bytes, after which more may follow.
pub(crate) async fn raw_unended(server: &TestServer, method: &str, body: Vec<u8>) -> RawAnswer {
    let (io, origin) = (socket::connect(server).await, format!("http://{}", socket::address(server)));
    exchange(io, &origin, &path(Package::V1, method), &[], body, false).await
}

pub(crate) async fn over(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    origin: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> RawAnswer {
    exchange(io, origin, path, headers, body, true).await
}

async fn exchange(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    origin: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
    ends: bool,
) -> RawAnswer {
    let talk = async {
        let (client, connection) = h2::client::handshake(io).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::post(format!("{origin}{path}")).body(()).unwrap();
        let usual = [("content-type", "application/grpc"), ("te", "trailers"), ("a2a-version", "1.0")];
        let replaced = |name: &str| headers.iter().any(|(other, _)| *other == name);
        for (name, value) in usual.iter().filter(|(name, _)| !replaced(name)).chain(headers) {
            request.headers_mut().append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let (answer, mut out) = client.ready().await.unwrap().send_request(request, false).unwrap();
        out.send_data(Bytes::from(body), ends).unwrap();
        let (head, mut body) = answer.await.unwrap().into_parts();
        let mut data = Vec::new();
        while let Some(part) = body.data().await {
            let part = part.unwrap();
            body.flow_control().release_capacity(part.len()).unwrap();
            data.extend_from_slice(&part);
        }
        let trailers = body.trailers().await.unwrap();
        connection.abort();
        RawAnswer { status: head.status.as_u16(), headers: head.headers, data, trailers }
    };
    tokio::time::timeout(TEST_TIMEOUT, talk).await.expect("an answer comes to its end")
}
