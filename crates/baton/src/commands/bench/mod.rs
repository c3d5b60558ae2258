//! `baton bench`: puts an agent under load, and reports how it bore that: the times of its answers, its errors, and whether
//! its streams were whole.
//!
//! | file | holds |
//! |---|---|
//! | `plan` | what a run will do, and its bounds |
//! | `target` | the agent's one interface, and whether it may be put under load |
//! | `schedule` `load` | when requests are due; sending them then, whatever the agent does |
//! | `workload` `watched` | one request; one stream, event by event |
//! | `held` `storm` | streams that stay open; all of them cut at once |
//! | `check` | what streams said, compared with what the agent says at the end |
//! | `tally` `histogram` `trouble` | counts, times, errors |
//! | `report` `text` `json` | the result |

mod check;
mod held;
mod histogram;
mod json;
mod load;
mod plan;
mod report;
mod schedule;
mod storm;
mod tally;
mod target;
mod text;
mod trouble;
mod watched;
mod workload;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_protocol::domain::Task;
use baton_protocol::operation::{Call as Operated, CancelTask, Reply, SendMessage};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::check::check;
use self::held::Held;
use self::load::Shared;
use self::plan::{Plan, Rate};
use self::report::{LoadReport, Report};
use self::schedule::Arrivals;
use self::tally::Tally;
use self::workload::{Mix, Operation, Workload};
use super::send::{Parts, message};
use crate::client::agent::refusal;
use crate::client::error::{CallError, Code, PROGRAM};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::duration;
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output::progress::ProgressLine;
use crate::{files, output};

const EXAMPLES: &str = "\
Examples:
  baton bench http://127.0.0.1:3000                                     100 messages in 10 s
  baton bench URL --rate 200 --duration 30s --operation stream          streams, from the first event to the last
  baton bench URL --rate 500 --operation send=1,get=9                   mostly reads
  baton bench URL \"wait until I cancel\" --streams 1000 --duration 1m    hold streams open
  baton bench URL \"take your time\" --storm 500                          cut 500 streams at once, and watch them come back
  baton bench URL --rate max --concurrency 8 -o json                    as fast as 8 callers can
";

const LOAD: &str = "Load";
const STREAMS: &str = "Streams";
/// What is sent if nothing is said.
const TEXT: &str = "hello";
/// Files that the process has open anyway.
const SPARE_FILES: u64 = 32;
/// How often the progress line is renewed.
const PROGRESS: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n{SETTINGS_HELP}"))]
pub(crate) struct Bench {
    /// Requests per second; `max` sends the next as soon as one is answered [default: 10; with --streams or --storm: none].
    #[arg(long, value_name = "N", help_heading = LOAD)]
    rate: Option<Rate>,

    /// How long requests are sent and streams are held.
    #[arg(long, visible_alias = "hold", value_name = "TIME", default_value = "10s", value_parser = duration,
          help_heading = LOAD)]
    duration: Duration,

    /// Requests at most. More than 10000 are sent only if this says so.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = LOAD)]
    requests: Option<u64>,

    /// Requests under way at once, at most; one that is due meanwhile waits.
    #[arg(long, visible_alias = "connections", value_name = "N", default_value_t = 64, value_parser = at_least_one,
          help_heading = LOAD)]
    concurrency: usize,

    /// What is sent: `send`, `stream`, `get`, `list`, or several with weights: `send=8,get=2`.
    #[arg(long, value_name = "NAME", default_value = "send", help_heading = LOAD)]
    operation: Mix,

    /// When requests are due: `fixed` at equal distances, `poisson` at random, as from many users.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Arrivals::Fixed, hide_possible_values = true,
          help_heading = LOAD)]
    arrivals: Arrivals,

    /// Requests to send one after the other before the load, which are not measured. If one fails, the load is not begun.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = LOAD)]
    warm_up: u64,

    /// Streams to open and to hold open, each for a message of its own. Their tasks are canceled at the end.
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = STREAMS)]
    streams: Option<usize>,

    /// Streams that lose their connection, all at once, and come back with Last-Event-ID.
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = STREAMS)]
    storm: Option<usize>,

    /// Do not cancel tasks at the end that are still at work.
    #[arg(long, help_heading = STREAMS)]
    keep_tasks: bool,

    /// How many streams of the load are compared with GetTask and a replay of their events at the end. Held streams all are.
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = STREAMS)]
    check: usize,

    /// Repeat the random choices of an earlier run: arrival times, and which operation comes next.
    #[arg(long, value_name = "NUMBER", help_heading = LOAD)]
    seed: Option<u64>,

    /// Say that you may put load on an agent that is not on this machine.
    #[arg(long = target::PERMISSION, help_heading = LOAD)]
    permitted: bool,

    #[command(flatten)]
    parts: Parts,

    #[command(flatten)]
    options: Options,
}

/// The options of the other client commands that have another meaning here, or none.
pub(crate) fn adapted(command: clap::Command) -> clap::Command {
    let mut command = command
        .mut_arg("timeout", |arg| arg.help("How long an answer, or a whole stream, may take [default: 60s]"));
    command = command.mut_arg("apart", |arg| {
        arg.help("`send` is answered as soon as the agent has taken the message, not when its task has ended")
    });
    command = command.mut_arg("task_id", |arg| {
        arg.help("The task that `get` reads [default: that of a message sent first]")
    });
    for unused in ["stream", "wait", "poll_interval", "verbose"] {
        command = command.mut_arg(unused, |arg| arg.hide(true));
    }
    command
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1_000_000) => Ok(count),
        _ => Err("write a number from 1 to 1000000".to_owned()),
    }
}

pub(crate) async fn run(args: Bench) -> Result<(), Failure> {
    let mut ended = Ended::Measured;
    client::run_without_limit(&args.options, async |call| {
        ended = bench(call, &args).await?;
        Ok(())
    })
    .await?;
    match ended {
        Ended::Measured => Ok(()),
        // The report is on stdout, so that nothing else is said.
        Ended::NothingWorked => Err(Failure::reported(1)),
        Ended::Stopped => Err(Failure::stopped()),
    }
}

/// How a run ended, if it could begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Measured,
    /// Every request failed.
    NothingWorked,
    Stopped,
}

async fn bench(call: &Call, args: &Bench) -> Result<Ended, CallError> {
    let plan = Plan::new(call, args)?;
    enough_files(&plan)?;
    let parts = if args.parts.is_empty() { Parts::of_text(TEXT) } else { args.parts.clone() };
    let message =
        SendMessage { return_immediately: call.settings.wait == Some(false), ..message(call, parts)? };
    let client = target::connect(call, &plan, args.permitted).await?;
    if plan.uses(Operation::Stream) && client.card().capabilities.streaming != Some(true) {
        let name = Code::Protocol("UnsupportedOperationError".to_owned());
        let error = CallError::new(name, "the agent's card does not offer streaming");
        return Err(error.with_hint(format!("{PROGRAM} card get")));
    }
    let task = call.settings.task_id.as_deref().map(client::wait::task_id).transpose()?;
    let needs_task = plan.uses(Operation::Get) && task.is_none();
    let interface = client.interface();
    let (most, steps) = plan.announcement(needs_task);
    output::note(&format!(
        "Sending at most {most} to {} ({}): {steps}. Ctrl-C stops it.",
        client.card().name,
        interface.url()
    ));
    let mut workload = Workload { client, message, task, timeout: plan.timeout };
    let first = if needs_task { Some(first_task(&workload).await?) } else { None };
    workload.task = workload.task.or_else(|| first.as_ref().map(|task| task.id.clone()));
    if let Some(load) = &plan.load {
        warm_up(&workload, &load.mix, plan.warm_up).await?;
    }
    let shared = Arc::new(Shared {
        workload,
        concurrency: plan.concurrency,
        places: Arc::new(Semaphore::new(plan.concurrency)),
        tally: Mutex::new(Tally { most_samples: args.check, ..Tally::default() }),
        stop: CancellationToken::new(),
    });
    call.owns_interrupts.set(true);
    let line = ProgressLine::new(call.output.is_text());
    let report = tokio::select! {
        report = Box::pin(measure(&shared, plan)) => report,
        () = interrupts(&shared.stop, &line) => return Ok(Ended::Stopped),
        () = progress(&shared, &line) => return Ok(Ended::Stopped),
    };
    line.clear();
    let report = report?;
    if let Some(task) = first.filter(|task| !task.status.state.is_terminal() && !args.keep_tasks) {
        // If it cannot be canceled, it has ended by itself.
        let cancel = CancelTask { id: task.id, metadata: None };
        let _ = shared.workload.client.call(Operated::CancelTask(cancel)).await;
    }
    call.output.result(&json::json(&report).to_string(), || Ok(text::text(&report)))?;
    Ok(match report {
        Report { stopped_after: Some(_), .. } => Ended::Stopped,
        report if report.is_total_failure() => Ended::NothingWorked,
        _ => Ended::Measured,
    })
}

/// The first Ctrl-C ends the run early, and what was measured is reported; returns after the second.
async fn interrupts(stop: &CancellationToken, line: &ProgressLine) {
    let interrupt = async || match tokio::signal::ctrl_c().await {
        Ok(()) => {}
        // Without a handler the system's own ends the process.
        Err(_) => std::future::pending().await,
    };
    interrupt().await;
    stop.cancel();
    line.clear();
    output::note("Stopping; Ctrl-C again quits without a report");
    interrupt().await;
    line.clear();
}

/// Renews the progress line for ever.
async fn progress(shared: &Shared, line: &ProgressLine) {
    if !line.is_shown() {
        return std::future::pending().await;
    }
    let start = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS).await;
        let Tally { sent, answered, failed, .. } = *shared.tally();
        let under_way = shared.concurrency.saturating_sub(shared.places.available_permits());
        line.show(&format!(
            "{:>4} s  {sent} sent  {answered} answered  {failed} failed  {under_way} under way",
            start.elapsed().as_secs()
        ));
    }
}

/// Does what the plan says, one thing after the other.
async fn measure(shared: &Arc<Shared>, plan: Plan) -> Result<Report, CallError> {
    let begun = Instant::now();
    let mut held = match plan.streams {
        Some(streams) => Some(Held::open(shared, streams).await?),
        None => None,
    };
    let until = Instant::now() + plan.duration;
    if let Some(held) = &held {
        held.cut();
    }
    let sending = async {
        match &plan.load {
            Some(load) if !shared.stop.is_cancelled() => load::run(shared, load, plan.seed).await.map(Some),
            _ => Ok(None),
        }
    };
    let holding = async {
        match &mut held {
            Some(held) => held.wait(shared, until).await,
            None => Vec::new(),
        }
    };
    let (sent, ended) = tokio::join!(sending, holding);
    let elapsed =
        sent.map_err(|error| CallError::internal(format!("no thread for the schedule: {error}")))?;
    let stopped_after = begun.elapsed();
    let (held, mut samples) = match held {
        Some(held) => {
            let (report, streams) = held.end(shared, ended).await;
            (Some(report), streams)
        }
        None => (None, Vec::new()),
    };
    let mut tally = std::mem::take(&mut *shared.tally());
    samples.append(&mut tally.samples);
    let checked = check(shared, &samples).await;
    // Also if the user did not want to wait for the check.
    let stopped_after = shared.stop.is_cancelled().then_some(stopped_after);
    let interface = shared.workload.client.interface();
    Ok(Report {
        agent: shared.workload.client.card().name.clone(),
        binding: interface.binding().name(),
        version: interface.version().version(),
        url: interface.url().to_owned(),
        stopped_after,
        load: elapsed.map(|elapsed| LoadReport { elapsed, tally }),
        held,
        checked,
        plan,
    })
}

/// A task that can be read; it need not have ended for that.
async fn first_task(workload: &Workload) -> Result<Task, CallError> {
    let send = SendMessage { return_immediately: true, ..workload.fresh_message() };
    let reply = workload.client.call(Operated::SendMessage(send)).await;
    match reply.map_err(|error| refusal(&workload.client.card(), &error))? {
        Reply::SentTask(task) => Ok(task),
        _ => {
            let error = CallError::usage(
                "the agent answers with messages, so that there is no task for `get` to read",
            );
            Err(error.with_hint("name a task with --task-id"))
        }
    }
}

/// Connects, and shows whether the agent answers at all.
async fn warm_up(workload: &Workload, mix: &Mix, count: u64) -> Result<(), CallError> {
    for (_, operation) in (0..count).zip(mix.operations().collect::<Vec<_>>().into_iter().cycle()) {
        let performed = workload.perform(operation, Instant::now()).await;
        performed.result.map_err(|trouble| trouble.failure(&workload.client.card()))?;
    }
    Ok(())
}

/// Every stream and every request under way needs a file.
fn enough_files(plan: &Plan) -> Result<(), CallError> {
    let streams = plan.streams.map_or(0, |streams| streams.count);
    let needed = (streams + plan.concurrency) as u64 + SPARE_FILES;
    match files::raise_limit() {
        Some(limit) if limit < needed => {
            let error = CallError::usage(format!(
                "{streams} streams and {} requests at once need {needed} open files, and this process may have {limit}",
                plan.concurrency
            ));
            Err(error.with_hint(format!("ulimit -n {needed}, or ask for fewer")))
        }
        _ => Ok(()),
    }
}
