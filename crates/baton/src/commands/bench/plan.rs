//! What a run will do, within its bounds: made from the flags, and told before it begins.

use std::time::Duration;

use super::Bench;
use super::schedule::Arrivals;
use super::workload::{Mix, Operation};
use crate::client::Call;
use crate::client::error::CallError;

/// More requests than this must be asked for: each message makes an agent work, which somebody pays for.
const MOST_UNASKED: u64 = 10_000;
const RATE: f64 = 10.0;
const TIMEOUT: Duration = Duration::from_secs(60);

/// `--rate`: a number, or as fast as answers come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    PerSecond(f64),
    Max,
}

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Rate::Max);
        }
        let rate = text.parse().ok().filter(|rate: &f64| (1e-6..=1e6).contains(rate));
        rate.map(Rate::PerSecond)
            .ok_or_else(|| "write requests per second, such as 10 or 0.5, or max".to_owned())
    }
}

/// What a run will do.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Requests one after the other.
    pub(super) load: Option<Load>,
    /// Streams that stay open.
    pub(super) streams: Option<Streams>,
    pub(super) duration: Duration,
    pub(super) concurrency: usize,
    pub(super) warm_up: u64,
    pub(super) timeout: Duration,
    pub(super) seed: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) mix: Mix,
    pub(super) pace: Pace,
    /// Requests at most.
    pub(super) most: u64,
    pub(super) duration: Duration,
}

/// When the next request is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pace {
    /// When it is due, whatever became of those before.
    Open { per_second: f64, arrivals: Arrivals },
    /// When one before is answered.
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streams {
    pub(super) count: usize,
    /// How many of them are cut at once.
    pub(super) storm: usize,
    /// Tasks are not canceled at the end.
    pub(super) keep_tasks: bool,
}

impl Plan {
    pub(super) fn new(call: &Call, args: &Bench) -> Result<Self, CallError> {
        let storm = args.storm.unwrap_or_default();
        let count = args.streams.unwrap_or(storm);
        if storm > count {
            return Err(CallError::usage(format!(
                "--storm {storm} cannot cut more streams than --streams {count} opens"
            )));
        }
        let streams = (count > 0).then_some(Streams { count, storm, keep_tasks: args.keep_tasks });
        // Streams alone are a test of their own; a rate adds requests to it.
        let load = match (args.rate, streams) {
            (None, Some(_)) => None,
            (rate, _) => Some(load(args, rate.unwrap_or(Rate::PerSecond(RATE)))?),
        };
        Ok(Plan {
            load,
            streams,
            duration: args.duration,
            concurrency: args.concurrency,
            warm_up: args.warm_up,
            timeout: call.settings.timeout.unwrap_or(TIMEOUT),
            seed: args.seed.unwrap_or_else(crate::commands::any_seed),
        })
    }

    /// The operations that are used.
    pub(super) fn uses(&self, operation: Operation) -> bool {
        let streams = self.streams.is_some() && operation == Operation::Stream;
        streams || self.load.as_ref().is_some_and(|load| load.mix.has(operation))
    }

    /// How much will be sent at most, and how; for stderr.
    pub(super) fn announcement(&self, sends_one_first: bool) -> (String, String) {
        let mut steps = Vec::new();
        let (mut messages, mut reads) = (0, 0);
        if sends_one_first {
            messages += 1;
            steps.push("1 for a task to read".to_owned());
        }
        if let Some(load) = &self.load {
            let count = load.most + self.warm_up;
            match load.mix.operations().any(Operation::is_message) {
                true => messages += count,
                false => reads += count,
            }
            if self.warm_up > 0 {
                steps.push(format!("{} to warm up", self.warm_up));
            }
            steps.push(load.words());
        }
        if let Some(streams) = &self.streams {
            messages += streams.count as u64;
            let storm = match streams.storm {
                0 => String::new(),
                count => format!(", {count} of them cut at once"),
            };
            steps.push(format!("{} streams held open for {}{storm}", streams.count, seconds(self.duration)));
        }
        let what = match (messages, reads) {
            (0, reads) => format!("{reads} requests that only read"),
            (messages, 0) => format!("{messages} messages"),
            (messages, reads) => format!("{messages} messages, and {reads} requests that only read"),
        };
        (what, steps.join(", then "))
    }
}

impl Load {
    /// Whether the requests run out before the time does.
    fn is_cut_short(&self) -> bool {
        match self.pace {
            Pace::Max => false,
            Pace::Open { per_second, .. } => {
                (self.most as f64) < (per_second * self.duration.as_secs_f64()).floor()
            }
        }
    }

    /// Rate and length: `10 per second for 10 s`.
    pub(super) fn words(&self) -> String {
        let rate = match self.pace {
            Pace::Max => "as fast as answers come".to_owned(),
            Pace::Open { per_second, arrivals: Arrivals::Fixed } => format!("{per_second} per second"),
            Pace::Open { per_second, arrivals: Arrivals::Poisson } => {
                format!("{per_second} per second at random times")
            }
        };
        match (self.pace, self.is_cut_short()) {
            (Pace::Max, _) => format!("{rate} for {}, {} at most", seconds(self.duration), self.most),
            (_, true) => format!("{rate}, {} in all", self.most),
            (_, false) => format!("{rate} for {}", seconds(self.duration)),
        }
    }

    /// The time that the schedule covers: the rate that was reached is measured over it.
    pub(super) fn scheduled(&self) -> Duration {
        match self.pace {
            Pace::Max => Duration::ZERO,
            Pace::Open { per_second, .. } => self
                .duration
                .min(Duration::try_from_secs_f64(self.most as f64 / per_second).unwrap_or_default()),
        }
    }
}

fn load(args: &Bench, rate: Rate) -> Result<Load, CallError> {
    let (pace, planned) = match rate {
        Rate::Max => (Pace::Max, args.requests.unwrap_or(MOST_UNASKED)),
        Rate::PerSecond(per_second) => {
            let pace = Pace::Open { per_second, arrivals: args.arrivals };
            (pace, (per_second * args.duration.as_secs_f64()).ceil() as u64)
        }
    };
    if args.requests.is_none() && planned > MOST_UNASKED {
        let error = CallError::usage(format!(
            "this would send {planned} requests; more than {MOST_UNASKED} must be asked for, since each may cost the agent's owner money"
        ));
        return Err(error.with_hint(format!("add --requests {planned}, or lower --rate or --duration")));
    }
    let most = args.requests.unwrap_or(planned).min(planned);
    Ok(Load { mix: args.operation.clone(), pace, most, duration: args.duration })
}

/// `10 s`, `1.5 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
