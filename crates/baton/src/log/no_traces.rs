//! Replaces `traces` in a binary without the feature `otel`.

use tracing_subscriber::layer::Identity;

use crate::config::{self, Problem};
use crate::exit::Failure;

pub(super) type Spans = Identity;

#[derive(Debug)]
pub(super) struct Traces;

pub(super) fn open(
    config: &config::Traces,
    _service: &str,
    _detailed: bool,
) -> Result<(Traces, Option<Spans>), Failure> {
    match config.otlp.is_some() {
        true => {
            let problem = Problem::new(
                config.otlp.source().clone(),
                "traces.otlp",
                "this binary was built without traces",
            );
            Err(Failure::usage(problem.to_string()))
        }
        false => Ok((Traces, None)),
    }
}

impl Traces {
    pub(super) fn announce(&self) {}

    pub(super) fn close(self) {}
}
