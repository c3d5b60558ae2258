//! Security schemes as cards declare them.

/// A named way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    /// For people.
    pub description: Option<String>,
    /// How it works.
    pub kind: SchemeKind,
}

/// The ways there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemeKind {
    /// A secret word.
    ApiKey {
        /// Where it is sent.
        location: ApiKeyLocation,
        /// Under what name.
        name: String,
    },
    /// The `Authorization` header.
    Http {
        /// `bearer`, `basic`, `digest`.
        scheme: String,
        /// What a bearer token is, for people.
        bearer_format: Option<String>,
    },
    /// Tokens of an authorisation server.
    OAuth2 {
        /// How they are had.
        flows: Box<OAuthFlows>,
        /// Where the server describes itself.
        metadata_url: Option<String>,
    },
    /// The same, described by the server.
    OpenIdConnect {
        /// Where the server describes itself.
        url: String,
    },
    /// A certificate of the client's.
    MutualTls,
}

/// Where an API key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyLocation {
    /// In the URL.
    Query,
    /// In a header.
    Header,
    /// In a cookie.
    Cookie,
}

/// 1.0 allows one flow per scheme, 0.3 several: the domain holds what either can say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlows {
    /// A person agrees in a browser.
    pub authorization_code: Option<OAuthFlow>,
    /// A program on its own behalf.
    pub client_credentials: Option<OAuthFlow>,
    /// A person agrees on another device.
    pub device_code: Option<OAuthFlow>,
    /// Outdated; older cards have it.
    pub implicit: Option<OAuthFlow>,
    /// Outdated; older cards have it.
    pub password: Option<OAuthFlow>,
}

/// The members of all flows; which are required depends on the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlow {
    /// Where the person agrees.
    pub authorization_url: Option<String>,
    /// Where a device code is had.
    pub device_authorization_url: Option<String>,
    /// Where tokens are had.
    pub token_url: Option<String>,
    /// Where tokens are renewed; unsaid: where they are had.
    pub refresh_url: Option<String>,
    /// Scope name and description, in the card's order.
    pub scopes: Vec<(String, String)>,
    /// Must the client prove that it began the flow?
    pub pkce_required: bool,
}

/// Schemes that must all be met, each with its scopes. A list of these means "any of".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityRequirement {
    /// Scheme by name, with the scopes it needs.
    pub schemes: Vec<(String, Vec<String>)>,
}
