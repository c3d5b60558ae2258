//! `baton auth login`: obtains a token from the authorization server that the card names, and keeps it for later calls.

use baton_client::{Credential, Flow, OAuthClient, Origin, Prompt};
use baton_protocol::domain::AgentCard;
use baton_protocol::domain::security::SchemeKind;
use clap::ValueEnum;
use serde_json::json;

use crate::client::agent;
use crate::client::error::{CallError, Code};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::tokens::{self, Login, Stored};
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct AuthLogin {
    /// The security scheme of the card [default: the first with an authorization server].
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,

    /// How the token is obtained: by confirming on any device, with the client's secret and no user, or by confirming in a
    /// browser on this machine [default: client-credentials if a secret is given, else device].
    #[arg(long, value_enum)]
    flow: Option<ChosenFlow>,

    /// The client id at the authorization server.
    #[arg(long, value_name = "ID")]
    client_id: String,

    /// The variable that holds the client secret.
    #[arg(long, value_name = "VARIABLE")]
    client_secret_env: Option<String>,

    /// An authorization server that you know: it may have the client secret, and one login may use several that are named.
    /// Repeatable [default: the agent's own host may have the secret].
    #[arg(long, value_name = "URL")]
    issuer: Vec<String>,

    /// A scope to ask for. Repeatable [default: what the card requires].
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ChosenFlow {
    Device,
    ClientCredentials,
    Browser,
}

pub(crate) async fn run(args: AuthLogin) -> Result<(), Failure> {
    client::run(&args.options, async |call| login(call, &args).await).await
}

async fn login(call: &Call, args: &AuthLogin) -> Result<(), CallError> {
    let folder = call.settings.own_folder.as_deref();
    let folder = folder.ok_or_else(|| CallError::usage("there is no home folder to keep the token in"))?;
    let secret = args.client_secret_env.as_deref().map(|name| {
        std::env::var(name)
            .map_err(|_| CallError::usage(format!("--client-secret-env {name}: the variable is not set")))
    });
    let secret = secret.transpose()?;
    let flow = match args.flow {
        Some(ChosenFlow::Device) => Flow::DeviceCode,
        Some(ChosenFlow::ClientCredentials) => Flow::ClientCredentials,
        Some(ChosenFlow::Browser) => Flow::AuthorizationCode,
        None if secret.is_some() => Flow::ClientCredentials,
        None => Flow::DeviceCode,
    };
    let mut registered = OAuthClient::new(&args.client_id);
    if let Some(secret) = secret {
        registered = registered.secret(secret);
    }
    if !args.scope.is_empty() {
        registered = registered.scopes(args.scope.iter().cloned());
    }
    for issuer in &args.issuer {
        let origin = Origin::parse(issuer).map_err(|error| CallError::usage(format!("--issuer {error}")))?;
        registered = registered.trust(origin);
    }
    let found = agent::find(call).await?;
    call.settings.insecure_warning(true).into_iter().for_each(output::warn);
    let scheme = scheme(&found.card, args.scheme.as_deref())?;
    let identity = agent::identity(&found)
        .ok_or_else(|| CallError::internal("the card's file is not there any more"))?;
    let client = agent::plain_client(call, found, &scheme, Credential::OAuth(registered))?;
    let login = Login {
        agent: identity,
        scheme: scheme.clone(),
        client_id: args.client_id.clone(),
        client_secret_env: args.client_secret_env.clone(),
        issuers: args.issuer.clone(),
        scopes: (!args.scope.is_empty()).then(|| args.scope.clone()),
        origins: client.trusted_origins().iter().map(Origin::to_string).collect(),
    };
    let token = client.log_in(flow, |prompt| output::note(&prompt_words(&prompt))).await;
    let token = token.map_err(|error| match agent::failure(&error) {
        failed if failed.code == Code::AuthFailed => {
            failed.with_hint("--issuer URL names an authorization server that you know")
        }
        failed => failed,
    })?;
    let stored = tokens::save(folder, &Stored::of(&login, &token))
        .map_err(|error| CallError::internal(format!("the token could not be kept: {error}")))?;
    let object = json!({"scheme": scheme, "stored": stored.display().to_string()});
    call.output.result(&object.to_string(), || {
        let mut section = Section::default();
        section.field("Security scheme", &scheme);
        section.field("Stored", format!("{} (mode 0600)", stored.display()));
        Ok(section.end())
    })
}

/// The scheme that is named, or the first with an authorization server.
fn scheme(card: &AgentCard, named: Option<&str>) -> Result<String, CallError> {
    let issues =
        |kind: &SchemeKind| matches!(kind, SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. });
    let fitting =
        || card.security_schemes.iter().filter(|(_, scheme)| issues(&scheme.kind)).map(|(name, _)| name);
    let found = fitting().find(|name| named.is_none_or(|named| named == name.as_str()));
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = fitting().map(String::as_str).collect();
        let message = match (named, names.is_empty()) {
            (_, true) => "the card has no scheme with an authorization server".to_owned(),
            (named, false) => {
                format!("--scheme {}: the card has {}", named.unwrap_or_default(), names.join(", "))
            }
        };
        CallError::new(Code::Usage, message).with_command("card get", "")
    })
}

fn prompt_words(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Device { url, code, complete_url } => match complete_url {
            Some(complete) => format!("Open {url} and enter {code}, or open {complete}"),
            None => format!("Open {url} and enter {code}"),
        },
        Prompt::Browser { url } => format!("Open {url}"),
        _ => "Follow the instructions of the authorization server".to_owned(),
    }
}
