//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::agents::demo::Profile;
use crate::agents::exec::flags::ExecFlags;
use crate::config::{Flag, Inputs};
use crate::{client, commands};

const EXAMPLES: &str = "\
Examples:
  baton                                              serve the demo agent at http://127.0.0.1:3000
  baton send http://127.0.0.1:3000 \"hello\"           send a message and wait for the result
  baton send http://127.0.0.1:3000 \"hello\" --stream  the same, with every event as it comes
  baton card get -a agents.example.net               what an agent says about itself
  baton serve --exec ./greet.py                      a program of yours as the agent
  baton test http://127.0.0.1:3000                   test any agent, this one or another";

const SERVE_EXAMPLES: &str = "\
Examples:
  baton serve --listen 127.0.0.1:8080    at another port (0 takes a free one)
  baton serve --store memory:            keep nothing after the process ends
  baton serve --profile minimal          without streams
  baton serve --exec ./greet.py          a program of yours as the agent
  baton serve --config agents.toml       the agents of a configuration file
  baton serve config default             what such a file can hold
  baton key new ci                       a key for a caller; from then on callers need one
  BATON_LOG=debug baton serve            with a longer log, on stderr";

const LAYERS: &str = "\
A value is taken from the flags, else from the environment (BATON_ and the key: BATON_LIMITS_MAX_BODY), else
from the file (--config, BATON_CONFIG, or ./baton.toml if it exists), else it is the default.";

/// Calls, serves and tests A2A (Agent2Agent) agents. Without a command it serves.
#[derive(Debug, Parser)]
#[command(name = "baton", version, disable_version_flag = true, after_help = EXAMPLES, override_usage = "baton [COMMAND]")]
struct Cli {
    /// Print the version.
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: (),

    #[command(subcommand)]
    command: Command,
}

/// The commands by what they are for; the help shows them in this order.
const GROUPS: &[(&str, &[&str])] = &[
    ("Call an agent", &["send", "chat", "task", "listen", "card", "auth", "config", "conformance"]),
    ("Serve agents", &["serve", "demo-server", "key", "push", "hash-password"]),
    ("Test agents and clients", &["test", "bench", "fault-proxy"]),
    ("Other", &["completion", "help"]),
];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a message to an agent, and wait for what becomes of it.
    Send(Box<commands::send::SendArgs>),
    /// Talk to an agent, turn by turn.
    Chat(Box<commands::chat::Chat>),
    /// Look at tasks, follow, cancel and download them.
    #[command(subcommand)]
    Task(commands::task::TaskVerb),
    /// Receive the calls that agents make to a webhook, and show them.
    Listen(commands::listen::Listen),
    /// Show what an agent says about itself.
    #[command(subcommand)]
    Card(commands::card::CardVerb),
    /// Sign in at an agent.
    #[command(subcommand)]
    Auth(commands::auth::AuthVerb),
    /// Show the settings of the client.
    #[command(subcommand)]
    Config(commands::config::ConfigVerb),
    /// Check whether an agent conforms to the A2A specification: `baton test` in brief.
    Conformance(Box<commands::conformance::Conformance>),
    /// Serve the agents of the configuration, or a program with `--exec`; without either, the demo agent.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<Serve>),
    /// Serve the demo agent, to practise with; it keeps its tasks in memory.
    DemoServer(commands::demo_server::DemoServer),
    /// Issue, list and revoke API keys, on a running server or in its store.
    #[command(subcommand, after_help = commands::key::EXAMPLES)]
    Key(commands::key::KeyVerb),
    /// List webhooks, send again what failed, and switch webhooks off, on a running server or in its store.
    #[command(subcommand, after_help = commands::push::EXAMPLES)]
    Push(commands::push::PushVerb),
    /// Read a password from the standard input and print its stored form, for the users of `[auth]`.
    HashPassword(commands::hash_password::HashPassword),
    /// Test whether any agent conforms to the A2A specification.
    Test(Box<commands::test::Test>),
    /// Put load on any agent: how fast it answers at a rate, and whether its streams lose events.
    Bench(Box<commands::bench::Bench>),
    /// Simulate a bad network: a TCP proxy in front of any server that splits, delays, stalls and cuts connections.
    FaultProxy(commands::fault_proxy::FaultProxy),
    /// Print a script that completes commands in a shell.
    Completion(commands::completion::Completion),
    /// Write the manual pages.
    #[command(hide = true)]
    Man(commands::man::Man),
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) verb: Option<ServeVerb>,

    #[command(flatten)]
    pub(crate) settings: Settings,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeVerb {
    /// Show or check the configuration of the server.
    #[command(subcommand, after_help = LAYERS)]
    Config(ServeConfigVerb),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeConfigVerb {
    /// Print the values in effect and where each comes from; secrets are hidden.
    #[command(after_help = LAYERS)]
    Show {
        #[command(flatten)]
        settings: Box<Settings>,
        #[arg(long, value_enum, default_value_t = Format::Toml)]
        format: Format,
        /// Add the keys that have no value.
        #[arg(long)]
        all: bool,
    },
    /// Check the configuration and its cards as `serve` would, without starting a server.
    #[command(after_help = LAYERS)]
    Check(Box<Settings>),
    /// Print a configuration file with every key, its meaning and its default.
    Default,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// With the source of each value as a comment.
    Toml,
    /// Each value as `{"value": …, "source": …}`.
    Json,
}

/// The flags that set the configuration.
// Kept as text here; the configuration parses them: it knows the type of each key, and which may hold a password that
// must not be shown in an error.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// The configuration file; `./baton.toml` if it exists [env: BATON_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Address and port to listen at; port 0 takes a free one [env: BATON_LISTEN, or PORT] [default: 127.0.0.1:3000].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,

    /// Where tasks are kept: `memory:` or `sqlite:PATH` [env: BATON_STORE] [default: a file in ./baton-data, one for each
    /// program and configuration; demo.db for the demo agent].
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// How much the demo agent offers [default: full].
    #[arg(long, value_enum)]
    profile: Option<Profile>,

    /// Serve HTTPS with this certificate: a PEM file that also holds the certificates between it and a known authority
    /// [env: BATON_TLS_CERT].
    #[arg(long, value_name = "FILE", conflicts_with = "tls_self_signed")]
    tls_cert: Option<String>,

    /// The key of the certificate, a PEM file [env: BATON_TLS_KEY].
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,

    /// Serve HTTPS with a certificate made for this machine, to try it out; it is kept beside the store
    /// [env: BATON_TLS_SELF_SIGNED].
    #[arg(long)]
    tls_self_signed: bool,

    /// The address that the card gives to clients, if it differs from the address to listen at [env: BATON_PUBLIC_URL].
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// Serve gRPC on the same port, over HTTP/2; the card then gives its address [env: BATON_GRPC].
    #[arg(long)]
    grpc: bool,

    /// The agent's card, a JSON file of any generation. The server does not start if the card declares something that it
    /// does not have; features that the card does not declare, such as streaming, are switched off. The demo agent's
    /// skills are `task` and `message` [env: BATON_CARD].
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    card: Option<String>,

    /// A proxy whose `Forwarded` and `X-Forwarded-*` headers are trusted to name the address that clients use: an
    /// address or a range such as 10.0.0.0/8. Repeatable; `--public-url` overrides it [env: BATON_TRUSTED_PROXIES].
    #[arg(long, value_name = "ADDR")]
    trusted_proxy: Vec<String>,

    /// The format of the log: `text` or `json` [env: BATON_LOG_FORMAT] [default: text].
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,

    /// Log every request, not only those that could not be served [env: BATON_LOG_REQUESTS].
    #[arg(long)]
    log_requests: bool,

    /// Serve `/metrics` at a separate address, to everybody who can reach it. Without this it is served on the main
    /// port, to callers on this machine only [env: BATON_METRICS_LISTEN].
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,

    /// Send traces to this OTLP receiver (HTTP with JSON), such as http://127.0.0.1:4318 [env: BATON_TRACES_OTLP, or
    /// OTEL_EXPORTER_OTLP_ENDPOINT].
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,

    /// Require this secret from every caller, in the header `X-API-Key`; 16 characters or more. `@FILE` reads it from a
    /// file (`openssl rand -hex 32 > FILE`), `env:NAME` from a variable. Prefer `@FILE` or the variable: other users of this machine can read command lines. Keys for several
    /// callers: `baton key new` [env: BATON_API_KEY].
    #[arg(long, value_name = "SECRET")]
    api_key: Option<String>,

    /// Allow listening at an address that other machines can reach although callers are not authenticated, or
    /// credentials would cross the network in clear text [env: BATON_ALLOW_PUBLIC].
    #[arg(long)]
    allow_public: bool,

    #[command(flatten)]
    exec: ExecFlags,
}

impl Settings {
    pub(crate) fn into_inputs(self) -> Inputs {
        let proxies = (!self.trusted_proxy.is_empty()).then(|| self.trusted_proxy.join(","));
        let flags = [
            ("--listen", "listen", self.listen),
            ("--store", "store.url", self.store),
            ("--tls-cert", "tls.cert", self.tls_cert),
            ("--tls-key", "tls.key", self.tls_key),
            ("--tls-self-signed", "tls.self_signed", self.tls_self_signed.then(|| "true".to_owned())),
            ("--public-url", "public_url", self.public_url),
            ("--grpc", "grpc", self.grpc.then(|| "true".to_owned())),
            ("--card", "card.file", self.card),
            ("--trusted-proxy", "trusted_proxies", proxies),
            ("--log-format", "log.format", self.log_format),
            ("--log-requests", "log.requests", self.log_requests.then(|| "true".to_owned())),
            ("--metrics-listen", "metrics.listen", self.metrics_listen),
            ("--otlp", "traces.otlp", self.otlp),
            ("--api-key", "auth.api_key.secret", self.api_key),
            ("--allow-public", "allow_public", self.allow_public.then(|| "true".to_owned())),
        ];
        let flags = flags.into_iter().filter_map(|(name, key, text)| Some(Flag { name, key, text: text? }));
        Inputs::of_process(self.config, flags.collect(), self.profile, self.exec)
    }
}

/// Parses the command line; `--help`, `--version` and mistakes end the process here.
pub(crate) fn parse() -> Typed {
    let args = with_default_command(std::env::args_os().collect());
    let whole = command();
    let (args, leading) = client::leading_address(args, &whole);
    let parsed = whole.try_get_matches_from(args.clone()).and_then(|matches| {
        let parsed = Cli::from_arg_matches(&matches);
        // The command line's own errors are shown with the usage of the command.
        parsed.map_err(|error| error.format(&mut command()))
    });
    match parsed {
        Ok(cli) => Typed { command: cli.command, leading },
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            let _ = commands::print(&format!("baton {}\n", env!("CARGO_PKG_VERSION")));
            std::process::exit(0)
        }
        Err(error) if error.use_stderr() && client::is_client_command(&args) => {
            std::process::exit(client::report_usage(&error, &args).into())
        }
        Err(error) => error.exit(),
    }
}

/// What was typed.
pub(crate) struct Typed {
    pub(crate) command: Command,
    /// An address that stood where `--agent-card` was meant.
    pub(crate) leading: Option<String>,
}

/// The whole command line, with the commands in groups.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command().subcommand_help_heading("Commands");
    let command = command.mut_subcommand("bench", commands::bench::adapted);
    let about = |name: &str| match command.find_subcommand(name) {
        Some(found) => found.get_about().map(ToString::to_string).unwrap_or_default(),
        None => "Print the help of a command".to_owned(),
    };
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{title}:\n");
        for name in *names {
            groups += &format!("  {name:<15}{}\n", about(name));
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// `baton` and `baton --listen …` mean `baton serve …`.
fn with_default_command(mut args: Vec<OsString>) -> Vec<OsString> {
    const TOP_LEVEL: &[&str] = &["-h", "--help", "-v", "-V", "--version"];
    let serve = match args.get(1).and_then(|arg| arg.to_str()) {
        Some(arg) => arg.starts_with('-') && !TOP_LEVEL.contains(&arg),
        None => args.len() == 1,
    };
    if serve {
        args.insert(1, "serve".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn the_usage_says_that_a_command_may_be_left_out() {
        let help = command().render_help().to_string();
        assert!(help.contains("Usage: baton [COMMAND]\n"), "{help}");
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        named.sort_unstable();
        let whole = command();
        let visible = whole.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).chain(["help"]).collect();
        visible.sort_unstable();
        assert_eq!(named, visible);
    }

    #[test]
    fn serve_is_the_default_command() {
        for (typed, meant) in [
            ("baton", "baton serve"),
            ("baton --listen 127.0.0.1:0", "baton serve --listen 127.0.0.1:0"),
            ("baton serve --store memory:", "baton serve --store memory:"),
            ("baton --help", "baton --help"),
            ("baton -V", "baton -V"),
            ("baton -v", "baton -v"),
            ("baton sevre", "baton sevre"),
        ] {
            let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(with_default_command(args(typed)), args(meant));
        }
    }
}
