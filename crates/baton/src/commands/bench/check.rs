//! Compares streams with the agent's own account of their tasks, when the load is over: the task that GetTask returns, and
//! the events that the agent replays behind a stream's first one.

use std::collections::HashSet;
use std::time::Instant;

use baton_client::Client;
use baton_protocol::domain::{Artifact, Part, PartContent, Task, TaskId};
use baton_protocol::operation::{Call, GetTask, HistoryLength, Reply, SubscribeToTask};
use baton_protocol::wire::{StreamItem, v1};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::timeout_at;

use super::load::Shared;
use super::watched::{Numbers, Watched};

/// What was found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    /// Streams that were checked.
    pub(super) streams: u64,
    /// Tasks that are what their events add up to.
    pub(super) agreeing: u64,
    pub(super) differing: u64,
    /// What differs in the first of them.
    pub(super) difference: Option<String>,
    /// Streams whose events the agent replayed.
    pub(super) replayed: u64,
    /// Events that it replayed and that had not come.
    pub(super) lost: u64,
    /// Why the first of the others was not replayed.
    pub(super) not_replayed: Option<String>,
}

enum Comparison {
    Agrees,
    Differs(String),
    /// The task could not be read.
    Unread,
}

/// Checks these streams, several at once.
pub(super) async fn check(shared: &Shared, samples: &[Watched]) -> Checked {
    let mut checked = Checked::default();
    let client = &shared.workload.client;
    let tasks = samples.iter().filter_map(|watched| Some((watched, watched.task()?)));
    let mut findings = stream::iter(tasks)
        .map(|(watched, task)| async move {
            let comparison = compare(client, task).await;
            let ended = task.status.state.is_terminal();
            let replayed = replay(client, &task.id, &watched.numbers, ended, shared.deadline()).await;
            (comparison, replayed)
        })
        .buffer_unordered(shared.concurrency);
    loop {
        let finding = tokio::select! {
            finding = findings.next() => finding,
            () = shared.stop.cancelled() => None,
        };
        let Some((comparison, replayed)) = finding else { return checked };
        checked.streams += 1;
        match comparison {
            Comparison::Agrees => checked.agreeing += 1,
            Comparison::Differs(difference) => {
                checked.differing += 1;
                checked.difference.get_or_insert(difference);
            }
            Comparison::Unread => {}
        }
        match replayed {
            Ok(lost) => {
                checked.replayed += 1;
                checked.lost += lost;
            }
            Err(why) => drop(checked.not_replayed.get_or_insert(why)),
        }
    }
}

async fn compare(client: &Client, folded: &Task) -> Comparison {
    let call = GetTask { id: folded.id.clone(), history_length: HistoryLength::Last(0) };
    match client.call(Call::GetTask(call)).await {
        Ok(Reply::Task(read)) => match difference(folded, &read) {
            Some(difference) => Comparison::Differs(difference),
            None => Comparison::Agrees,
        },
        Ok(_) | Err(_) => Comparison::Unread,
    }
}

/// The first difference in state and artifacts; texts that were sent in pieces count as one.
fn difference(folded: &Task, read: &Task) -> Option<String> {
    let (by_events, by_get) = (folded.status.state, read.status.state);
    if by_events != by_get {
        return Some(format!(
            "task {}: its events end with {}, GetTask says {}",
            folded.id.as_str(),
            v1::state_name(by_events),
            v1::state_name(by_get)
        ));
    }
    let content = |artifact: &Artifact| {
        (artifact.id.as_str().to_owned(), artifact.parts.iter().fold(Vec::new(), joined))
    };
    let all = |task: &Task| task.artifacts.iter().map(|artifact| content(artifact)).collect::<Vec<_>>();
    (all(folded) != all(read))
        .then(|| format!("task {}: its artifacts by events and by GetTask differ", folded.id.as_str()))
}

/// Adds a part; a text goes on behind the text before it.
fn joined(mut parts: Vec<PartContent>, part: &Part) -> Vec<PartContent> {
    match (parts.last_mut(), &part.content) {
        (Some(PartContent::Text(before)), PartContent::Text(text)) => before.push_str(text),
        (_, content) => parts.push(content.clone()),
    }
    parts
}

/// Asks for the events behind the stream's first one again, and counts those that had not come.
async fn replay(
    client: &Client,
    id: &TaskId,
    numbers: &Numbers,
    ended: bool,
    deadline: Instant,
) -> Result<u64, String> {
    let first = numbers.first().ok_or("its events have no ids")?;
    let seen = numbers.distinct();
    if seen.len() == 1 {
        // Nothing follows yet, and agents refuse to be asked for nothing.
        return Ok(0);
    }
    let call = Call::SubscribeToTask(SubscribeToTask { id: id.clone() });
    let mut stream = client.stream_raw(call, Some(first)).await.map_err(|error| error.to_string())?;
    let mut replayed = HashSet::new();
    loop {
        let next = timeout_at(deadline.into(), stream.next()).await;
        let next = next.map_err(|_| "the replay did not end in time")?;
        let Some(event) = next.map_err(|error| error.to_string())? else { break };
        if matches!(event.item, StreamItem::Task(_)) {
            return Err("it goes on with the task as it is, not behind Last-Event-ID".to_owned());
        }
        let id = event.id.ok_or("the events of its replay have no ids")?;
        let is_last = !ended && numbers.last() == Some(id.as_str());
        replayed.insert(id);
        // The stream of a task that goes on does not end here.
        if is_last {
            break;
        }
    }
    Ok(replayed.iter().filter(|id| !seen.contains(id.as_str())).count() as u64)
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::{ArtifactId, ContextId, Status, TaskState, Timestamp};

    use super::*;

    fn task(state: TaskState, texts: &[&str]) -> Task {
        let parts = texts.iter().map(|text| Part::text(*text)).collect();
        Task {
            id: TaskId::parse("t").unwrap(),
            context_id: ContextId::parse("c").unwrap(),
            status: Status { state, message: None, timestamp: Timestamp::from_millis(0) },
            artifacts: vec![Artifact::new(ArtifactId::parse("a").unwrap(), parts).into()],
            history: Vec::new(),
            metadata: None,
            transitions: Vec::new(),
        }
    }

    #[test]
    fn a_task_is_compared_by_state_and_content() {
        let one = task(TaskState::Completed, &["a", "b"]);
        assert_eq!(difference(&one, &task(TaskState::Completed, &["ab"])), None);
        let found = difference(&one, &task(TaskState::Working, &["ab"])).unwrap();
        assert!(found.contains("TASK_STATE_WORKING"), "{found}");
        assert!(difference(&one, &task(TaskState::Completed, &["a"])).unwrap().contains("artifacts"));
    }
}
