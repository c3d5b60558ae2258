//! `baton push …`: webhooks of a server, for whoever operates it: through the running server, or in its store.

mod disable;
mod list;
mod replay;
mod show;

use baton_server::{WebhookError, Webhooks};
use clap::{Subcommand, ValueEnum};
use serde::Serialize;

#[cfg(unix)]
use crate::admin::Socket;
use crate::admin::webhooks::{self, ListedWebhooks, ReplayedWebhooks, Webhook, WhichWebhooks, Whose};
use crate::admin::{self, Reach};
use crate::commands::key::Place;
use crate::exit::Failure;
use crate::output::safe;

pub(crate) const EXAMPLES: &str = "\
Examples:
  baton push list                          all webhooks that are open or failed
  baton push list --failed                 those that are not called any more
  baton push show TASK/ID                  one of them, and why it failed
  baton push replay TASK/ID                go on where it stopped
  baton push replay --all-failed --host hooks.example.org
  baton push disable TASK/ID               send nothing more to it

The store is that of `baton serve` with the same --config and --store. If a server runs on it, the server is asked,
through a socket that only its own user can open; else the next server goes on with what was changed. Tokens, credentials and
the query of addresses are never shown. `baton task push-config` is for the callers of an agent.";

#[derive(Debug, Subcommand)]
pub(crate) enum PushVerb {
    /// List the webhooks that are open or failed.
    List(Box<list::List>),
    /// Show a webhook: where it calls, how far it has got, why it failed.
    Show(Box<show::Show>),
    /// Send what was not delivered, with the same webhook ids, so that receivers can tell repeats.
    Replay(Box<replay::Replay>),
    /// Send nothing more to an open webhook; a replay opens it again.
    Disable(Box<disable::Disable>),
}

/// Which webhook.
#[derive(Debug, clap::Args)]
struct One {
    /// The webhook as `list` shows it, `TASK/ID`; the task alone if it has one webhook.
    #[arg(value_name = "TASK/ID")]
    name: String,
    #[command(flatten)]
    whose: Whose,
}

/// The form of the result.
#[derive(Debug, clap::Args)]
struct Form {
    /// The form of the result.
    #[arg(long, short, value_enum, value_name = "FORM", default_value_t = OutputForm::Text)]
    output: OutputForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    Text,
    Json,
}

pub(crate) async fn run(verb: PushVerb) -> Result<(), Failure> {
    match verb {
        PushVerb::List(args) => list::run(*args).await,
        PushVerb::Show(args) => show::run(*args).await,
        PushVerb::Replay(args) => replay::run(*args).await,
        PushVerb::Disable(args) => disable::run(*args).await,
    }
}

impl Form {
    fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        crate::commands::print(&match self.output {
            OutputForm::Text => text(),
            OutputForm::Json => {
                let json = serde_json::to_string_pretty(value);
                json.map_err(|error| Failure::failed(error.to_string()))? + "\n"
            }
        })
    }
}

/// The webhooks: of the running server if there is one, else those in the store.
enum Reached {
    #[cfg(unix)]
    Server(Socket),
    Store(Webhooks),
}

impl Reached {
    async fn of(place: Place) -> Result<Self, Failure> {
        let config = place.load()?.config;
        match admin::reach(&config, "webhooks", false).await? {
            #[cfg(unix)]
            Reach::Server(socket) => Ok(Reached::Server(socket)),
            Reach::Store(opened) => {
                Ok(Reached::Store(Webhooks::in_store(opened.store, *config.push.max_failed)))
            }
        }
    }

    async fn list(&self, which: &WhichWebhooks) -> Result<ListedWebhooks, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => {
                socket.call(reqwest::Method::GET, &["webhooks"], &which.query(), None::<&()>).await
            }
            Reached::Store(webhooks) => {
                webhooks::list(webhooks, which).await.map_err(|error| refused(&error))
            }
        }
    }

    async fn show(&self, One { name, whose }: &One) -> Result<Webhook, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => {
                socket.call(reqwest::Method::GET, &["webhooks", name], &whose.query(), None::<&()>).await
            }
            Reached::Store(webhooks) => {
                webhooks::show(webhooks, name, whose).await.map_err(|error| refused(&error))
            }
        }
    }

    async fn replay(&self, One { name, whose }: &One) -> Result<ReplayedWebhooks, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => {
                let path = ["webhooks", name, "replay"];
                socket.call(reqwest::Method::POST, &path, &whose.query(), None::<&()>).await
            }
            Reached::Store(webhooks) => {
                webhooks::replay(webhooks, name, whose).await.map_err(|error| refused(&error))
            }
        }
    }

    async fn replay_failed(&self, which: &WhichWebhooks) -> Result<ReplayedWebhooks, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => {
                let path = ["failed-webhooks", "replay"];
                socket.call(reqwest::Method::POST, &path, &which.query(), None::<&()>).await
            }
            Reached::Store(webhooks) => {
                webhooks::replay_failed(webhooks, which).await.map_err(|error| refused(&error))
            }
        }
    }

    async fn disable(&self, One { name, whose }: &One) -> Result<Webhook, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => {
                let path = ["webhooks", name, "disable"];
                socket.call(reqwest::Method::POST, &path, &whose.query(), None::<&()>).await
            }
            Reached::Store(webhooks) => {
                webhooks::disable(webhooks, name, whose).await.map_err(|error| refused(&error))
            }
        }
    }
}

fn refused(error: &WebhookError) -> Failure {
    Failure::failed(error.to_string())
}

/// A webhook in a sentence. Clients choose the ids.
fn called(webhook: &Webhook) -> String {
    safe::line(&format!("{} of owner {}", webhook.name, webhook.owner))
}

/// A time in RFC 3339, to the second.
fn second(time: &str) -> String {
    time.get(..19).map_or_else(|| time.to_owned(), |time| format!("{} UTC", time.replace('T', " ")))
}
