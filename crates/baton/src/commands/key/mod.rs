//! `baton key …`: issues, lists and revokes API keys, through the running server or in its store.

mod reach;
mod show;

use std::path::PathBuf;

use baton_protocol::domain::Timestamp;
use baton_protocol::wire::v1::parse_timestamp;
use clap::Subcommand;

use self::reach::Reached;
use crate::admin::{self, NewKeyCall};
use crate::agents::exec::flags::ExecFlags;
use crate::config::{self, Flag, Inputs, Loaded};
use crate::exit::Failure;

pub(crate) const EXAMPLES: &str = "\
Examples:
  baton key new ci                                a key for the owner `ci`; it is shown once
  baton key new alice-laptop --owner alice        two keys of one owner see the same tasks
  baton key new report --scope tasks:read --expires 90d
  baton key list                                  all keys, without their secrets
  baton key revoke ci                             by name or id; takes effect at once
  baton key list --store sqlite:agents.db         of another server than the demo agent's

The store is that of `baton serve` with the same --config and --store. If a server runs on it, the server is asked,
through a socket that only its own user can open. Once a store has a key, servers that start on it require keys.";

#[derive(Debug, Subcommand)]
pub(crate) enum KeyVerb {
    /// Issue a key and print it, once.
    #[command(after_help = EXAMPLES)]
    New {
        /// What you call the key: for the list, the log, and to revoke it.
        name: String,
        /// Who owns the tasks of its bearer; keys of one owner see the same tasks [default: NAME].
        #[arg(long)]
        owner: Option<String>,
        /// What its bearer may do, if the agent's card asks for scopes. Repeatable.
        #[arg(long, value_name = "SCOPE", value_parser = scope)]
        scope: Vec<String>,
        /// Refuse the key after this time, such as 12h or 90d, or from this day on (UTC), such as 2027-01-31 [default:
        /// never].
        #[arg(long, value_name = "TIME", value_parser = expiry)]
        expires: Option<Timestamp>,
        /// Print JSON; the key is in the member `secret`.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List all keys, those that are revoked or expired included.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a key: the next request with it is refused.
    Revoke {
        /// The key's id or name.
        key: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Which server.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The server's configuration file; `./baton.toml` if it exists [env: BATON_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server's store, as `baton serve` prints it [env: BATON_STORE].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The server's administration socket, if it is not beside the store [env: BATON_ADMIN_SOCKET].
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,
}

impl Place {
    pub(crate) fn load(self) -> Result<Loaded, Failure> {
        let flags = [("--store", "store.url", self.store), ("--socket", "admin.socket", self.socket)];
        let flags = flags.into_iter().filter_map(|(name, key, text)| Some(Flag { name, key, text: text? }));
        let inputs = Inputs::of_process(self.config, flags.collect(), None, ExecFlags::default());
        inputs.load_place().map_err(|problems| Failure::usage(problems.to_string()))
    }
}

fn expiry(text: &str) -> Result<Timestamp, String> {
    if let Some(time) = config::duration(text) {
        return Ok(admin::now().plus_millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)));
    }
    // A whole day begins at midnight.
    let day = parse_timestamp(&format!("{text}T00:00:00Z"));
    if let Some(time) = day.or_else(|| parse_timestamp(text)) {
        return Ok(time);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Err(match (is_number, digits.len() == text.len()) {
        (true, true) => format!("the unit is missing, as in {text}d or {text}h"),
        (true, false) if text.ends_with(['d', 'h', 'm', 's']) => {
            "more than 100 years; without --expires a key is valid until it is revoked".to_owned()
        }
        _ => "expected a time such as 12h or 90d, or a day such as 2027-01-31".to_owned(),
    })
}

/// RFC 6749 allows commas, but who types one means several scopes.
fn scope(text: &str) -> Result<String, String> {
    match text.contains(',') {
        true => Err("a scope without commas is expected; repeat --scope for several".to_owned()),
        false => Ok(text.to_owned()),
    }
}

pub(crate) async fn run(verb: KeyVerb) -> Result<(), Failure> {
    match verb {
        KeyVerb::New { name, owner, scope, expires, json, place } => {
            let owner = owner.unwrap_or_else(|| name.clone());
            let expires = expires.map(Timestamp::as_millis);
            let call = NewKeyCall { name, owner, scopes: scope, expires };
            let loaded = place.load()?;
            let issued = Reached::of(&loaded.config, true).await?.issue(call).await?;
            super::print(&match json {
                true => show::json(&issued)?,
                false => {
                    let elsewhere = admin::server_elsewhere(&loaded.config).filter(|_| !issued.running);
                    let warning = elsewhere.map(|said| format!("\nWarning: {said}\n"));
                    show::issued(&issued, &loaded) + &warning.unwrap_or_default()
                }
            })
        }
        KeyVerb::List { json, place } => {
            let loaded = place.load()?;
            let listed = Reached::of(&loaded.config, false).await?.list().await?;
            super::print(&if json { show::json(&listed)? } else { show::table(&listed.keys) })
        }
        KeyVerb::Revoke { key, place } => {
            let loaded = place.load()?;
            let revoked = Reached::of(&loaded.config, false).await?.revoke(&key).await?;
            super::print(&show::revoked(&revoked))
        }
    }
}
