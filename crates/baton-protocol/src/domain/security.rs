//! Security schemes as cards declare them.

/// A named way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    pub description: Option<String>,
    pub kind: SchemeKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemeKind {
    ApiKey { location: ApiKeyLocation, name: String },
    Http { scheme: String, bearer_format: Option<String> },
    OAuth2 { flows: Box<OAuthFlows>, metadata_url: Option<String> },
    OpenIdConnect { url: String },
    MutualTls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyLocation {
    Query,
    Header,
    Cookie,
}

/// 1.0 allows one flow per scheme, 0.3 several: the domain holds what either can say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlows {
    pub authorization_code: Option<OAuthFlow>,
    pub client_credentials: Option<OAuthFlow>,
    pub device_code: Option<OAuthFlow>,
    pub implicit: Option<OAuthFlow>,
    pub password: Option<OAuthFlow>,
}

/// The members of all flows; which are required depends on the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlow {
    pub authorization_url: Option<String>,
    pub device_authorization_url: Option<String>,
    pub token_url: Option<String>,
    pub refresh_url: Option<String>,
    /// Scope name and description, in the card's order.
    pub scopes: Vec<(String, String)>,
    pub pkce_required: bool,
}

/// Schemes that must all be met, each with its scopes. A list of these means "any of".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityRequirement {
    pub schemes: Vec<(String, Vec<String>)>,
}
