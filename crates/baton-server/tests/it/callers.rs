use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal};
use serde_json::Value;

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, serve, with_agent};

/// Takes the caller's name from the header `x-owner`; refuses requests without it.
#[derive(Debug)]
pub(crate) struct ByHeader;

#[async_trait]
impl Authenticator for ByHeader {
    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        match request.headers.get("x-owner").map(|owner| owner.to_str()) {
            Some(Ok(owner)) => Ok(Principal::new(owner)?),
            _ => Err(Error::of(ErrorKind::Unauthenticated).into()),
        }
    }
}

/// A server with the obedient agent and the authenticator [`ByHeader`].
pub(crate) async fn serve_owners() -> TestServer {
    serve(with_agent(obedient).authenticator(Arc::new(ByHeader))).await
}

pub(crate) async fn call_as(server: &TestServer, owner: &str, method: &str, params: Value) -> Answer {
    server.call_with(method, params, &[("x-owner", owner)]).await
}
