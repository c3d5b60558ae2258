//! The settings of the client in effect, each from the strongest source that has it.

mod dotenv;
mod key;
mod layers;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use baton_client::Origin;
use baton_protocol::domain::JsonObject;
use secrecy::SecretString;

pub(crate) use self::key::Key;
pub(crate) use self::layers::{Layers, Source, Surroundings};
pub(crate) use self::values::duration;
use super::error::CallError;

/// Printed instead of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// The warning for a credential that travels although nobody knows to whom.
const INSECURE_CREDENTIALS: &str = "--insecure: CREDENTIALS ARE SENT although the agent's certificate is not \
                                               checked; anybody on the way can read them";

/// The form of the result on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// How a command delivers what the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// At the end.
    Wait,
    /// Each event as it comes.
    Stream,
    /// Only what the agent answers at once.
    Return,
}

/// The settings in effect.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) agent_card: Option<String>,
    pub(crate) format: Format,
    pub(crate) stream: bool,
    /// What was said about waiting; the command has its own default.
    pub(crate) wait: Option<bool>,
    pub(crate) poll_interval: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) context_id: Option<String>,
    pub(crate) task_id: Option<String>,
    /// Binding names as cards write them, in order of preference.
    pub(crate) transports: Vec<&'static str>,
    /// No TLS over gRPC where the card's address does not tell.
    pub(crate) grpc_plaintext: bool,
    pub(crate) version: Option<String>,
    pub(crate) bearer: Option<SecretString>,
    pub(crate) api_key: Option<SecretString>,
    /// Name and password.
    pub(crate) user: Option<(String, SecretString)>,
    pub(crate) service_parameters: Vec<(String, SecretString)>,
    pub(crate) metadata: Option<JsonObject>,
    pub(crate) insecure: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) client_cert: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    /// Where credentials may go besides the origin that was named.
    pub(crate) trusted_origins: Vec<Origin>,
    pub(crate) verbose: bool,
    pub(crate) debug: bool,
    /// For stderr.
    pub(crate) warnings: Vec<String>,
    pub(crate) layers: Layers,
    /// The folder of the user's own files.
    pub(crate) own_folder: Option<PathBuf>,
}

/// The default of `--poll-interval`.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

impl Settings {
    pub(crate) fn read(
        flags: Vec<(Key, String)>,
        stream: bool,
        around: &Surroundings,
    ) -> Result<Self, CallError> {
        let layers = Layers::read(flags, around)?;
        let text = |key| layers.get(key).map(|(value, _)| value.to_owned());
        let secret = |key| text(key).map(SecretString::from);
        let path = |key| text(key).map(PathBuf::from);
        let switch = |key| Ok::<_, CallError>(value(&layers, key, values::boolean)?.unwrap_or(false));
        let format = value(&layers, Key::Output, |text| match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err("write text or json".to_owned()),
        })?;
        let settings = Settings {
            agent_card: text(Key::AgentCard),
            format: format.unwrap_or_default(),
            stream,
            wait: waits(&layers, stream)?,
            poll_interval: value(&layers, Key::PollInterval, values::duration)?.unwrap_or(POLL_INTERVAL),
            timeout: value(&layers, Key::Timeout, values::duration)?,
            context_id: text(Key::ContextId),
            task_id: text(Key::TaskId),
            transports: items(&layers, Key::Transport, |text| {
                values::list(text).map(values::binding).collect::<Result<Vec<_>, _>>()
            })?
            .concat(),
            grpc_plaintext: switch(Key::GrpcPlaintext)?,
            version: text(Key::A2aVersion),
            bearer: secret(Key::Bearer),
            api_key: secret(Key::ApiKey),
            user: value(&layers, Key::User, values::user)?,
            service_parameters: items(&layers, Key::SvcParam, values::service_parameter)?
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
            metadata: value(&layers, Key::Metadata, values::object)?,
            insecure: switch(Key::Insecure)?,
            ca: path(Key::Ca),
            client_cert: path(Key::ClientCert),
            client_key: path(Key::ClientKey),
            trusted_origins: items(&layers, Key::TrustOrigin, values::origin)?,
            verbose: switch(Key::Verbose)?,
            debug: switch(Key::Debug)?,
            warnings: Vec::new(),
            own_folder: around.own_folder(),
            layers,
        };
        if settings.poll_interval.is_zero() {
            return Err(CallError::usage("--poll-interval must be longer than 0"));
        }
        if settings.client_cert.is_some() != settings.client_key.is_some() {
            return Err(CallError::usage("--client-cert and --client-key belong together"));
        }
        Ok(Settings { warnings: warnings(&settings), ..settings })
    }

    /// For `send`, which waits unless it is told not to.
    pub(crate) fn delivery(&self) -> Delivery {
        match (self.stream, self.wait) {
            (true, _) => Delivery::Stream,
            (false, Some(false)) => Delivery::Return,
            (false, _) => Delivery::Wait,
        }
    }

    /// Whether a credential of any kind was given, so that none of an earlier login is looked for.
    pub(crate) fn has_credentials(&self) -> bool {
        self.bearer.is_some()
            || self.api_key.is_some()
            || self.user.is_some()
            || self.client_cert.is_some()
            || self.service_parameters.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }

    /// Whether calls would carry anything private: a credential, or any header, which may be one by another name.
    pub(crate) fn sends_private(&self) -> bool {
        self.has_credentials() || !self.service_parameters.is_empty()
    }

    /// What to say about `--insecure` once it is known whether anything private is sent.
    pub(crate) fn insecure_warning(&self, sends_private: bool) -> Option<&'static str> {
        self.insecure.then_some(match sends_private {
            true => INSECURE_CREDENTIALS,
            false => "--insecure: the agent's certificate is not checked",
        })
    }

    /// A setting and its source as `config show` prints them; `None` if nothing sets it and it has no default.
    pub(crate) fn shown(&self, key: Key) -> Option<(String, Source)> {
        let Some((value, source)) = self.layers.list(key).filter(|(values, _)| !values.is_empty()) else {
            return key.default().map(|default| (default.to_owned(), Source::BuiltIn));
        };
        let value = match key {
            Key::SvcParam => {
                let name = |text: &&str| format!("{}:{REDACTED}", text.split(':').next().unwrap_or_default());
                value.iter().map(name).collect::<Vec<_>>().join(",")
            }
            key if key.is_secret() => REDACTED.to_owned(),
            Key::AgentCard => without_password(self.agent_card.as_deref().unwrap_or_default()),
            Key::Transport => value.join(","),
            Key::TrustOrigin => {
                let origins: Vec<String> = self.trusted_origins.iter().map(Origin::to_string).collect();
                origins.join(",")
            }
            key => self.layers.get(key).map(|(value, _)| value.to_owned())?,
        };
        Some((value, source))
    }
}

/// The address without a password that may stand in it.
pub(crate) fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{REDACTED}{}", &rest[at..]),
        None => address.to_owned(),
    }
}

fn value<T>(
    layers: &Layers,
    key: Key,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, CallError> {
    let Some((text, source)) = layers.get(key) else { return Ok(None) };
    read(text).map(Some).map_err(|why| wrong(key, &source, &why))
}

fn items<T>(
    layers: &Layers,
    key: Key,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, CallError> {
    let Some((values, source)) = layers.list(key) else { return Ok(Vec::new()) };
    values.into_iter().map(read).collect::<Result<_, _>>().map_err(|why| wrong(key, &source, &why))
}

fn wrong(key: Key, source: &Source, why: &str) -> CallError {
    let place = match source {
        Source::Environment(name) => name.clone(),
        Source::GlobalFile(path) | Source::LocalFile { path, .. } => {
            format!("{} in {}", key.variable(), path.display())
        }
        Source::Flag | Source::BuiltIn => format!("--{}", key.flag()),
    };
    CallError::usage(format!("{place}: {why}"))
}

/// `--wait` and `--async` are one setting with two names: the stronger source wins.
fn waits(layers: &Layers, stream: bool) -> Result<Option<bool>, CallError> {
    let wait = value(layers, Key::Wait, values::boolean)?;
    let apart = value(layers, Key::Async, values::boolean)?;
    let rank = |key| layers.get(key).map_or(0, |(_, source)| source.rank());
    let (of_wait, of_async) = (rank(Key::Wait), rank(Key::Async));
    if stream && apart == Some(true) && of_async == Source::Flag.rank() {
        return Err(CallError::usage("--stream and --async exclude each other"));
    }
    Ok(match (wait, apart) {
        (Some(wait), Some(apart)) if of_wait == of_async && wait == apart => {
            return Err(CallError::usage(match of_wait == Source::Flag.rank() {
                true => "--wait and --async exclude each other",
                false => "A2ACLI_WAIT and A2ACLI_ASYNC contradict each other",
            }));
        }
        (Some(wait), Some(_)) if of_wait >= of_async => Some(wait),
        (_, Some(apart)) => Some(!apart),
        (wait, None) => wait,
    })
}

/// What the user may not know, and could regret.
fn warnings(settings: &Settings) -> Vec<String> {
    let layers = &settings.layers;
    let mut warnings = layers.unread().to_vec();
    // A folder of somebody else could send the user's credentials to another agent, or have another one be trusted.
    let decisive = [
        Key::AgentCard,
        Key::Insecure,
        Key::GrpcPlaintext,
        Key::Transport,
        Key::Ca,
        Key::ClientCert,
        Key::ClientKey,
        Key::TrustOrigin,
    ];
    for key in decisive {
        if let Some((_, Source::LocalFile { path, found: true })) = layers.get(key)
            && (key != Key::Insecure || settings.insecure)
            && (key != Key::GrpcPlaintext || settings.grpc_plaintext)
        {
            warnings.push(format!("{} comes from {}", key.flag(), path.display()));
        }
    }
    for path in layers.readable_by_others() {
        warnings
            .push(format!("{} holds a credential and other users can read it: chmod 600", path.display()));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(Key, &str)], stream: bool, variables: &[(&str, &str)]) -> Result<Settings, CallError> {
        let flags = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        // A folder that does not exist has no `.env`; neither has its parent, the root.
        let around = Surroundings { variables: variables.collect(), folder: "/nowhere".into(), home: None };
        Settings::read(flags, stream, &around)
    }

    #[test]
    fn cli_default_001_the_six_defaults_and_their_flags() {
        let settings = read(&[], false, &[]).unwrap();
        assert_eq!(settings.delivery(), Delivery::Wait);
        assert_eq!((settings.format, settings.verbose, settings.insecure), (Format::Text, false, false));
        assert_eq!((settings.transports.len(), settings.version), (0, None));
        let other = [
            (Key::Transport, "rest"),
            (Key::Async, "true"),
            (Key::Output, "json"),
            (Key::Verbose, "true"),
            (Key::A2aVersion, "0.3"),
            (Key::Insecure, "true"),
        ];
        let settings = read(&other, false, &[]).unwrap();
        assert_eq!(settings.delivery(), Delivery::Return);
        assert_eq!((settings.format, settings.verbose, settings.insecure), (Format::Json, true, true));
        assert_eq!((settings.transports, settings.version.as_deref()), (vec!["HTTP+JSON"], Some("0.3")));
    }

    #[test]
    fn cli_send_002_a_flag_beats_what_is_configured() {
        let (wait, apart) = ((Key::Wait, "true"), (Key::Async, "true"));
        for (flags, stream, variables, expected) in [
            (&[][..], false, &[("A2ACLI_ASYNC", "1")][..], Some(Delivery::Return)),
            (&[wait], false, &[("A2ACLI_ASYNC", "1")], Some(Delivery::Wait)),
            (&[apart], false, &[("A2ACLI_WAIT", "1")], Some(Delivery::Return)),
            (&[], true, &[("A2ACLI_ASYNC", "1")], Some(Delivery::Stream)),
            (&[], false, &[("A2ACLI_WAIT", "no")], Some(Delivery::Return)),
            (&[], false, &[("A2ACLI_STREAM", "1")], Some(Delivery::Wait)),
            (&[wait, apart], false, &[], None),
            (&[apart], true, &[], None),
            (&[], false, &[("A2ACLI_WAIT", "1"), ("A2ACLI_ASYNC", "1")], None),
        ] {
            let delivery = read(flags, stream, variables).ok().map(|settings| settings.delivery());
            assert_eq!(delivery, expected, "{flags:?} {stream} {variables:?}");
        }
    }

    #[test]
    fn cli_auth_004_secrets_are_not_shown() {
        let flags = [
            (Key::Bearer, "s3cret"),
            (Key::User, "ann:s3cret"),
            (Key::SvcParam, "X-One:s3cret"),
            (Key::SvcParam, "X-Two:a,s3cret"),
            (Key::AgentCard, "https://user:s3cret@host.example/a@b"),
        ];
        let settings = read(&flags, false, &[("A2ACLI_API_KEY", "s3cret")]).unwrap();
        let shown = |key| settings.shown(key).unwrap().0;
        assert_eq!(shown(Key::Bearer), REDACTED);
        assert_eq!(shown(Key::ApiKey), REDACTED);
        assert_eq!(shown(Key::User), REDACTED);
        assert_eq!(shown(Key::SvcParam), "X-One:[redacted],X-Two:[redacted]");
        assert_eq!(shown(Key::AgentCard), "https://[redacted]@host.example/a@b");
        assert!(!format!("{settings:?}").replace("user:s3cret", "").contains("s3cret"));
        assert_eq!(settings.service_parameters.len(), 2);
    }

    #[test]
    fn cli_auth_003_a_credential_without_certificate_checks_is_warned_about() {
        let insecure = [(Key::Insecure, "true")];
        for (variables, given, private) in [
            (&[("A2ACLI_BEARER", "x")][..], true, true),
            (&[("A2ACLI_SVC_PARAM", "authorization: x")], true, true),
            (&[("A2ACLI_SVC_PARAM", "X-Api-Key: x")], false, true),
            (&[], false, false),
        ] {
            let settings = read(&insecure, false, variables).unwrap();
            assert_eq!((settings.has_credentials(), settings.sends_private()), (given, private));
        }
        let settings = read(&insecure, false, &[]).unwrap();
        assert!(settings.insecure_warning(true).unwrap().contains("CREDENTIALS ARE SENT"));
        assert!(!settings.insecure_warning(false).unwrap().contains("CREDENTIALS"));
        assert_eq!(read(&[], false, &[]).unwrap().insecure_warning(true), None);
    }

    #[test]
    fn wrong_values_are_usage_errors_that_name_their_source() {
        for (flags, variables, words) in [
            (&[(Key::Output, "xml")][..], &[][..], "--output: "),
            (&[], &[("A2ACLI_OUTPUT", "xml")], "A2ACLI_OUTPUT: "),
            (&[], &[("A2ACLI_DEBUG", "maybe")], "A2ACLI_DEBUG: "),
            (&[(Key::PollInterval, "0")], &[], "longer than 0"),
            (&[(Key::Metadata, "[]")], &[], "JSON object"),
            (&[(Key::ClientCert, "x")], &[], "belong together"),
        ] {
            let error = read(flags, false, variables).unwrap_err();
            assert!(error.message.contains(words), "{}", error.message);
            assert_eq!(error.code.exit_status(), 2);
        }
    }
}
