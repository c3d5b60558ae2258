//! `baton listen`: a webhook for trying out agents and senders. It shows every call, verifies it if it is told how, and
//! answers as it is told.

mod receive;
mod show;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use baton_client::WebhookVerifier;
use baton_protocol::signature::webhook::WebhookSecret;
use clap::ValueEnum;
use http::StatusCode;

use self::receive::Receiver;
use self::show::Form;
use crate::commands;
use crate::exit::Failure;
use crate::signals::Signals;

/// How long calls that are being answered may take after the last one was counted.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  baton listen                                     show whatever comes
  baton listen --token s3cret --count 1 -o json    wait for one call with this token, as a line of JSON
  baton listen --answer 500,500,200                fail twice, to see the agent try again
  baton listen --delay 20s                         answer late, to see the agent's timeout

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
    #[arg(long, value_name = "TOKEN", env = "BATON_WEBHOOK_TOKEN", hide_env = true)]
    token: Vec<String>,

    /// The secret that calls must be signed with (Standard Webhooks), `whsec_…`. Repeatable, for a sender that changes from
    /// one to another [env: BATON_WEBHOOK_SECRET].
    #[arg(long, value_name = "SECRET", env = "BATON_WEBHOOK_SECRET", hide_env = true)]
    secret: Vec<String>,

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
    let verifier = verifier(&args)?;
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
fn verifier(args: &Listen) -> Result<Option<WebhookVerifier>, Failure> {
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
    Ok(verifier)
}

fn welcome(address: SocketAddr, args: &Listen) -> String {
    let token = if args.token.is_empty() { "" } else { " --token TOKEN" };
    let checks = match (args.token.is_empty(), args.secret.is_empty()) {
        (true, true) => "nothing: calls are shown whoever makes them",
        (false, true) => "the token",
        (true, false) => "the signature",
        (false, false) => "the token and the signature",
    };
    format!(
        "listening  http://{address}/\nverifying  {checks}\nuse        baton task push-config create TASK_ID --url http://{address}/{token}\n\nCtrl-C ends it.\n"
    )
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
