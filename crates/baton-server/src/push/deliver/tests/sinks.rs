//! Receivers for tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Handles every connection in the same way, until it is dropped.
pub(super) struct Sink {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Sink {
    pub(super) async fn new<F: Future<Output = ()> + Send + 'static>(
        handle: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", handle).await
    }

    pub(super) async fn at<F: Future<Output = ()> + Send + 'static>(
        address: &str,
        handle: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut handlers = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                handlers.spawn(handle(stream));
            }
        });
        Sink { address, connections, _task: task }
    }

    /// Answers every request with this text, on as many connections as there are.
    pub(super) async fn answering(answer: &'static str) -> Self {
        Self::new(move |stream| answer_all(stream, answer)).await
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(super) async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &'static str) {
    while read_request(&mut stream).await.is_some() {
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads one request with the body of `post()`; `None` at the end of the connection.
pub(super) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(br#"{"task":{}}"#) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
    Some(String::from_utf8(request).unwrap())
}

/// Waits until the other side closes the connection.
pub(super) async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut buffer = [0; 4096];
    while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {}
}

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
