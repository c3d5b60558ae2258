//! An agent whose callers log in at an identity provider:
//!
//! ```sh
//! INTROSPECTION_SECRET=… cargo run -p baton-server --example identity_provider -- \
//!     127.0.0.1:3000 https://login.example.com https://agent.example.com my-client-id
//! ```
//!
//! The arguments are its address, the provider, the audience that tokens must be for, and the name under which the agent
//! asks the provider about tokens that are not JWTs.

use baton_server::auth::Chain;
use baton_server::auth::introspection::{ClientAuth, Introspection, IntrospectionOptions};
use baton_server::auth::jwt::{FetchOptions, Fetcher, Grant, Jwt, JwtOptions, Provider};
use baton_server::{AgentError, Server, Turn};

async fn hello(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("greeting", format!("Hello, {}!", turn.owner())).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name: &str| arguments.next().ok_or_else(|| format!("the {name} is missing"));
    let (address, issuer, audience) = (next("address")?, next("issuer")?, next("audience")?);
    let client = next("name of the client")?;
    let secret = std::env::var("INTROSPECTION_SECRET")?;

    let fetcher = Fetcher::new(&FetchOptions::default())?;
    let provider = Provider::discover(&fetcher, &issuer).await?;
    let jwt = Jwt::new(JwtOptions::oidc(&issuer, &audience), fetcher.clone())?;

    // Tokens that are not JWTs.
    let endpoint = provider.introspection_endpoint.clone().ok_or("the provider has no introspection")?;
    let client = ClientAuth::Basic { id: client, secret: secret.into() };
    let mut options = IntrospectionOptions::new(endpoint, client);
    options.audiences = vec![audience];
    options.claims.owner = "client_id".to_owned();
    let scopes = [("tasks".to_owned(), "Everything about tasks".to_owned())];
    options.declared = Some(provider.oauth2(&[Grant::ClientCredentials], &scopes)?);
    let introspection = Introspection::new(options, fetcher)?;

    let chain = Chain::new().scheme("oidc", jwt).scheme("oauth2", introspection);
    let server = Server::agent("hello", "Greets whoever logs in", hello).auth(chain).build().await?;
    Ok(server.serve(address).await?)
}
