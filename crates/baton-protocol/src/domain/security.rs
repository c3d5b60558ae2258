//! Security schemes as cards declare them.

/// A named way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    /// For people.
    pub description: Option<String>,
    /// How it works.
    pub kind: SchemeKind,
}

/// The kinds of schemes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemeKind {
    /// An API key.
    ApiKey {
        /// Where it is sent.
        location: ApiKeyLocation,
        /// The name of the header, parameter or cookie.
        name: String,
    },
    /// The `Authorization` header.
    Http {
        /// `bearer`, `basic`, `digest`.
        scheme: String,
        /// The format of a bearer token, for people.
        bearer_format: Option<String>,
    },
    /// Tokens of an authorisation server.
    OAuth2 {
        /// How tokens are obtained.
        flows: Box<OAuthFlows>,
        /// Where the server describes itself.
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// Where the server describes itself.
        url: String,
    },
    /// A client certificate.
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

/// 1.0 allows one flow per scheme, 0.3 several: this type can hold both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlows {
    /// A user agrees in a browser.
    pub authorization_code: Option<OAuthFlow>,
    /// A program on its own behalf.
    pub client_credentials: Option<OAuthFlow>,
    /// A user agrees on another device.
    pub device_code: Option<OAuthFlow>,
    /// Outdated; older cards have it.
    pub implicit: Option<OAuthFlow>,
    /// Outdated; older cards have it.
    pub password: Option<OAuthFlow>,
}

/// The members of all flows; which are required depends on the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlow {
    /// Where the user agrees.
    pub authorization_url: Option<String>,
    /// Where device codes are issued.
    pub device_authorization_url: Option<String>,
    /// Where tokens are issued.
    pub token_url: Option<String>,
    /// Where tokens are renewed; default: `token_url`.
    pub refresh_url: Option<String>,
    /// Scope name and description, in the card's order.
    pub scopes: Vec<(String, String)>,
    /// Whether PKCE is required.
    pub pkce_required: bool,
}

/// Schemes that must all be met, each with its scopes. In a list of requirements, one must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityRequirement {
    /// Scheme by name, with the scopes it needs.
    pub schemes: Vec<(String, Vec<String>)>,
}
