//! The log, on stderr, and traces.
//!
//! | file | holds |
//! |---|---|
//! | `text` | log lines as text, with control characters escaped |
//! | `audit` | security events in a file of their own |
//! | `limit` | limits how many lines one log statement may write |
//! | `panics` | logs panics |
//! | `traces` | sends spans by OTLP, with the feature `otel` |

mod audit;
mod limit;
mod panics;
mod text;
#[cfg(feature = "otel")]
mod traces;
#[cfg(not(feature = "otel"))]
#[path = "log/no_traces.rs"]
mod traces;

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};

use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use self::audit::AuditFile;
use crate::config::{Config, Log, LogFormat};
use crate::exit::Failure;

/// The file of the audit log, if it has one.
static AUDIT: Mutex<Option<AuditFile>> = Mutex::new(None);

/// The trace exporter, until the process ends.
static SENDING: Mutex<Option<traces::Traces>> = Mutex::new(None);

/// Installs log and traces for the whole process. `service` is the service name in traces.
pub(crate) fn install(config: &Config, service: &str) -> Result<(), Failure> {
    let Log { filter, format, .. } = &config.log;
    let filter = EnvFilter::try_new(directives(filter.as_str()))
        .map_err(|error| Failure::usage(format!("log.filter {}: {error}", filter.as_str())))?;
    let detailed = filter.max_level_hint().is_none_or(|level| level >= Level::DEBUG);
    let (traces, spans) = traces::open(&config.traces, service, detailed)?;
    let audit = audit_file(config)?;
    layers(filter, **format, spans, audit.clone()).init();
    *AUDIT.lock().unwrap_or_else(PoisonError::into_inner) = audit;
    panics::install();
    traces.announce();
    *SENDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(traces);
    Ok(())
}

/// Two things keep a span or an event that no log shows as cheap as if it were not there. Every filter names its highest
/// level: without that, all levels are asked for. And the filtered log is the outermost layer: below one without a filter,
/// and a missing one is one, every span is made.
fn layers(
    filter: EnvFilter,
    format: LogFormat,
    spans: Option<traces::Spans>,
    audit: Option<AuditFile>,
) -> impl Subscriber + Send + Sync {
    let apart = audit.is_some();
    // Security events are in one of the two logs.
    let not_apart = filter_fn(move |event| !(apart && event.target() == audit::TARGET));
    let filter = filter.and(not_apart.with_max_level_hint(LevelFilter::TRACE));
    tracing_subscriber::registry()
        .with(spans)
        .with(audit.map(audit_lines))
        .with(limit::Limited(lines(format)).with_filter(filter))
}

/// A filter for `EnvFilter`. A level without a target applies to our own crates only. Other crates log `error` only,
/// unless the filter names them: clients could provoke their other messages in any number. Security events are logged at
/// every level but `off`, unless the filter names them: a quiet log must not be one that does not tell of an attack.
fn directives(filter: &str) -> String {
    let each = filter.split(',').map(|directive| match directive.trim().parse::<LevelFilter>() {
        Ok(level) => {
            let others = level.min(LevelFilter::ERROR);
            let audit = if level == LevelFilter::OFF { level } else { level.max(LevelFilter::INFO) };
            format!("{others},baton={level},exec={level},audit={audit}")
        }
        Err(_) => directive.to_owned(),
    });
    let mut all = each.collect::<Vec<_>>().join(",");
    if !all.contains("audit") {
        all += ",audit=info";
    }
    all
}

fn audit_file(config: &Config) -> Result<Option<AuditFile>, Failure> {
    let Some(path) = config.log.audit.as_ref() else { return Ok(None) };
    let opened = AuditFile::open(path.clone());
    opened.map(Some).map_err(|error| Failure::failed(format!("log.audit: {}: {error}", path.display())))
}

/// Opens the audit log's file again: the old one may have been moved away.
pub(crate) fn reopen() {
    let audit = AUDIT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(audit) = audit
        && let Err(error) = audit.reopen()
    {
        tracing::error!(path = %audit.path().display(), %error, "the audit log is still written to the old file");
    }
}

/// Writes what is left; blocks for a few seconds at most.
pub(crate) fn close() {
    limit::close();
    let traces = SENDING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(traces) = traces {
        traces.close();
    }
}

fn lines<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    // Errors of writing to stderr would be reported on stderr, which panics if the terminal is gone.
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).fmt_fields(text::Fields).boxed(),
        // All spans, outermost first: a store's span is inside a turn's or a request's span, whose id is needed.
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    }
}

fn audit_lines<S>(file: AuditFile) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(file).log_internal_errors(false);
    let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
    let security = filter_fn(|event| event.target() == audit::TARGET && *event.level() <= Level::INFO);
    limit::Limited(lines).with_filter(security.with_max_level_hint(LevelFilter::INFO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::exec::flags::ExecFlags;
    use crate::config::Inputs;

    #[test]
    fn a_span_that_no_log_shows_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        for (level, audit) in [("info", false), ("info", true), ("debug", false), ("debug", true)] {
            let audit = audit.then(|| AuditFile::open(folder.path().join("audit")).unwrap());
            let (filter, has_audit) = (EnvFilter::try_new(directives(level)).unwrap(), audit.is_some());
            let layers = layers(filter, LogFormat::Text, None, audit);
            assert_eq!(layers.max_level_hint(), level.parse().ok(), "{level} {has_audit}");
            let is_made = tracing::subscriber::with_default(layers, || {
                !tracing::debug_span!(target: "baton_server::request", "request").is_disabled()
            });
            assert_eq!(is_made, level == "debug", "{level} {has_audit}");
        }
    }

    #[tokio::test]
    async fn a_configuration_that_is_loaded_later_does_not_ask_for_more() {
        let filter = EnvFilter::try_new(directives("info")).unwrap();
        layers(filter, LogFormat::Text, None, None).init();
        let inputs = Inputs::of_process(None, Vec::new(), None, ExecFlags::default());
        assert!(inputs.load().await.is_ok());
        assert_eq!(LevelFilter::current(), LevelFilter::INFO);
    }

    #[test]
    fn a_level_is_that_of_our_own_crates() {
        for (filter, expected) in [
            ("info", "error,baton=info,exec=info,audit=info"),
            ("WARN", "error,baton=warn,exec=warn,audit=info"),
            ("error", "error,baton=error,exec=error,audit=info"),
            ("debug", "error,baton=debug,exec=debug,audit=debug"),
            ("warn,audit=off", "error,baton=warn,exec=warn,audit=info,audit=off"),
            ("off", "off,baton=off,exec=off,audit=off"),
            (
                "info,baton_server::engine=debug,h2=trace",
                "error,baton=info,exec=info,audit=info,baton_server::engine=debug,h2=trace",
            ),
            ("hyper=debug", "hyper=debug,audit=info"),
        ] {
            assert_eq!(directives(filter), expected);
            EnvFilter::try_new(directives(filter)).unwrap();
        }
    }
}
