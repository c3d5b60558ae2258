//! The operations on tasks that exist, and the way to all of them.

use std::sync::Arc;

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};

use super::agent::Agent;
use super::ask::{Ask, Outcome};
use super::entry::{Entry, is_interrupted};
use super::fault::{Place, Quirk, Rule};
use super::feed::Feed;
use super::refusal::{Kind, Refusal};
use super::{card, lists, push, send};

pub(super) async fn answer(agent: &Arc<Agent>, ask: &Ask, place: &mut Place) -> Result<Outcome, Refusal> {
    match ask.operation {
        Operation::SendMessage => send::send(agent, ask, place).await,
        Operation::SendStreamingMessage => {
            if !agent.profile.streams() {
                agent.check(Rule::NoStreaming, place, "this agent does not stream")?;
            }
            send::send(agent, ask, place).await
        }
        Operation::GetTask => get(agent, ask, place).map(Outcome::Reply),
        Operation::ListTasks => lists::list(agent, ask, place).map(Outcome::Reply),
        Operation::CancelTask => cancel(agent, ask, place).map(Outcome::Reply),
        Operation::SubscribeToTask => subscribe(agent, ask, place).map(Outcome::Stream),
        Operation::CreatePushConfig
        | Operation::GetPushConfig
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig => push::answer(agent, ask, place).map(Outcome::Reply),
        Operation::GetExtendedAgentCard | Operation::GetAgentCard => {
            if !agent.profile.is_guarded() {
                agent.check(Rule::NoExtendedCard, place, "there is no extended card")?;
            }
            Ok(Outcome::Reply(card::extended(agent, place.generation)))
        }
    }
}

impl Agent {
    /// The task with an id, if the caller may see it; `None` where nobody cares that there is none.
    pub(super) fn visible(
        &self,
        id: &str,
        ask: &Ask,
        place: &mut Place,
    ) -> Result<Option<Arc<Entry>>, Refusal> {
        if id.contains('/') || id.contains("..") {
            self.check(Rule::OddId, place, "this id cannot be looked up")?;
        }
        let Some(entry) = self.find(id) else {
            self.check(Rule::UnknownTask, place, "there is no such task")?;
            return Ok(None);
        };
        if entry.owner != ask.owner {
            self.check(Rule::Foreign, place, "there is no such task")?;
        }
        Ok(Some(entry))
    }

    /// The task that a request is about.
    fn named(&self, member: &str, ask: &Ask, place: &mut Place) -> Result<Arc<Entry>, Refusal> {
        let entry = self.perhaps(member, ask, place)?;
        entry.ok_or_else(|| Refusal::new(Kind::TaskNotFound, "there is no such task"))
    }

    /// The same; `None` where nobody cares that there is none.
    fn perhaps(&self, member: &str, ask: &Ask, place: &mut Place) -> Result<Option<Arc<Entry>>, Refusal> {
        let id = match ask.params.get(member) {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            _ => {
                let missing = format!("`{member}` is missing");
                self.check(Rule::NoId, place, &missing).map_err(|refusal| refusal.about(member))?;
                String::new()
            }
        };
        let Some(entry) = self.visible(&id, ask, place)? else { return Ok(None) };
        place.phrase.clone_from(&entry.phrase);
        place.born = Some(entry.generation);
        if entry.binding != ask.binding {
            self.check(Rule::OtherBinding, place, "there is no such task")?;
        }
        Ok(Some(entry))
    }

    /// Leaves as much of the history as was asked for.
    pub(super) fn trim(&self, entry: &Entry, task: &mut Value, length: Option<u64>, place: &Place) {
        // 0.1 has a history of states.
        if place.generation == Generation::V0_1 {
            task["history"] = json!(entry.kept().states);
        }
        let length = length.filter(|_| !self.has(Quirk::WholeHistory, place));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let Some(members) = task.as_object_mut() else { return };
        match (length, members.get_mut("history")) {
            (Some(0), _) if self.has(Quirk::ZeroIsAll, place) => {}
            (Some(0), _) if self.has(Quirk::EmptyHistory, place) => {
                members.insert("history".to_owned(), json!([]));
            }
            (Some(0), _) => {
                members.remove("history");
            }
            (Some(length), Some(Value::Array(history))) => {
                if self.has(Quirk::OldestHistory, place) {
                    history.truncate(length);
                } else {
                    history.drain(..history.len().saturating_sub(length));
                }
            }
            _ => {}
        }
    }
}

fn get(agent: &Agent, ask: &Ask, place: &mut Place) -> Result<Value, Refusal> {
    agent.check_history_length(ask.params.get("historyLength"), place)?;
    let Some(entry) = agent.perhaps("id", ask, place)? else { return Ok(nobodys(ask)) };
    let mut task = entry.snapshot().0;
    agent.trim(&entry, &mut task, ask.params["historyLength"].as_u64(), place);
    if entry.has_ended() && agent.has(Quirk::Flickers, place) {
        let mut kept = entry.kept();
        kept.reads += 1;
        if kept.reads % 2 == 0 {
            task["status"]["state"] = json!("TASK_STATE_WORKING");
        }
    }
    Ok(task)
}

/// A task that never was, of an agent that does not mind.
fn nobodys(ask: &Ask) -> Value {
    json!({"id": ask.params["id"], "contextId": "none", "status": {"state": "TASK_STATE_SUBMITTED"}})
}

fn cancel(agent: &Agent, ask: &Ask, place: &mut Place) -> Result<Value, Refusal> {
    let Some(entry) = agent.perhaps("id", ask, place)? else { return Ok(nobodys(ask)) };
    if !ask.has_body {
        agent.check(Rule::EmptyBody, place, "there is no body")?;
    }
    if ask.params.get("metadata").is_some() {
        agent.check(Rule::CancelMetadata, place, "`metadata` is not known here")?;
    }
    let state = entry.state();
    if state == "TASK_STATE_CANCELED" {
        let rule = match place.generation {
            Generation::V0_3 => Rule::CancelAgain,
            _ => Rule::CancelCanceled,
        };
        agent.check(rule, place, "the task is canceled")?;
        return Ok(entry.snapshot().0);
    }
    if entry.has_ended() {
        agent.check(Rule::CancelEnded, place, "the task has ended")?;
    }
    if is_interrupted(&state) {
        agent.check(Rule::CancelInterrupted, place, "the task waits for somebody")?;
    }
    entry.stop.cancel();
    entry.enter("CANCELED", None);
    Ok(entry.snapshot().0)
}

fn subscribe(agent: &Agent, ask: &Ask, place: &mut Place) -> Result<Feed, Refusal> {
    if !agent.profile.streams() {
        agent.check(Rule::NoStreaming, place, "this agent does not stream")?;
    }
    let entry = agent.named("id", ask, place)?;
    if entry.has_ended() {
        agent.check(Rule::SubscribeEnded, place, "the task has ended")?;
    }
    if is_interrupted(&entry.state()) {
        agent.check(Rule::SubscribeInterrupted, place, "the task does nothing now")?;
    }
    let subscriptions = entry.kept().subscriptions;
    if subscriptions > 0 && agent.has(Quirk::OneSubscription, place) {
        return Err(Refusal::new(Kind::Unsupported, "the task has been subscribed to"));
    }
    Ok(Feed::of_subscription(agent, &entry, place))
}

/// Used by the operations on webhooks.
pub(super) fn of_config(agent: &Agent, ask: &Ask, place: &mut Place) -> Result<Arc<Entry>, Refusal> {
    agent.named("taskId", ask, place)
}
