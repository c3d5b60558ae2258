use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{Authenticator, Principal};
use http::HeaderMap;
use serde_json::Value;

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, serve, with_agent};

/// The caller is whom the header `x-owner` names; who names nobody is refused.
#[derive(Debug)]
pub(crate) struct ByHeader;

#[async_trait]
impl Authenticator for ByHeader {
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error> {
        match headers.get("x-owner").map(|owner| owner.to_str()) {
            Some(Ok(owner)) => Ok(Principal::new(owner)),
            _ => Err(Error::of(ErrorKind::Unauthenticated)),
        }
    }
}

/// A server with the obedient agent that tells its callers apart.
pub(crate) async fn serve_owners() -> TestServer {
    serve(with_agent(obedient).authenticator(Arc::new(ByHeader))).await
}

pub(crate) async fn call_as(server: &TestServer, owner: &str, method: &str, params: Value) -> Answer {
    server.call_with(method, params, &[("x-owner", owner)]).await
}
