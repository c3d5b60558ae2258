//! What the process says about itself: its log, on stderr, and its traces.
//!
//! | file | holds |
//! |---|---|
//! | `text` | lines for people, with nothing in them that could move a cursor |
//! | `limit` | how much one cause may write |
//! | `panics` | what is told of a thread that panicked |
//! | `traces` | spans by OTLP, with the feature `otel` |

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

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{Config, Log, LogFormat};
use crate::exit::Failure;

/// Spans on their way out, until the process ends.
static SENDING: Mutex<Option<traces::Traces>> = Mutex::new(None);

/// Installs log and traces for the whole process. `service` is what it is called in traces.
pub(crate) fn install(config: &Config, service: &str) -> Result<(), Failure> {
    let Log { filter, format, .. } = &config.log;
    let filter = EnvFilter::try_new(directives(filter.as_str()))
        .map_err(|error| Failure::usage(format!("log.filter {}: {error}", filter.as_str())))?;
    let detailed = filter.max_level_hint().is_none_or(|level| level >= tracing::Level::DEBUG);
    let (traces, spans) = traces::open(&config.traces, service, detailed)?;
    tracing_subscriber::registry()
        .with(spans)
        .with(limit::Limited(lines(**format)).with_filter(filter))
        .init();
    panics::tell();
    traces.announce();
    *SENDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(traces);
    Ok(())
}

/// A filter as `EnvFilter` reads it. A level without a name is the level of our own crates: what others have to say below
/// `error` is their own concern, and a client may provoke it at will. They are heard where the filter names them.
fn directives(filter: &str) -> String {
    let each = filter.split(',').map(|directive| match directive.trim().parse::<LevelFilter>() {
        Ok(level) => {
            let others = level.min(LevelFilter::ERROR);
            format!("{others},baton={level},exec={level}")
        }
        Err(_) => directive.to_owned(),
    });
    each.collect::<Vec<_>>().join(",")
}

/// The last words; blocks for a few seconds at most.
pub(crate) fn close() {
    limit::close();
    let traces = SENDING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(traces) = traces {
        traces.close();
    }
}

type Below = tracing_subscriber::layer::Layered<Option<traces::Spans>, Registry>;

fn lines(format: LogFormat) -> Box<dyn Layer<Below> + Send + Sync> {
    // Trouble with stderr would be told on stderr, of all places: with the terminal gone that would be a panic.
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).fmt_fields(text::Fields).boxed(),
        // All spans, outermost first: a store's span lies in a turn's or a request's, whose id is wanted.
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_that_of_our_own_crates() {
        for (filter, expected) in [
            ("info", "error,baton=info,exec=info"),
            ("WARN", "error,baton=warn,exec=warn"),
            ("off", "off,baton=off,exec=off"),
            (
                "info,baton_server::engine=debug,h2=trace",
                "error,baton=info,exec=info,baton_server::engine=debug,h2=trace",
            ),
            ("hyper=debug", "hyper=debug"),
        ] {
            assert_eq!(directives(filter), expected);
            EnvFilter::try_new(directives(filter)).unwrap();
        }
    }
}
