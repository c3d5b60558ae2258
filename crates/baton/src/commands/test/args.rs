//! The command line of `baton test`.

use std::path::PathBuf;
use std::time::Duration;

use baton_lab::generation::{Binding, Generation};
use clap::ValueEnum;

use super::as_server::Judging;
use super::compare::Compare;

const EXAMPLES: &str = "\
Examples:
  baton test http://127.0.0.1:3000                       everything that the agent's card declares
  baton test URL --binding rest --select streaming       one binding, one category
  baton test URL --select 3.1.6,V1-SUB                   a section of the specification, an area of ids
  baton test URL --report report.html --report report.xml
  baton test URL --bearer @token.txt --second URL2
  baton test https://agent.internal --ca ca.pem          a certificate of one's own authority
  baton test URL --api-key @one.txt --other-api-key @two.txt    also: one user's tasks are hidden from another
  baton test URL --faults                                also on a bad network
  baton test URL --suite acts/                           official ACTS files, with corrections
  baton test --explain V1-SUB-001                        what a check requires, and why
  baton test compare before.json after.json
  baton test --as-server -- ./client {url}               judge the client that calls

Exit code: 0 the agent conforms, 1 it does not, 2 it could not be tested or a report could not be made.";

const CREDENTIALS: &str = "Credentials";
const TLS: &str = "TLS";
const CHOICE: &str = "Choice";
const OUTPUT: &str = "Output";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct Test {
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,

    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Compare reports (made with `--report NAME.json`) side by side.
    Compare(Compare),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The agent's address, or that of its card [env: A2A_URL].
    #[arg(value_name = "URL")]
    pub(super) url: Option<String>,

    /// The address of a second agent, for the checks that need two.
    #[arg(long, value_name = "URL")]
    pub(super) second: Option<String>,

    /// A generation: 1.0, 0.3 or 0.1. Repeatable; default: all that were found.
    #[arg(long, value_name = "VERSION", value_delimiter = ',', help_heading = CHOICE)]
    pub(super) generation: Vec<Generation>,

    /// A binding: jsonrpc, rest or grpc. Repeatable; default: all that were found.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = CHOICE)]
    pub(super) binding: Vec<Binding>,

    /// Checks to run: an id or the beginning of one, a section, category, level, tag or suite; a leading `!` excludes.
    #[arg(long, short = 's', value_name = "WORD", value_delimiter = ',', help_heading = CHOICE)]
    pub(super) select: Vec<String>,

    /// Skills whose example phrases are sent; default: all skills of the card.
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = CHOICE)]
    pub(super) skills: Vec<String>,

    /// An ACTS file, or a folder of them, instead of the built-in suites. Repeatable.
    #[arg(long, value_name = "PATH", help_heading = CHOICE)]
    pub(super) suite: Vec<PathBuf>,

    /// Run ACTS files as they are written, without corrections.
    #[arg(long, help_heading = CHOICE)]
    pub(super) no_corrections: bool,

    /// A value for `{{NAME}}` in ACTS files.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, help_heading = CHOICE)]
    pub(super) var: Vec<(String, String)>,

    /// Fail the run for missed recommendations (should), too.
    #[arg(long)]
    pub(super) strict: bool,

    /// Longest time for one check [default: 60s]. With --as-server: for one run of the command, or without a command
    /// for the whole run.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,

    /// How long to wait for an agent that is still starting.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(super) wait: Duration,

    /// Number of checks that run at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) parallel: u16,

    /// Repeat the random choices (--faults) of an earlier run; every report says the seed of its run.
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,

    /// Run checks again on a bad network (split, delayed, stalled, cut, reset, half-closed connections) and expect the
    /// same verdicts. Runs one check of each category; `--faults=all` runs all, `--faults=split,cut` limits the kinds
    /// of faults.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = "some")]
    pub(super) faults: Vec<String>,

    /// A file with the expected failures: any other failure fails the run, and so does a listed check that passes.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Write the failures of this run as a baseline file.
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub(super) write_baseline: Option<PathBuf>,

    /// A bearer token; `@FILE` reads it from a file [env: A2A_BEARER_TOKEN, A2A_AUTH_TOKEN].
    #[arg(long, value_name = "TOKEN", help_heading = CREDENTIALS)]
    pub(super) bearer: Option<String>,

    /// An API key, sent where the card says (header, query or cookie), else in X-API-Key; `@FILE` reads it from a file
    /// [env: A2A_AUTH_TYPE=apikey with A2A_AUTH_TOKEN and A2A_AUTH_HEADER].
    #[arg(long, value_name = "KEY", help_heading = CREDENTIALS)]
    pub(super) api_key: Option<String>,

    /// HTTP basic authentication; `@FILE` reads it from a file [env: A2A_AUTH_TYPE=basic with A2A_AUTH_USERNAME and
    /// A2A_AUTH_PASSWORD].
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "bearer", help_heading = CREDENTIALS)]
    pub(super) basic: Option<String>,

    /// HTTP digest authentication (SHA-256); `@FILE` reads it from a file.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with_all = ["bearer", "basic"], help_heading = CREDENTIALS)]
    pub(super) digest: Option<String>,

    /// A header that goes with every request.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header, help_heading = CREDENTIALS)]
    pub(super) header: Vec<(String, String)>,

    /// A bearer token for the second agent. The first agent's token is not sent to it, unless both have the same host
    /// and port.
    #[arg(long, value_name = "TOKEN", requires = "second", help_heading = CREDENTIALS)]
    pub(super) second_bearer: Option<String>,

    /// A header that goes with every request to the second agent.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, requires = "second", help_heading = CREDENTIALS)]
    pub(super) second_header: Vec<(String, String)>,

    /// A second user's bearer token: checks that one user's tasks are hidden from another.
    #[arg(long, value_name = "TOKEN", help_heading = CREDENTIALS)]
    pub(super) other_bearer: Option<String>,

    /// A second user's API key.
    #[arg(long, value_name = "KEY", help_heading = CREDENTIALS)]
    pub(super) other_api_key: Option<String>,

    /// A second user's name and password.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "other_bearer", help_heading = CREDENTIALS)]
    pub(super) other_basic: Option<String>,

    /// A header of a second user.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = CREDENTIALS)]
    pub(super) other_header: Vec<(String, String)>,

    /// Certificates (PEM) that are trusted in addition to the system's: of an authority, or the agent's own. Repeatable.
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub(super) ca: Vec<PathBuf>,

    /// Do not check the agent's certificate. Every report says so.
    #[arg(long, help_heading = TLS)]
    pub(super) insecure: bool,

    /// A client certificate (PEM, with its chain), for agents that ask for one.
    #[arg(long, value_name = "FILE", requires = "client_key", help_heading = TLS)]
    pub(super) client_cert: Option<PathBuf>,

    /// The private key (PEM) of the client certificate.
    #[arg(long, value_name = "FILE", requires = "client_cert", help_heading = TLS)]
    pub(super) client_key: Option<PathBuf>,

    /// The format of the report on stdout.
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = OUTPUT)]
    pub(super) format: Format,

    /// A report file; its extension is the format: .json .md .xml (JUnit) .html .tap .svg .txt .acts.json. Repeatable.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) report: Vec<PathBuf>,

    /// Include the exchanged requests and answers of checks that passed, too.
    #[arg(long, help_heading = OUTPUT)]
    pub(super) all_evidence: bool,

    /// Print only the conformance level and the counts.
    #[arg(long, short, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(super) quiet: bool,

    /// Print every check, with notes and corrections.
    #[arg(long, short, help_heading = OUTPUT)]
    pub(super) verbose: bool,

    /// Colours in text; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto, help_heading = OUTPUT)]
    pub(super) color: Colour,

    /// List the checks; run nothing.
    #[arg(long, help_heading = CHOICE)]
    pub(super) list: bool,

    /// Explain a check: what it requires, why, and what it sends; run nothing.
    #[arg(long, value_name = "ID", help_heading = CHOICE)]
    pub(super) explain: Option<String>,

    /// List the corrections to the official ACTS files; run nothing.
    #[arg(long, help_heading = CHOICE)]
    pub(super) corrections: bool,

    #[command(flatten)]
    pub(super) judging: Judging,
}

impl RunArgs {
    pub(super) fn timeout(&self) -> Duration {
        const USUAL: Duration = Duration::from_secs(60);
        self.timeout.unwrap_or(USUAL)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
    Markdown,
    Junit,
    Acts,
    Html,
    Tap,
    Badge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Colour {
    Auto,
    Always,
    Never,
}

/// `500ms`, `60s`, `2m`; a number alone is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    crate::config::duration(&text).ok_or_else(|| "write a time such as 500ms, 60s or 2m".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// An error must not contain the header's value: it may be a secret.
fn header(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once(':') else { return Err("write 'NAME: VALUE'".to_owned()) };
    let (name, value) = (name.trim(), value.trim());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err("the name is not a valid header name".to_owned());
    }
    if value.chars().any(char::is_control) {
        return Err("the header's value holds control characters".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in [("60", 60.0), ("60s", 60.0), ("2m", 120.0), ("1500ms", 1.5), ("0", 0.0)] {
            assert_eq!(duration(text).unwrap().as_secs_f64(), seconds);
        }
        for bad in ["", "s", "1x", "-1s", "1.5"] {
            duration(bad).unwrap_err();
        }
    }

    #[test]
    fn headers_and_variables_are_pairs() {
        assert_eq!(header("X-A:  b: c "), Ok(("X-A".to_owned(), "b: c".to_owned())));
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        for bad in ["X-A", ": v", "X A: v", "X-A: a\nb"] {
            assert!(!header(bad).unwrap_err().contains('v'.to_string().repeat(2).as_str()), "{bad}");
        }
        pair("=x").unwrap_err();
    }
}
