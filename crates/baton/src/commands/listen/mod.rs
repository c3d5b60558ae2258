//! `baton listen`: a webhook for trying out agents and senders. It shows every call, verifies it if it is told how, and
//! answers as it is told.

mod receive;
mod show;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use baton_client::{Client, WebhookKeys, WebhookVerifier};
use baton_protocol::signature::webhook::WebhookSecret;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use http::StatusCode;

use self::receive::Receiver;
use self::show::Form;
use crate::client::agent::proxies;
use crate::commands;
use crate::exit::Failure;
use crate::output;
use crate::signals::Signals;

/// How long calls that are being answered may take after the last one was counted.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

const TOKEN_VARIABLE: &str = "BATON_WEBHOOK_TOKEN";
const SECRET_VARIABLE: &str = "BATON_WEBHOOK_SECRET";

const EXAMPLES: &str = "\
Examples:
  baton listen                                     show whatever comes
  baton listen --token s3cret --count 1 -o json    wait for one call with this token, as a line of JSON
  baton listen --answer 500,500,200                fail twice, to see the agent try again
  baton listen --delay 20s                         answer late, to see the agent's timeout
  baton listen --jwks http://127.0.0.1:3000/.well-known/jwks.json
                                                   show calls that this server has signed

The address to give to the agent is shown at the start. An agent on another machine cannot reach this one's loopback: use
a tunnel with an https address in front of it. Baton itself calls http and loopback only if its development switch for
webhooks is on.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Listen {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,

    /// The token that calls must have, as given to `push-config create --token`. Repeatable. Prefer the variable: other
    /// users of this machine can read command lines [env: BATON_WEBHOOK_TOKEN].
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env = true, value_parser = NonEmptyStringValueParser::new())]
    token: Vec<String>,

    /// The secret that calls must be signed with (Standard Webhooks), `whsec_…`. Repeatable, for a sender that changes from
    /// one to another [env: BATON_WEBHOOK_SECRET].
    #[arg(long, value_name = "SECRET", env = SECRET_VARIABLE, hide_env = true)]
    secret: Vec<String>,

    /// The public keys of the agent, as a JSON Web Key Set: its address, or a file. Calls must carry a JWT that one of them has
    /// signed, for this event and this body. Keys at an address are fetched again when they are needed.
    #[arg(long, value_name = "URL|FILE")]
    jwks: Option<String>,

    /// The address that JWTs must be for, such as `https://hooks.example`. Default: any.
    #[arg(long, value_name = "ORIGIN", requires = "jwks")]
    audience: Option<String>,

    /// The status to answer with. Of several, the first call gets the first one and so on; the last one is used for all
    /// further calls.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', default_value = "200", value_parser = status)]
    answer: Vec<StatusCode>,

    /// Wait for this time before each answer.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    delay: Duration,

    /// End after this many calls. Calls that were refused are not counted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// The form of the output; `json` is one object per line.
    #[arg(long, short, value_enum, value_name = "FORM", default_value_t = OutputForm::Text)]
    output: OutputForm,

    /// Show all of each event.
    #[arg(long)]
    verbose: bool,

    /// Allow listening at an address that other machines can reach.
    #[arg(long)]
    allow_public: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    Text,
    Json,
}

fn status(text: &str) -> Result<StatusCode, String> {
    let status = text.trim().parse::<u16>().ok().filter(|code| (200..600).contains(code));
    status
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or_else(|| "write a status from 200 to 599".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    crate::config::duration(text).ok_or_else(|| "write a time such as 500ms, 2s or 1m".to_owned())
}

pub(crate) async fn run(args: Listen) -> Result<(), Failure> {
    let verifier = verifier(&args).await?;
    let listener = commands::bind(&args.listen, args.allow_public, " and call the webhook").await?;
    let address = listener.local_addr().map_err(|error| Failure::failed(format!("no address: {error}")))?;
    let mut signals =
        Signals::listen().map_err(|error| Failure::failed(format!("no signal handling: {error}")))?;
    say(&welcome(address, &args));
    let form = match args.output {
        OutputForm::Text => Form::Text { verbose: args.verbose },
        OutputForm::Json => Form::Json,
    };
    let receiver = Receiver::new(verifier, args.answer, args.delay, args.count, form);
    let app = Router::new().fallback(receive::receive).with_state(receiver.clone());
    let counted = receiver.clone();
    let serving =
        axum::serve(listener, app).with_graceful_shutdown(async move { counted.until_done().await });
    let last_answers = async {
        receiver.until_done().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        ended = serving.into_future() => ended.map_err(|error| Failure::failed(error.to_string())),
        () = last_answers => Ok(()),
        _ = signals.next() => Ok(()),
    }
}

/// `None`: calls are not verified. Secrets are read here, since clap shows a value that it cannot read.
async fn verifier(args: &Listen) -> Result<Option<WebhookVerifier>, Failure> {
    let mut verifier = None;
    for token in &args.token {
        verifier = Some(match verifier {
            None => WebhookVerifier::with_token(token),
            Some(verifier) => WebhookVerifier::token(verifier, token),
        });
    }
    for text in &args.secret {
        let secret =
            WebhookSecret::parse(text).map_err(|error| Failure::usage(format!("--secret: {error}")))?;
        verifier = Some(match verifier {
            None => WebhookVerifier::with_secret(secret),
            Some(verifier) => WebhookVerifier::secret(verifier, secret),
        });
    }
    let Some(jwks) = &args.jwks else { return Ok(verifier) };
    let keys = keys(jwks).await?;
    let verifier = match verifier {
        None => WebhookVerifier::with_keys(keys),
        Some(verifier) => verifier.keys(keys),
    };
    Ok(Some(match &args.audience {
        Some(origin) => verifier.audience(origin),
        None => verifier,
    }))
}

/// Keys at an address are fetched now, so that a wrong one is told at once; the agent may also start later.
async fn keys(jwks: &str) -> Result<WebhookKeys, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("--jwks {jwks}: {error}"));
    if !jwks.contains("://") {
        let text = std::fs::read_to_string(jwks).map_err(|error| wrong(&error))?;
        return WebhookKeys::from_json(&text).map_err(|error| wrong(&error));
    }
    let keys = Client::builder().proxies(proxies()).webhook_keys(jwks).map_err(|error| wrong(&error))?;
    if let Err(error) = keys.fetch().await {
        output::warn(&format!("{error}; calls are refused until the keys can be fetched"));
    }
    Ok(keys)
}

fn welcome(address: SocketAddr, args: &Listen) -> String {
    let checks = [
        (!args.token.is_empty(), "the token"),
        (!args.secret.is_empty(), "the signature"),
        (args.jwks.is_some(), "the JWT"),
    ];
    let checks: Vec<&str> =
        checks.into_iter().filter(|(is_checked, _)| *is_checked).map(|(_, what)| what).collect();
    let checks = match &checks[..] {
        [] => "nothing: calls are shown whoever makes them".to_owned(),
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        checks => checks.concat(),
    };
    let (url, token) = (reachable(address), token(args));
    let (flag, more) = token.map_or_else(Default::default, |token| {
        (format!(" --token {token}"), format!(" --push-token {token}"))
    });
    let lines = match args.token.iter().any(|token| args.secret.contains(token)) {
        // Baton has one token for both.
        false if !args.token.is_empty() && !args.secret.is_empty() => {
            format!(
                "use        {url} with an agent that is given a token and another secret; Baton is given one for both\n"
            )
        }
        _ => format!(
            "use        baton send -a AGENT TEXT --push-url {url}{more}\n\
             or         baton task push-config create -a AGENT TASK_ID --url {url}{flag}\n"
        ),
    };
    format!("listening  http://{address}/\nverifying  {checks}\n{lines}\nCtrl-C ends it.\n")
}

/// The address for an agent: on another machine, if this listens at all addresses.
fn reachable(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("http://HOST:{}/", address.port()),
        false => format!("http://{address}/"),
    }
}

/// What the agent has to be given: as the variable that holds it, or as the word of the help. Never as it is.
fn token(args: &Listen) -> Option<&'static str> {
    let is_from = |name: &str, given: &[String]| std::env::var(name).is_ok_and(|value| given == [value]);
    // Without another token, agents sign with the token that they are given.
    match (&args.token[..], &args.secret[..]) {
        ([], []) => None,
        ([], secrets) if is_from(SECRET_VARIABLE, secrets) => Some("\"$BATON_WEBHOOK_SECRET\""),
        ([], _) => Some("SECRET"),
        (tokens, _) if is_from(TOKEN_VARIABLE, tokens) => Some("\"$BATON_WEBHOOK_TOKEN\""),
        _ => Some("TOKEN"),
    }
}

/// Everything but the calls goes to stderr.
fn say(text: &str) {
    // If stderr is closed, there is nowhere to write.
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_times_are_read() {
        assert_eq!(status("503"), Ok(StatusCode::SERVICE_UNAVAILABLE));
        for bad in ["", "199", "600", "abc", "2e2"] {
            status(bad).unwrap_err();
        }
        assert_eq!(time("1500ms"), Ok(Duration::from_millis(1500)));
        time("soon").unwrap_err();
    }
}
