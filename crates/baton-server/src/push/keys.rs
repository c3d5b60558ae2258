//! The secrets that the server made for its webhooks and keeps in its store.

use std::sync::Arc;

use super::Jwt;
use super::options::PushOptions;
use crate::engine::clock::Clock;
use crate::public_url::PublicUrl;
use crate::secrets::{Secrets, SecretsError, WEBHOOK_IDS, WEBHOOK_KEYS, Wrapping};
use crate::store::Store;

pub(crate) struct Keys {
    /// Wraps token and credentials of each webhook.
    pub(super) wrapping: Wrapping,
    /// Makes the ids of events.
    pub(super) id_key: Vec<u8>,
    /// Signs calls, if the options say so.
    pub(super) jwt: Option<Jwt>,
}

impl Keys {
    pub(crate) async fn open(
        secrets: &mut Secrets,
        options: Option<&PushOptions>,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        public_url: Option<&PublicUrl>,
    ) -> Result<Self, SecretsError> {
        let (wrapping, id_key) = (secrets.contents().await?, secrets.get(WEBHOOK_IDS).await?);
        #[cfg(feature = "jwt")]
        if let Some(options) = options.filter(|options| options.jwt) {
            let issuer = public_url.map(|url| url.as_str().to_owned());
            let (store, clock) = (Arc::clone(store), Arc::clone(clock));
            let jwt = Jwt::open(secrets, store, clock, issuer, options.jwt_key_age).await?;
            return Ok(Keys { wrapping, id_key, jwt: Some(jwt) });
        }
        #[cfg(not(feature = "jwt"))]
        let _ = (options, store, clock, public_url);
        // An earlier server may have signed.
        secrets.find(WEBHOOK_KEYS).await?;
        Ok(Keys { wrapping, id_key, jwt: None })
    }
}
