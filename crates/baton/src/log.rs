//! What the process says about itself: its log, on stderr, and its traces.
//!
//! | file | holds |
//! |---|---|
//! | `text` | lines for people, with nothing in them that could move a cursor |
//! | `panics` | what is told of a thread that panicked |
//! | `traces` | spans by OTLP, with the feature `otel` |

mod panics;
mod text;
#[cfg(feature = "otel")]
mod traces;
#[cfg(not(feature = "otel"))]
#[path = "log/no_traces.rs"]
mod traces;

use std::io::{self, IsTerminal as _};

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::exit::Failure;

const FILTER: &str = "BATON_LOG";
const DEFAULT_FILTER: &str = "info";

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object per line, for programs.
    Json,
}

/// What to say, and where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Where spans go: the base URL of an OTLP receiver. The environment may say it, too.
    pub(crate) otlp: Option<String>,
    /// What the process is called in traces, unless `OTEL_SERVICE_NAME` says.
    pub(crate) service: String,
}

/// Held until the process ends: what has not been sent by then is sent.
#[derive(Debug)]
pub(crate) struct Log {
    traces: traces::Traces,
}

impl Log {
    /// The last words; blocks for a few seconds at most.
    pub(crate) fn close(self) {
        self.traces.close();
    }
}

/// Installs log and traces for the whole process; `BATON_LOG` says what the log holds.
pub(crate) fn install(options: &Options) -> Result<Log, Failure> {
    let filter = match std::env::var(FILTER) {
        Ok(wanted) if !wanted.trim().is_empty() => wanted,
        Ok(_) | Err(std::env::VarError::NotPresent) => DEFAULT_FILTER.to_owned(),
        Err(error) => return Err(Failure::usage(format!("{FILTER}: {error}"))),
    };
    let filter =
        EnvFilter::try_new(&filter).map_err(|error| Failure::usage(format!("{FILTER}={filter}: {error}")))?;
    let detailed = filter.max_level_hint().is_none_or(|level| level >= tracing::Level::DEBUG);
    let (traces, spans) = traces::open(options, detailed)?;
    tracing_subscriber::registry().with(spans).with(lines(options.format).with_filter(filter)).init();
    panics::tell();
    traces.announce();
    Ok(Log { traces })
}

type Below = tracing_subscriber::layer::Layered<Option<traces::Spans>, Registry>;

fn lines(format: Format) -> Box<dyn Layer<Below> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match format {
        Format::Text => lines.with_ansi(io::stderr().is_terminal()).fmt_fields(text::fields()).boxed(),
        // All spans, outermost first: a store's span lies in a turn's or a request's, whose id is wanted.
        Format::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    }
}
