//! Bearer tokens that change: whoever knows them is asked before each request.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use secrecy::SecretString;

use crate::error::Error;

/// Gives bearer tokens. Made by [`Credential::bearer_from`](super::Credential::bearer_from).
#[derive(Clone)]
pub struct TokenProvider(Arc<Provide>);

type Provide = dyn Fn() -> Provided + Send + Sync;
type Provided = Pin<Box<dyn Future<Output = Result<SecretString, Error>> + Send>>;

impl TokenProvider {
    pub(super) fn new<F, E>(provide: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, E>> + Send + 'static,
        E: fmt::Display,
    {
        TokenProvider(Arc::new(move || {
            let token = provide();
            Box::pin(async move {
                let token = token.await;
                token
                    .map(SecretString::from)
                    .map_err(|error| Error::Credentials(format!("there is no bearer token: {error}")))
            })
        }))
    }

    pub(super) async fn token(&self) -> Result<SecretString, Error> {
        (self.0)().await
    }
}

impl fmt::Debug for TokenProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenProvider")
    }
}
