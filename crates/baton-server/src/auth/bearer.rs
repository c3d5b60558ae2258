//! Static bearer tokens: `Authorization: Bearer …` with a secret of a [`KeySet`].

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use http::HeaderValue;

use super::authorization::{self, Found};
use super::key_set::{KeySet, UNKNOWN};
use super::request::AuthRequest;
use super::scheme::{Refusal, Scheme, Verdict};

/// Accepts the secrets of a [`KeySet`] as bearer tokens. It may stand in a chain beside another scheme of bearer tokens,
/// such as JWTs: a token that only the other one knows is refused here and verified there, and one valid credential is
/// enough.
#[derive(Debug, Clone)]
pub struct BearerTokens {
    keys: Arc<KeySet>,
}

impl BearerTokens {
    /// With these secrets as tokens.
    pub fn new(keys: Arc<KeySet>) -> Self {
        BearerTokens { keys }
    }
}

#[async_trait]
impl Scheme for BearerTokens {
    fn declared(&self) -> SecurityScheme {
        SecurityScheme {
            description: None,
            kind: SchemeKind::Http { scheme: "bearer".to_owned(), bearer_format: None },
        }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let credentials = match authorization::find(request.headers, "bearer") {
            Found::Absent => return Verdict::Absent,
            Found::Malformed(reason) => return Verdict::Refused(Refusal::new(reason)),
            Found::Credentials(credentials) => credentials,
        };
        // A secret that the operator chose need not have the form of a token, so the bytes are compared as they are.
        match self.keys.verify(credentials.as_bytes()) {
            Ok(identity) => Verdict::Verified(identity),
            Err(refusal) => Verdict::Refused(Refusal { reason: named_token(refusal.reason), ..refusal }),
        }
    }

    /// As RFC 6750, section 3: an error code only if a token was there.
    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        Some(HeaderValue::from_static(match refused {
            None => "Bearer",
            Some(_) => "Bearer error=\"invalid_token\"",
        }))
    }

    fn takes_bearer_tokens(&self) -> bool {
        true
    }
}

/// The reason in the words of this scheme.
fn named_token(reason: &'static str) -> &'static str {
    if reason == UNKNOWN { "unknown token" } else { reason }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, Uri};

    use super::*;
    use crate::auth::{Authenticator as _, Chain, Scopes};

    const ALICE: &str = "alice-and-sixteen";
    const BOB: &str = "bob-and-sixteen..";

    fn tokens(secret: &str, owner: &str) -> BearerTokens {
        let keys = KeySet::new().unwrap();
        keys.add_chosen(secret, owner, owner, Scopes::default()).unwrap();
        BearerTokens::new(Arc::new(keys))
    }

    fn headers(values: &[&str]) -> HeaderMap {
        let value = |value: &&str| ("authorization".parse().unwrap(), value.parse().unwrap());
        values.iter().map(value).collect::<Vec<(http::HeaderName, HeaderValue)>>().into_iter().fold(
            HeaderMap::new(),
            |mut map, (name, value)| {
                map.append(name, value);
                map
            },
        )
    }

    async fn verdict(values: &[&str]) -> Verdict {
        let (uri, headers) = (Uri::from_static("/"), headers(values));
        tokens(ALICE, "alice").verify(&AuthRequest::new(&Method::POST, &uri, &headers)).await
    }

    #[tokio::test]
    async fn p05_a_static_token_is_verified_in_its_own_header_only() {
        let right = format!("Bearer {ALICE}");
        let Verdict::Verified(identity) = verdict(&[&right]).await else { panic!("refused") };
        assert_eq!((&*identity.owner, &*identity.credential), ("alice", "alice"));
        let lower = format!("bearer   {ALICE}");
        assert!(matches!(verdict(&[&lower]).await, Verdict::Verified(_)));
        assert!(matches!(verdict(&[]).await, Verdict::Absent));
        assert!(matches!(verdict(&["Basic YTpi"]).await, Verdict::Absent));
        for (wrong, reason) in [
            (&["Bearer wrong"][..], "unknown token"),
            (&["Bearer"], "no credentials after the scheme"),
            (&[&right, &right], "more than one Authorization header"),
        ] {
            let Verdict::Refused(refusal) = verdict(wrong).await else { panic!("{wrong:?}") };
            assert_eq!(refusal.reason, reason);
        }
    }

    #[tokio::test]
    async fn p05_two_schemes_of_bearer_tokens_do_not_disturb_each_other() {
        let chain = Chain::new().scheme("one", tokens(ALICE, "alice")).scheme("other", tokens(BOB, "bob"));
        for (secret, owner) in [(ALICE, "alice"), (BOB, "bob")] {
            let (uri, headers) = (Uri::from_static("/"), headers(&[&format!("Bearer {secret}")]));
            let principal =
                chain.authenticate(&AuthRequest::new(&Method::POST, &uri, &headers)).await.unwrap();
            assert_eq!(principal.owner(), owner);
        }
        let (uri, headers) = (Uri::from_static("/"), headers(&["Bearer somebody-else"]));
        assert!(chain.authenticate(&AuthRequest::new(&Method::POST, &uri, &headers)).await.is_err());
    }
}
