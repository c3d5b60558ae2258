//! The interface between this crate and the application that it serves.

use std::fmt::Debug;
use std::net::SocketAddr;

use axum_core::body::Body;
use http::{Request, Response, StatusCode};

use super::answers::Asker;

/// Answers the requests that pass the checks.
pub trait Application: Debug + Send + Sync + 'static {
    /// Answers one request. `asker` reserves room (memory) for the answer; an answer above [`SMALL`](super::SMALL) should
    /// reserve it before it is made.
    fn answer(
        &self,
        request: Request<Body>,
        peer: SocketAddr,
        asker: Asker,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Counts what happens to connections.
pub trait Observer: Debug + Send + Sync {
    /// A connection was accepted.
    fn opened(&self);

    /// An accepted connection has ended.
    fn closed(&self);

    /// A connection or a request was answered without the application. A status below 400 is not a refusal: for example the
    /// answer to a browser's preflight.
    fn refused(&self, status: StatusCode);
}
