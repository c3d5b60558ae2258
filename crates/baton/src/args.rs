//! The command line, as typed.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use baton_server::IpRange;
use clap::{Parser, Subcommand};

use crate::agents::demo::Profile;

const EXAMPLES: &str = "\
Examples:
  baton                                  serve the demo agent at http://127.0.0.1:3000
  baton serve --listen 127.0.0.1:8080    at another port (0 takes a free one)
  baton serve --store memory:            keep nothing after the process ends
  baton serve --profile minimal          without streams
  BATON_LOG=debug baton serve            with a longer log, on stderr";

/// Puts agents on the A2A (Agent2Agent) network. Without a command: `serve`.
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the demo agent.
    #[command(after_help = EXAMPLES)]
    Serve(Serve),

    /// Test any agent, and say plainly what is wrong.
    Test(crate::commands::test::Test),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Address and port to listen at; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", env = "BATON_LISTEN", default_value = "127.0.0.1:3000")]
    pub(crate) listen: String,

    /// Where tasks are kept: `memory:` or `sqlite:PATH`.
    // A text until `serve` reads it: clap would repeat a bad one, and a password may be in there.
    #[arg(
        long,
        value_name = "URL",
        env = "BATON_STORE",
        hide_env_values = true,
        default_value = "sqlite:./baton-data/demo.db"
    )]
    pub(crate) store: String,

    /// What the demo agent's card promises.
    #[arg(long, value_enum, default_value_t = Profile::Full)]
    pub(crate) profile: Profile,

    /// The address that the card gives to clients, when they reach the server by another one.
    #[arg(long, value_name = "URL", value_parser = public_url)]
    pub(crate) public_url: Option<String>,

    /// The agent's card, a JSON file of any generation. What it promises must be there; what it leaves out is
    /// switched off. The demo agent's skills are `task` and `message`.
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) card: Option<PathBuf>,

    /// A proxy whose `Forwarded` and `X-Forwarded-*` headers tell the address clients use: an address or a range
    /// such as 10.0.0.0/8. May be given several times; `--public-url` wins.
    #[arg(long, value_name = "ADDR")]
    pub(crate) trusted_proxy: Vec<IpRange>,

    /// Listen at an address that other machines can reach. There is no authentication yet: whoever reaches
    /// the port can read and change every task.
    #[arg(long)]
    pub(crate) allow_public: bool,
}

/// Where tasks are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    Memory,
    Sqlite(PathBuf),
}

/// Reads the command line; help, version and mistakes end the process here.
pub(crate) fn parse() -> Command {
    Cli::parse_from(with_default_command(std::env::args_os().collect())).command
}

/// `baton` and `baton --listen …` mean `baton serve …`.
fn with_default_command(mut args: Vec<OsString>) -> Vec<OsString> {
    const TOP_LEVEL: &[&str] = &["-h", "--help", "-V", "--version"];
    let serve = match args.get(1).and_then(|arg| arg.to_str()) {
        Some(arg) => arg.starts_with('-') && !TOP_LEVEL.contains(&arg),
        None => args.len() == 1,
    };
    if serve {
        args.insert(1, "serve".into());
    }
    args
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ACCEPTED: &str = "`memory:` and `sqlite:PATH` are accepted";
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(format!("a store is written as `scheme:…`; {ACCEPTED}"));
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(StoreUrl::Memory),
            "memory" => Err(format!("`memory:` takes nothing after the colon; {ACCEPTED}")),
            "sqlite" if rest.is_empty() => Err(format!("the path is missing; {ACCEPTED}")),
            "sqlite" => Ok(StoreUrl::Sqlite(PathBuf::from(rest))),
            "postgres" | "postgresql" | "redis" | "rediss" => {
                Err(format!("`{scheme}` is not supported yet; {ACCEPTED}"))
            }
            _ => Err(format!("unknown store `{scheme}`; {ACCEPTED}")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

fn public_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if rest.starts_with('/') || rest.is_empty() => Err("the host is missing".to_owned()),
        Some(rest) if rest.contains(['?', '#']) || rest.contains(char::is_whitespace) => {
            Err("it may not hold a query, a fragment or a space".to_owned())
        }
        Some(_) => Ok(text.to_owned()),
        None => Err("it must start with http:// or https://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command() {
        for (typed, meant) in [
            ("baton", "baton serve"),
            ("baton --listen 127.0.0.1:0", "baton serve --listen 127.0.0.1:0"),
            ("baton serve --store memory:", "baton serve --store memory:"),
            ("baton --help", "baton --help"),
            ("baton -V", "baton -V"),
            ("baton sevre", "baton sevre"),
        ] {
            let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(with_default_command(args(typed)), args(meant));
        }
    }

    #[test]
    fn stores_are_read_or_refused_with_what_is_accepted() {
        assert_eq!("memory:".parse(), Ok(StoreUrl::Memory));
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        for (text, reason) in [
            ("postgres://u@h/db", "`postgres` is not supported yet"),
            ("redis://h", "`redis` is not supported yet"),
            ("mongo://h", "unknown store `mongo`"),
            ("memory", "written as `scheme:…`"),
            ("memory:x", "nothing after the colon"),
            ("sqlite:", "the path is missing"),
        ] {
            let refused = text.parse::<StoreUrl>().unwrap_err();
            assert!(refused.contains(reason) && refused.contains("`memory:` and `sqlite:PATH`"), "{refused}");
        }
    }

    #[test]
    fn public_urls_are_checked() {
        for good in ["http://a", "https://a.example/base/", "http://[::1]:3000"] {
            assert_eq!(public_url(good).as_deref(), Ok(good));
        }
        for bad in ["a.example", "ftp://a", "http://", "https:///x", "http://a?b", "http://a#b", "http://a b"]
        {
            public_url(bad).unwrap_err();
        }
    }
}
