//! The options that every client command has.

use clap::ArgAction;

use super::settings::Key;

const AGENT: &str = "Agent";
const RESULT: &str = "Result";
const WAITING: &str = "Waiting";
const CREDENTIALS: &str = "Credentials and TLS";
const PROTOCOL: &str = "Protocol";
const OTHER: &str = "Other";

/// Below the help of every client command.
pub(crate) const SETTINGS_HELP: &str = "\
Each option can also be set by the variable A2ACLI_ and its name (A2ACLI_POLL_INTERVAL), in the nearest .env file from this
folder upwards, or in ~/.config/a2a-cli/.env; --stream, --help and --version only here. A flag beats the environment, which
beats files. `baton config show` prints the values in effect and where each comes from.

The value of --bearer, --api-key, --user or --svc-param can be seen in the process table and stays in the history of the
shell; the variables A2ACLI_BEARER, A2ACLI_API_KEY, A2ACLI_USER and A2ACLI_SVC_PARAM avoid that.

An http(s) address that comes first stands for --agent-card: `baton send http://127.0.0.1:3000 \"hi\"`.

Exit status: 0 done, whatever became of the task; 1 failed; 2 usage; 3 unreachable; 4 not authenticated; 5 timeout.";

// Kept as text here: the same values can come from variables and files, and are read in one place for all.
/// Options of the client.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(version)]
pub(crate) struct Options {
    /// The agent: a host or an address, the address of its card, or a card file.
    #[arg(short, long, value_name = "REF", help_heading = AGENT)]
    pub(crate) agent_card: Option<String>,

    /// A binding to prefer, if the card offers it: jsonrpc, rest or grpc. Repeatable, the first is preferred most
    /// [default: the card's order].
    #[arg(long, value_name = "BINDING", help_heading = PROTOCOL)]
    transport: Vec<String>,

    /// Speak gRPC without TLS where the card's address does not tell, also to other machines [default: only with this one].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          help_heading = PROTOCOL)]
    grpc_plaintext: Option<String>,

    /// The protocol version to speak [default: the highest that both sides know, 1.0 or later].
    #[arg(long, value_name = "VERSION", help_heading = PROTOCOL)]
    a2a_version: Option<String>,

    /// A header of every request to the agent. Repeatable.
    #[arg(long, value_name = "NAME:VALUE", help_heading = PROTOCOL)]
    svc_param: Vec<String>,

    /// Metadata of the request: a JSON object.
    #[arg(long, value_name = "JSON", help_heading = PROTOCOL)]
    metadata: Option<String>,

    /// The form of the result: text or json [default: text].
    #[arg(short, long, value_name = "FORM", help_heading = RESULT)]
    pub(crate) output: Option<String>,

    /// Deliver each event as it comes; with `-o json` one object per line.
    #[arg(long, help_heading = RESULT)]
    pub(crate) stream: bool,

    /// Show everything that was exchanged [default: the essentials].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          help_heading = RESULT)]
    verbose: Option<String>,

    /// Show timing, choices and the exchanged messages on stderr; credentials are hidden.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          help_heading = RESULT)]
    debug: Option<String>,

    /// Wait until the task ends or asks for something [default: send waits, task get does not].
    #[arg(long, visible_alias = "watch", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = WAITING)]
    wait: Option<String>,

    /// Do not wait: print the ids and leave.
    #[arg(long = "async", visible_aliases = ["return-immediately", "no-wait"], value_name = "BOOL",
          num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = WAITING)]
    apart: Option<String>,

    /// The time between two looks at the task [default: 2s].
    #[arg(long, value_name = "TIME", help_heading = WAITING)]
    poll_interval: Option<String>,

    /// Give up waiting after this time [default: none].
    #[arg(long, value_name = "TIME", help_heading = WAITING)]
    timeout: Option<String>,

    /// Begin a task in this context; with `task list`: only tasks of this context.
    #[arg(long, value_name = "ID", help_heading = AGENT)]
    context_id: Option<String>,

    /// Go on with this task.
    #[arg(long, value_name = "ID", help_heading = AGENT)]
    task_id: Option<String>,

    /// A bearer token.
    #[arg(long, value_name = "TOKEN", help_heading = CREDENTIALS)]
    bearer: Option<String>,

    /// An API key, sent where the card says.
    #[arg(long, value_name = "KEY", help_heading = CREDENTIALS)]
    api_key: Option<String>,

    /// A user and password, for agents that ask for them.
    #[arg(long, value_name = "NAME:PASSWORD", help_heading = CREDENTIALS)]
    user: Option<String>,

    /// Do not check the agent's certificate [default: certificates are checked].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          help_heading = CREDENTIALS)]
    insecure: Option<String>,

    /// Trust these certificates (PEM) instead of the system's.
    #[arg(long, value_name = "FILE", help_heading = CREDENTIALS)]
    ca: Option<String>,

    /// A client certificate (PEM, with its chain).
    #[arg(long, value_name = "FILE", help_heading = CREDENTIALS)]
    client_cert: Option<String>,

    /// The private key (PEM) of the client certificate.
    #[arg(long, value_name = "FILE", help_heading = CREDENTIALS)]
    client_key: Option<String>,

    /// Send credentials and headers to this origin, too, if the card leads there. Repeatable [default: to the host that was
    /// named].
    #[arg(long, value_name = "URL", help_heading = CREDENTIALS)]
    trust_origin: Vec<String>,

    /// A settings file, read in place of the nearest .env.
    #[arg(long, value_name = "FILE", help_heading = OTHER)]
    config: Option<String>,

    /// Print the version.
    #[arg(short = 'v', long, action = ArgAction::Version, help_heading = OTHER)]
    version: (),
}

impl Options {
    /// Those that were typed.
    pub(crate) fn flags(&self) -> Vec<(Key, String)> {
        let one = [
            (Key::AgentCard, &self.agent_card),
            (Key::Output, &self.output),
            (Key::Async, &self.apart),
            (Key::Wait, &self.wait),
            (Key::PollInterval, &self.poll_interval),
            (Key::Timeout, &self.timeout),
            (Key::ContextId, &self.context_id),
            (Key::TaskId, &self.task_id),
            (Key::GrpcPlaintext, &self.grpc_plaintext),
            (Key::A2aVersion, &self.a2a_version),
            (Key::Bearer, &self.bearer),
            (Key::ApiKey, &self.api_key),
            (Key::User, &self.user),
            (Key::Metadata, &self.metadata),
            (Key::Insecure, &self.insecure),
            (Key::Ca, &self.ca),
            (Key::ClientCert, &self.client_cert),
            (Key::ClientKey, &self.client_key),
            (Key::Verbose, &self.verbose),
            (Key::Debug, &self.debug),
            (Key::Config, &self.config),
        ];
        let one = one.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
        let many = [
            (Key::Transport, &self.transport),
            (Key::SvcParam, &self.svc_param),
            (Key::TrustOrigin, &self.trust_origin),
        ];
        let many =
            many.into_iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value.clone())));
        one.chain(many).collect()
    }
}
