//! Waiting for a task: by its events where the agent streams, otherwise by reading it again and again.

use std::time::Duration;

use baton_protocol::domain::TaskId;
use baton_protocol::operation::HistoryLength;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Call;
use super::agent::{Agent, Events, Received};
use super::error::{CallError, Code, PROGRAM};
use crate::output;
use crate::output::view::{Event, Phase, Task};

/// The task's id is said on stderr if it takes longer than this, in case the user stops waiting or is stopped.
const QUICK: Duration = Duration::from_secs(1);
/// The longest time between two looks at a task whose agent cannot be reached.
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// How many looks in a row may fail.
const MOST_FAILURES: u32 = 5;

/// Follows events until the task ends or pauses, or the agent has answered with a message. Returns the last one.
/// `is_answer`: the events begin with the task as it was before the message, still waiting for it.
pub(crate) async fn follow(
    call: &Call,
    agent: &Agent,
    mut events: Events,
    is_answer: bool,
    mut show: impl FnMut(&Received) -> Result<(), CallError>,
) -> Result<Received, CallError> {
    let deadline = Deadline::start(call);
    let mut quick = Some(Instant::now() + QUICK);
    let mut id = None;
    let mut first = true;
    loop {
        let next = tokio::select! {
            next = deadline.keep(call, id.as_deref(), events.next(agent)) => next?,
            () = sleep_until(quick.unwrap_or_else(Instant::now)), if quick.is_some() && id.is_some() => {
                quick = None;
                output::note(&format!("Task: {}", id.as_deref().unwrap_or_default()));
                continue;
            }
        };
        let event = match next {
            None => break,
            Some(Ok(event)) => event,
            // The stream is of no use any more, but the task can still be read.
            Some(Err(error)) if id.is_some() && may_go_on(call, &error) => {
                if call.settings.debug {
                    output::warn(&format!("the stream failed: {}", error.message));
                }
                break;
            }
            Some(Err(error)) => return Err(error),
        };
        if let Some(seen) = event.task_id() {
            call.saw(seen);
            id = Some(seen.to_owned());
        }
        let phase = match &event.event {
            Event::Message(_) => Phase::Ended,
            // The stream of an answer begins with the task as it was before.
            Event::Task(task) if first && is_answer && task.status.state.phase() == Phase::Paused => {
                Phase::Going
            }
            Event::Task(task) => task.status.state.phase(),
            Event::StatusUpdate(update) => update.status.state.phase(),
            Event::ArtifactUpdate(_) => Phase::Going,
        };
        first = false;
        show(&event)?;
        if phase != Phase::Going {
            return Ok(event);
        }
    }
    // The stream has ended although its last event did not say so: the task itself tells.
    let id = id.ok_or_else(|| CallError::internal("the agent sent no event"))?;
    let task = poll(call, agent, &task_id(&id)?, HistoryLength::All).await?;
    let last = task.into_event();
    show(&last)?;
    Ok(last)
}

/// The task with everything, at the end of a wait. If it cannot be read, what is known from its events.
pub(crate) async fn whole(call: &Call, agent: &Agent, last: Received) -> Result<Received, CallError> {
    let Some(id) = last.task_id().filter(|_| !matches!(last.event, Event::Message(_))) else {
        return Ok(last);
    };
    let id = task_id(id)?;
    match agent.get(&id, HistoryLength::All).await {
        Ok(read) => Ok(read.into_event()),
        // An answer that makes no sense is reported; if none came, what the events said is enough.
        Err(error) => match agent.folded().filter(|_| is_passing(&error) || error.is_answer) {
            Some(task) => {
                if call.settings.debug {
                    output::warn(&format!("the task could not be read at the end: {}", error.message));
                }
                Ok(task)
            }
            None => Err(error),
        },
    }
}

/// Reads a task until it ends or pauses.
pub(crate) async fn poll(
    call: &Call,
    agent: &Agent,
    id: &TaskId,
    history: HistoryLength,
) -> Result<Read, CallError> {
    let deadline = Deadline::start(call);
    call.saw(id.as_str());
    let interval = call.settings.poll_interval;
    let mut failures = 0;
    loop {
        let gap = match deadline.keep(call, Some(id.as_str()), agent.get(id, history)).await? {
            Ok(read) if read.task.status.state.phase() != Phase::Going => return Ok(read),
            Ok(_) => {
                failures = 0;
                interval
            }
            Err(error) if failures + 1 < MOST_FAILURES && is_passing(&error) => {
                failures += 1;
                error_gap(interval, failures)
            }
            Err(error) => return Err(error),
        };
        deadline.keep(call, Some(id.as_str()), tokio::time::sleep(gap)).await?;
    }
}

/// Whether the task may be read although its stream failed. Somebody who wants to see the stream wants to see the agent's
/// error in it, too.
fn may_go_on(call: &Call, error: &CallError) -> bool {
    match error.code {
        Code::AuthFailed | Code::CredentialsMissing => false,
        _ => !error.is_answer || !call.settings.stream,
    }
}

/// Whether the same request may succeed later.
fn is_passing(error: &CallError) -> bool {
    matches!(error.code, Code::Unreachable | Code::Timeout | Code::Internal)
}

fn error_gap(interval: Duration, failures: u32) -> Duration {
    interval.saturating_mul(1 << failures.min(10)).min(LONGEST_GAP.max(interval))
}

/// A task as it was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) json: String,
    pub(crate) task: Task,
}

impl Read {
    /// As a stream or the reply to a send has it.
    pub(crate) fn into_event(self) -> Received {
        Received { json: format!("{{\"task\":{}}}", self.json), event: Event::Task(self.task) }
    }
}

pub(crate) fn task_id(text: &str) -> Result<TaskId, CallError> {
    TaskId::parse(text).map_err(|error| CallError::usage(format!("the task id {error}")))
}

/// `--timeout`: how long the user wants to wait.
struct Deadline(Option<Instant>);

impl Deadline {
    fn start(call: &Call) -> Self {
        Deadline(call.settings.timeout.map(|timeout| Instant::now() + timeout))
    }

    async fn keep<T>(
        &self,
        call: &Call,
        id: Option<&str>,
        future: impl Future<Output = T>,
    ) -> Result<T, CallError> {
        let Some(deadline) = self.0 else { return Ok(future.await) };
        timeout_at(deadline, future).await.map_err(|_| {
            let error = CallError::new(Code::Timeout, "the task has not ended in time; it goes on");
            match (id, &*call.resume.borrow()) {
                (Some(id), Some(resume)) => {
                    // In JSON the envelope has no place for it.
                    output::note(&format!("Task: {id}"));
                    error.with_hint(resume)
                }
                _ => error.with_hint(format!("{PROGRAM} task list")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_task_poll_002_the_gap_grows_with_failures_up_to_a_bound() {
        let gaps: Vec<u64> =
            (1..=6).map(|failures| error_gap(Duration::from_secs(2), failures).as_secs()).collect();
        assert_eq!(gaps, [4, 8, 16, 30, 30, 30]);
        assert_eq!(error_gap(Duration::from_secs(60), 1), Duration::from_secs(60));
    }
}
