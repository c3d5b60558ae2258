//! Stands in for `traces` in a binary without the feature `otel`.

use tracing_subscriber::Registry;
use tracing_subscriber::layer::Identity;

use super::Options;
use crate::exit::Failure;

pub(super) type Spans = Identity;

#[derive(Debug)]
pub(super) struct Traces;

pub(super) fn open(options: &Options, _detailed: bool) -> Result<(Traces, Option<Spans>), Failure> {
    match &options.otlp {
        Some(_) => Err(Failure::usage("--otlp: this binary was built without traces (feature `otel`)")),
        None => Ok((Traces, None)),
    }
}

impl Traces {
    pub(super) fn announce(&self) {}

    pub(super) fn close(self) {}
}
