//! JWTs that prove to receivers whose call it is, for webhooks that were given no credentials of their own. Whoever has the
//! public keys, which the server publishes, can verify them; there is nothing to agree on for each webhook.
//!
//! A JWT is for one call: it names the event, the receiver and the hash of the body, and is valid for five minutes.
//!
//! The keys are one secret of the store, so all replicas and every start use the same. It is a list: while one key takes the
//! place of another, both are published.

mod key_list;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::domain::{TaskId, Timestamp};
use http::HeaderValue;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::key_list::{Key, KeyList};
use super::target::Target;
use crate::engine::clock::Clock;
use crate::secrets::{Secrets, SecretsError, WEBHOOK_KEYS, Wrapping};
use crate::store::Store;

/// How long a JWT is valid.
const VALID_SECONDS: i64 = 5 * 60;

/// How often the list is read again: another replica may have made a key.
const READ_EVERY_MILLIS: i64 = 60_000;

/// Signs calls. A cheap handle.
#[derive(Clone)]
pub(crate) struct Jwt(Arc<Shared>);

struct Shared {
    issuer: Option<String>,
    keys: ArcSwap<KeyList>,
    store: Arc<dyn Store>,
    wrapping: Wrapping,
    clock: Arc<dyn Clock>,
    /// When the list was read.
    read_at: AtomicI64,
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").field("issuer", &self.0.issuer).finish_non_exhaustive()
    }
}

/// What is said about a call.
pub(super) struct SignedCall<'a> {
    /// The id of the event.
    pub(super) id: &'a str,
    pub(super) task: &'a TaskId,
    pub(super) receiver: &'a Target,
    pub(super) body: &'a [u8],
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    kid: &'a str,
    typ: &'static str,
}

#[derive(Serialize)]
struct Claims<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    aud: String,
    iat: i64,
    exp: i64,
    jti: &'a str,
    #[serde(rename = "taskId")]
    task_id: &'a str,
    /// The receivers of the protocol's own samples look for it by this name.
    request_body_sha256: String,
}

impl Jwt {
    /// Reads the keys. The first start makes one, and later starts make another once the newest has been signing for `age`.
    pub(crate) async fn open(
        secrets: &mut Secrets,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        issuer: Option<String>,
        age: Duration,
    ) -> Result<Self, SecretsError> {
        let now = clock.now();
        let fresh = || KeyList::make(now).map(|list| list.to_stored());
        let mut stored = secrets.get_or_make(WEBHOOK_KEYS, fresh).await?;
        if let Some(renewed) = read(&stored)?.renewed(now, age)? {
            if secrets.replace(WEBHOOK_KEYS, &stored, &renewed.to_stored()).await? {
                tracing::info!(
                    "a new key for the JWTs of webhooks signs in 10 minutes; the old one stays published for an hour after that"
                );
            }
            // If it was not replaced, another replica has done so.
            stored = secrets.find(WEBHOOK_KEYS).await?.unwrap_or(stored);
        }
        Ok(Jwt(Arc::new(Shared {
            issuer,
            keys: ArcSwap::from_pointee(read(&stored)?),
            store,
            wrapping: secrets.wrapping(),
            read_at: now.as_millis().into(),
            clock,
        })))
    }

    /// The value of `Authorization`; `None`, with a line in the log, if it cannot be signed.
    pub(super) async fn authorization(&self, call: &SignedCall<'_>) -> Option<HeaderValue> {
        let now = self.0.clock.now();
        let keys = self.0.keys(now).await;
        let Some(token) = self.token(keys.signing(now), call, now) else {
            tracing::error!(task.id = %call.task, "a call of a webhook could not be signed");
            return None;
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn token(&self, key: &Key, call: &SignedCall<'_>, now: Timestamp) -> Option<String> {
        let header = Header { alg: "ES256", kid: &key.public.kid, typ: "JWT" };
        let iat = now.as_millis() / 1000;
        let scheme = if call.receiver.is_https() { "https" } else { "http" };
        let digest = Sha256::digest(call.body);
        let claims = Claims {
            iss: self.0.issuer.as_deref(),
            aud: format!("{scheme}://{}", call.receiver.authority()),
            iat,
            exp: iat + VALID_SECONDS,
            jti: call.id,
            task_id: call.task.as_str(),
            request_body_sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let mut token = URL_SAFE_NO_PAD.encode(json(&header));
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(json(&claims), &mut token);
        let signature = key.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Some(token)
    }

    /// The public keys, each as a JSON Web Key.
    pub(crate) async fn public_keys(&self) -> Vec<String> {
        let now = self.0.clock.now();
        let keys = self.0.keys(now).await;
        keys.published(now).map(|key| key.public.to_json()).collect()
    }
}

impl Shared {
    /// The keys, read again if that was a while ago. One caller reads at a time; others go on with what there is.
    async fn keys(&self, now: Timestamp) -> Arc<KeyList> {
        let (now, read_at) = (now.as_millis(), self.read_at.load(Ordering::Relaxed));
        // In both directions: the clock may have been set back.
        let is_due = now.abs_diff(read_at) >= READ_EVERY_MILLIS.unsigned_abs();
        if is_due
            && self.read_at.compare_exchange(read_at, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && let Err(error) = self.read_again().await
        {
            tracing::warn!(%error, "the keys for the JWTs of webhooks could not be read again");
        }
        self.keys.load_full()
    }

    async fn read_again(&self) -> Result<(), SecretsError> {
        if let Some(stored) = self.store.find_secret(WEBHOOK_KEYS).await? {
            let stored = self.wrapping.unwrap(WEBHOOK_KEYS, &stored)?.value;
            self.keys.store(Arc::new(read(&stored)?));
        }
        Ok(())
    }
}

fn read(stored: &[u8]) -> Result<KeyList, SecretsError> {
    KeyList::read(stored).ok_or_else(|| SecretsError::UnknownForm(WEBHOOK_KEYS.to_owned()))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and numbers into memory cannot fail")
}
