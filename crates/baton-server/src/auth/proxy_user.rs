//! A trusted proxy that has authenticated the caller and names it in a header.
//!
//! The header is believed only if the proxy's own address is in the list, and ignored from everybody else. The proxy must
//! remove or replace the header in what it forwards: whatever it forwards is believed.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use http::HeaderValue;
use http::header::{GetAll, HeaderName};

use super::principal::Scopes;
use super::request::AuthRequest;
use super::scheme::{Identity, Refusal, Scheme, Verdict};
use crate::net::IpRange;

/// Which proxies are trusted, and in which headers they name the caller.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProxyUserOptions {
    /// The addresses of the proxies.
    pub proxies: Vec<IpRange>,
    /// What clients have to do at the proxy, for the card. Baton cannot know it: the header itself is nothing that a
    /// client may send, so it must not be declared as an API key.
    pub declared: SecurityScheme,
    /// The header with the user's name.
    pub header: HeaderName,
    /// The header with the caller's scopes or groups, separated by spaces or commas.
    pub scopes_header: Option<HeaderName>,
    /// Put before the user's name to make the owner, so that no name of the proxy is that of another scheme's owner.
    pub owner_prefix: String,
    /// Longest user name, in bytes.
    pub max_user: usize,
    /// Most scopes.
    pub max_scopes: usize,
}

impl ProxyUserOptions {
    /// The user is in `X-Forwarded-User`, the owner is `proxy:USER`, and there are no scopes.
    pub fn new(proxies: Vec<IpRange>, declared: SecurityScheme) -> Self {
        ProxyUserOptions {
            proxies,
            declared,
            header: HeaderName::from_static("x-forwarded-user"),
            scopes_header: None,
            owner_prefix: "proxy:".to_owned(),
            max_user: 256,
            max_scopes: 64,
        }
    }
}

/// Why the options cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyUserError {
    /// No proxy is trusted.
    #[error("no address of a proxy is given, so nobody could be authenticated")]
    NoProxies,
    /// Everybody would be trusted.
    #[error(
        "the proxies include every address, so anybody could name any user; give the addresses of the proxies"
    )]
    Everybody,
    /// The header has another meaning in HTTP.
    #[error("`{0}` cannot name the user: clients and proxies use it otherwise")]
    Header(&'static str),
    /// The same header for user and scopes.
    #[error("the scopes are in the same header as the user")]
    SameHeader,
    /// The card would tell clients to send the header themselves.
    #[error("the header with the user's name is declared as an API key, but clients must not send it")]
    DeclaredHeader,
}

/// The user that a trusted proxy names.
pub struct ProxyUser(Arc<ProxyUserOptions>);

impl fmt::Debug for ProxyUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyUser").field(&self.0.header).field(&self.0.proxies).finish()
    }
}

impl ProxyUser {
    /// Fails if no proxy is trusted or every address is, or a header cannot be used.
    pub fn new(options: ProxyUserOptions) -> Result<Self, ProxyUserError> {
        if options.proxies.is_empty() {
            return Err(ProxyUserError::NoProxies);
        }
        if options.proxies.iter().any(IpRange::is_everything) {
            return Err(ProxyUserError::Everybody);
        }
        for taken in ["authorization", "cookie", "host", "x-forwarded-for", "forwarded", "x-real-ip"] {
            if options.header == taken || options.scopes_header.as_ref().is_some_and(|header| header == taken)
            {
                return Err(ProxyUserError::Header(taken));
            }
        }
        if options.scopes_header.as_ref() == Some(&options.header) {
            return Err(ProxyUserError::SameHeader);
        }
        if let SchemeKind::ApiKey { name, .. } = &options.declared.kind
            && name.eq_ignore_ascii_case(options.header.as_str())
        {
            return Err(ProxyUserError::DeclaredHeader);
        }
        Ok(ProxyUser(Arc::new(options)))
    }

    fn identity(&self, request: &AuthRequest<'_>) -> Result<Option<Identity>, Refusal> {
        let options = &*self.0;
        let Some(value) = only(request.headers.get_all(&options.header)).map_err(Refusal::new)? else {
            return Ok(None);
        };
        let user = user(value, options.max_user).map_err(Refusal::new)?;
        let scopes = options.scopes_header.as_ref().map(|header| only(request.headers.get_all(header)));
        let scopes = match scopes.transpose().map_err(|reason| Refusal::new(reason).of(user))?.flatten() {
            Some(value) => {
                scopes_of(value, options.max_scopes).map_err(|reason| Refusal::new(reason).of(user))?
            }
            None => Scopes::default(),
        };
        Ok(Some(Identity::new(format!("{}{user}", options.owner_prefix), scopes, user)))
    }
}

#[async_trait]
impl Scheme for ProxyUser {
    fn declared(&self) -> SecurityScheme {
        self.0.declared.clone()
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let is_trusted = |peer| self.0.proxies.iter().any(|range| range.contains(peer));
        if !request.peer.is_some_and(is_trusted) {
            return Verdict::Absent;
        }
        match self.identity(request) {
            Ok(Some(identity)) => Verdict::Verified(identity),
            Ok(None) => Verdict::Absent,
            Err(refusal) => Verdict::Refused(refusal),
        }
    }

    fn is_sent_by_browsers(&self) -> bool {
        true
    }

    /// What the proxy asks for, if it can be said without the proxy's own parameters.
    fn challenge(&self, _refused: Option<&Refusal>) -> Option<HeaderValue> {
        match &self.0.declared.kind {
            SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. } => {
                Some(HeaderValue::from_static("Bearer"))
            }
            SchemeKind::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => {
                Some(HeaderValue::from_static("Bearer"))
            }
            _ => None,
        }
    }
}

/// The header's value, if it is there once. Of two, one may be the client's.
fn only(values: GetAll<'_, HeaderValue>) -> Result<Option<&HeaderValue>, &'static str> {
    let mut values = values.iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err("a header of the proxy is there twice"),
    }
}

fn user(value: &HeaderValue, max: usize) -> Result<&str, &'static str> {
    let user = value.to_str().ok().filter(|user| !user.contains('\t'));
    let user = user.ok_or("the user has a control character or one beyond ASCII")?;
    if user.is_empty() || user.len() > max {
        return Err("the user is empty or too long");
    }
    if user.starts_with(' ') || user.ends_with(' ') {
        return Err("the user has a space at an end");
    }
    Ok(user)
}

fn scopes_of(value: &HeaderValue, max: usize) -> Result<Scopes, &'static str> {
    let text = value.to_str().map_err(|_| "the scopes are not ASCII")?;
    let scopes: Vec<&str> =
        text.split([' ', ',', '\t']).filter(|scope| !scope.is_empty()).take(max + 1).collect();
    if scopes.len() > max {
        return Err("too many scopes");
    }
    Ok(Scopes::of(scopes))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, Uri};

    use super::*;

    type Headers<'a> = &'a [(&'a str, &'a [u8])];

    fn bearer() -> SecurityScheme {
        let kind = SchemeKind::Http { scheme: "bearer".to_owned(), bearer_format: None };
        SecurityScheme { description: None, kind }
    }

    fn options() -> ProxyUserOptions {
        let proxies = ["10.0.0.0/8", "::1"].map(|range| range.parse().unwrap()).to_vec();
        ProxyUserOptions::new(proxies, bearer())
    }

    /// The owner and scopes, `-` for absent, `!reason` for refused.
    async fn verdict(options: ProxyUserOptions, peer: Option<&str>, headers: Headers<'_>) -> String {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value).unwrap())
            })
            .collect();
        let uri = Uri::from_static("/");
        let mut request = AuthRequest::new(&Method::POST, &uri, &headers);
        request.peer = peer.map(|peer| peer.parse().unwrap());
        match ProxyUser::new(options).unwrap().verify(&request).await {
            Verdict::Absent => "-".to_owned(),
            Verdict::Verified(identity) => {
                assert_eq!(identity.owner.strip_prefix("proxy:"), Some(&*identity.credential));
                let scopes: Vec<_> = identity.scopes.iter().collect();
                [vec![&*identity.owner], scopes].concat().join(" ")
            }
            Verdict::Refused(refusal) => format!("!{}", refusal.reason),
            Verdict::Unavailable(why) => panic!("{why}"),
        }
    }

    #[tokio::test]
    async fn only_a_trusted_proxy_is_believed() {
        let ann: Headers<'_> = &[("X-Forwarded-User", b"ann")];
        for (peer, expected) in [
            (Some("10.1.2.3"), "proxy:ann"),
            (Some("::ffff:10.1.2.3"), "proxy:ann"),
            (Some("::1"), "proxy:ann"),
            (Some("11.0.0.1"), "-"),
            (Some("127.0.0.1"), "-"),
            (Some("::2"), "-"),
            (None, "-"),
        ] {
            assert_eq!(verdict(options(), peer, ann).await, expected, "{peer:?}");
        }
        // Not even what is wrong with it is told to others.
        let bad: Headers<'_> = &[("X-Forwarded-User", b""), ("X-Forwarded-User", b"ann")];
        assert_eq!(verdict(options(), Some("11.0.0.1"), bad).await, "-");
    }

    #[tokio::test]
    async fn users_and_scopes_are_read_strictly() {
        let long = [b'a'; 257];
        const ENDS: &str = "!the user has a space at an end";
        const BYTES: &str = "!the user has a control character or one beyond ASCII";
        const LENGTH: &str = "!the user is empty or too long";
        const TWICE: &str = "!a header of the proxy is there twice";
        let table: &[(Headers<'_>, &str)] = &[
            (&[], "-"),
            (&[("x-groups", b"a")], "-"),
            (&[("x-forwarded-user", b"Ann Doe <ann@a.example>")], "proxy:Ann Doe <ann@a.example>"),
            (&[("x-forwarded-user", b"CN=ann,O=a")], "proxy:CN=ann,O=a"),
            (&[("x-forwarded-user", b"")], LENGTH),
            (&[("x-forwarded-user", &long)], LENGTH),
            (&[("x-forwarded-user", b" ann")], ENDS),
            (&[("x-forwarded-user", b"ann ")], ENDS),
            (&[("x-forwarded-user", b"a\tb")], BYTES),
            (&[("x-forwarded-user", "Jäsøn".as_bytes())], BYTES),
            (&[("x-forwarded-user", b"\xff")], BYTES),
            (&[("x-forwarded-user", b"ann"), ("x-forwarded-user", b"ann")], TWICE),
            (&[("x-forwarded-user", b"ann"), ("x-groups", b"")], "proxy:ann"),
            (&[("x-forwarded-user", b"ann"), ("x-groups", b"a b, c,,d")], "proxy:ann a b c d"),
            (&[("x-forwarded-user", b"ann"), ("x-groups", b"a"), ("x-groups", b"b")], TWICE),
            (&[("x-forwarded-user", b"ann"), ("x-groups", b"a b c d e")], "!too many scopes"),
            (&[("x-forwarded-user", b"ann"), ("x-groups", b"\xff")], "!the scopes are not ASCII"),
        ];
        for (headers, expected) in table {
            let options = ProxyUserOptions {
                scopes_header: Some(HeaderName::from_static("x-groups")),
                max_scopes: 4,
                ..options()
            };
            assert_eq!(verdict(options, Some("10.0.0.1"), headers).await, *expected, "{headers:?}");
        }
        let groups: Headers<'_> = &[("x-forwarded-user", b"ann"), ("x-groups", b"admin")];
        assert_eq!(
            verdict(options(), Some("10.0.0.1"), groups).await,
            "proxy:ann",
            "no scopes unless configured"
        );
    }

    #[test]
    fn options_that_would_let_anybody_in_are_refused() {
        let refused = |options| ProxyUser::new(options).unwrap_err();
        let none = ProxyUserOptions { proxies: Vec::new(), ..options() };
        assert_eq!(refused(none), ProxyUserError::NoProxies);
        for everybody in ["0.0.0.0/0", "::/0"] {
            let proxies = vec!["10.0.0.1".parse().unwrap(), everybody.parse().unwrap()];
            assert_eq!(refused(ProxyUserOptions { proxies, ..options() }), ProxyUserError::Everybody);
        }
        let taken = ProxyUserOptions { header: http::header::AUTHORIZATION, ..options() };
        assert_eq!(refused(taken), ProxyUserError::Header("authorization"));
        let same = ProxyUserOptions { scopes_header: Some(options().header), ..options() };
        assert_eq!(refused(same), ProxyUserError::SameHeader);
        let location = baton_protocol::domain::security::ApiKeyLocation::Header;
        let kind = SchemeKind::ApiKey { location, name: "X-Forwarded-User".to_owned() };
        let declared = ProxyUserOptions { declared: SecurityScheme { description: None, kind }, ..options() };
        assert_eq!(refused(declared), ProxyUserError::DeclaredHeader);
    }

    #[test]
    fn the_challenge_is_what_the_proxy_asks_for() {
        let scheme = ProxyUser::new(options()).unwrap();
        assert_eq!(scheme.declared(), bearer());
        assert_eq!(scheme.challenge(None), Some(HeaderValue::from_static("Bearer")));
        let mtls = SecurityScheme { description: None, kind: SchemeKind::MutualTls };
        let scheme = ProxyUser::new(ProxyUserOptions { declared: mtls, ..options() }).unwrap();
        assert_eq!(scheme.challenge(None), None);
    }
}
