//! The stream below HTTP: a TCP socket, or TLS on one.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(feature = "tls")]
use {tokio::io::AsyncBufRead as _, tokio_rustls::server::TlsStream};

/// Most requests fit into one read of this size.
const FIRST_READ: usize = 4 * 1024;

#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    /// Boxed: a plain connection needs much less memory.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

impl Transport {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut (dyn Stream + '_)> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream),
            #[cfg(feature = "tls")]
            Transport::Tls(stream) => Pin::new(&mut **stream),
        }
    }

    /// Appends what the client has sent; 0 at its end. Nothing is allocated before the client sends something.
    pub(super) fn poll_read_first(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match self {
            Transport::Plain(stream) => loop {
                ready!(stream.poll_read_ready(cx))?;
                bytes.reserve(FIRST_READ);
                match stream.try_read_buf(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return Poll::Ready(read),
                }
            },
            #[cfg(feature = "tls")]
            Transport::Tls(stream) => {
                let came = ready!(Pin::new(&mut **stream).poll_fill_buf(cx))?;
                let count = came.len();
                bytes.extend_from_slice(came);
                Pin::new(&mut **stream).consume(count);
                Poll::Ready(Ok(count))
            }
        }
    }

    /// Ready when the client has closed the connection; to be polled only while nobody else reads. Bytes that the client
    /// sends early are not taken, and hide an end that comes after them.
    pub(super) fn poll_hung_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = match self {
            Transport::Plain(stream) => ready!(stream.poll_peek(cx, &mut ReadBuf::new(&mut [0]))),
            // rustls reads no further while it holds something that was not taken.
            #[cfg(feature = "tls")]
            Transport::Tls(stream) => ready!(Pin::new(&mut **stream).poll_fill_buf(cx)).map(<[u8]>::len),
        };
        if matches!(left, Ok(0) | Err(_)) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Sends TLS's `close_notify`, unless it was sent, if the socket takes it at once. A client that does not read must not
    /// delay the end of its connection.
    pub(super) async fn say_goodbye(&mut self) {
        if matches!(self, Transport::Plain(_)) {
            return;
        }
        poll_fn(|cx| {
            let _sent = Pin::new(&mut *self).poll_shutdown(cx);
            Poll::Ready(())
        })
        .await;
    }
}

impl AsyncRead for Transport {
    /// A TLS client may close its connection without a `close_notify`. That is an end like any other: where a request ends is
    /// told by HTTP, so a request that was cut off is noticed.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.stream().poll_read(cx, buf) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        // Both are.
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
