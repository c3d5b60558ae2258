//! Waiting for a task: by its events where the agent streams, otherwise by reading it again and again.

use std::time::Duration;

use baton_protocol::domain::TaskId;
use baton_protocol::operation::HistoryLength;
use tokio::time::{Instant, sleep_until};

use super::Call;
use super::agent::{Agent, Events, Received};
use super::error::{CallError, Code};
use crate::output;
use crate::output::view::{Event, Phase, Task};

/// The task's id is said on stderr if it takes longer than this, in case the user stops waiting or is stopped.
const QUICK: Duration = Duration::from_secs(1);
/// The longest time between two looks at a task whose agent cannot be reached.
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// How many looks in a row may fail.
const MOST_FAILURES: u32 = 5;

/// How events are followed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Follow {
    /// The events begin with the task as it was before the message, still waiting for it.
    pub(crate) is_answer: bool,
    /// The user sees the events, and the task's id with them.
    pub(crate) is_shown: bool,
}

/// Follows events until the task ends or pauses, or the agent has answered with a message. Returns the last one.
pub(crate) async fn follow(
    call: &Call,
    agent: &Agent,
    events: &mut Events,
    follow: Follow,
    show: impl FnMut(&Received) -> Result<(), CallError>,
) -> Result<Received, CallError> {
    let followed = follow_events(call, agent, events, follow, show).await;
    // The task goes on, whatever became of the connection.
    followed.map_err(|error| call.with_task(error))
}

async fn follow_events(
    call: &Call,
    agent: &Agent,
    events: &mut Events,
    Follow { is_answer, is_shown }: Follow,
    mut show: impl FnMut(&Received) -> Result<(), CallError>,
) -> Result<Received, CallError> {
    let mut quick = (!is_shown).then(|| Instant::now() + QUICK);
    let mut id = None;
    let mut first = true;
    // The event that ended the wait. Behind it comes the task, if events may have been missed.
    let mut ended = None;
    loop {
        let next = tokio::select! {
            next = events.next(agent) => next,
            () = sleep_until(quick.unwrap_or_else(Instant::now)), if quick.is_some() && id.is_some() => {
                quick = None;
                let id = id.as_deref().unwrap_or_default();
                output::note(&format!("Waiting for task {id}; Ctrl-C stops waiting, and the task goes on"));
                continue;
            }
        };
        let event = match next {
            None => break,
            Some(Ok(event)) => event,
            Some(Err(error)) if ended.is_some() => {
                output::warn(&format!(
                    "something may be missing, the task could not be read: {}",
                    error.message
                ));
                break;
            }
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
        if phase == Phase::Paused {
            events.end_if_waiting();
        }
        ended = (phase != Phase::Going).then_some(event);
    }
    if let Some(last) = ended {
        return Ok(last);
    }
    // The stream has ended although its last event did not say so: the task itself tells.
    let id = id.ok_or_else(|| CallError::internal("the agent sent no event"))?;
    let task = poll(call, agent, &task_id(&id)?, HistoryLength::All).await?;
    let last = task.into_event();
    show(&last)?;
    Ok(last)
}

/// The task with everything, at the end of a wait. If it cannot be read, what is known from its events.
pub(crate) async fn whole(
    call: &Call,
    agent: &Agent,
    events: &Events,
    last: Received,
) -> Result<Received, CallError> {
    let Some(id) = last.task_id().filter(|_| !matches!(last.event, Event::Message(_))) else {
        return Ok(last);
    };
    let id = task_id(id)?;
    match agent.get(&id, HistoryLength::All).await {
        Ok(read) => Ok(read.into_event()),
        // An answer that makes no sense is reported; if none came, what the events said is enough.
        Err(error) => match events.task().filter(|_| is_passing(&error) || error.is_answer) {
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
    call.saw(id.as_str());
    let interval = call.settings.poll_interval;
    let mut failures = 0;
    loop {
        let gap = match agent.get(id, history).await {
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
        tokio::time::sleep(gap).await;
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
