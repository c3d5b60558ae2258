//! SendMessage and SendStreamingMessage.

use std::sync::{Arc, PoisonError};

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};

use super::agent::Agent;
use super::ask::{Ask, Outcome};
use super::entry::{Entry, fresh_id, is_interrupted};
use super::fault::{Place, Quirk, Rule};
use super::feed::Feed;
use super::refusal::Refusal;
use super::{clock, push, scripts};

/// Takes a task along when its client goes.
#[derive(Debug)]
pub(super) struct Hostage(pub(super) Option<Arc<Entry>>);

impl Drop for Hostage {
    fn drop(&mut self) {
        if let Some(entry) = &self.0 {
            entry.stop.cancel();
            entry.enter("CANCELED", None);
        }
    }
}

pub(super) async fn send(agent: &Arc<Agent>, ask: &Ask, place: &mut Place) -> Result<Outcome, Refusal> {
    let message = &ask.params["message"];
    let said = message["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    place.phrase.clone_from(&said);
    agent.check_send(&ask.params, place)?;
    let streams = ask.operation == Operation::SendStreamingMessage;
    let known = existing(agent, ask, place)?;
    // The oldest generation has tasks alone.
    let messages = place.generation != Generation::V0_1;
    if known.is_none() && messages && scripts::is_message(agent.understood(&said)) {
        let context = message["contextId"].as_str().map_or_else(fresh_id, str::to_owned);
        let reply = json!({"message": {"messageId": fresh_id(), "contextId": context, "role": "ROLE_AGENT",
            "parts": [{"text": "hello"}]}});
        return Ok(if streams {
            Outcome::Stream(Feed::single(agent, reply, place))
        } else {
            Outcome::Reply(reply)
        });
    }
    let entry = match known {
        Some(entry) => entry,
        None => created(agent, ask, place, &said),
    };
    let first = entry.kept().history.is_empty();
    let waits = is_interrupted(&entry.state());
    let times = if !first && agent.has(Quirk::KeptTwice, place) { 2 } else { 1 };
    entry.hear(message.clone(), times);
    if let Some(config) = ask.params["configuration"].get("taskPushNotificationConfig")
        && agent.profile.pushes()
        && !agent.has(Quirk::IgnoresConfigInSend, place)
    {
        push::add(agent, &entry, config.clone(), place)?;
    }
    if !first && waits {
        entry.enter("WORKING", None);
    }
    let (snapshot, at) = entry.snapshot();
    if let Some(url) = said.strip_prefix(scripts::CALL)
        && !agent.has(Quirk::CallsNobody, place)
    {
        let card = format!("{url}/.well-known/agent-card.json");
        // Whether somebody was there is for the lab to find out.
        let _ = agent.webhooks().get(card).send().await;
    }
    if first || waits {
        let phrase = agent.understood(&entry.phrase).to_owned();
        tokio::spawn(scripts::run(Arc::clone(&entry), phrase, first, said));
    }
    let hostage = agent.has(Quirk::CancelOnDisconnect, place).then(|| Arc::clone(&entry));
    if streams {
        return Ok(Outcome::Stream(Feed::of_send(agent, &entry, (snapshot, at), Hostage(hostage), place)));
    }
    let mut hostage = Hostage(hostage);
    let at_once = ask.params["configuration"]["returnImmediately"] == true;
    let wait =
        if at_once { agent.has(Quirk::WaitsAnyway, place) } else { !agent.has(Quirk::DoesNotWait, place) };
    let mut task = snapshot;
    if wait {
        entry.settled().await;
        task = entry.snapshot().0;
    }
    hostage.0 = None;
    let length = ask.params["configuration"]["historyLength"].as_u64();
    agent.trim(&entry, &mut task, length, place);
    if !first && message.get("contextId").is_none() && agent.has(Quirk::FreshContextOnFollowUp, place) {
        task["contextId"] = json!(fresh_id());
    }
    let mut reply = json!({ "task": task });
    if agent.has(Quirk::CrossedAnswers, place) {
        let mut left = agent.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = left.replace(reply.clone()) {
            reply = before;
        }
    }
    Ok(Outcome::Reply(reply))
}

/// The task that a message goes to, if it names one.
fn existing(agent: &Agent, ask: &Ask, place: &mut Place) -> Result<Option<Arc<Entry>>, Refusal> {
    let message = &ask.params["message"];
    let text = |name: &str| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let tasks = agent.tasks();
    let mine = || tasks.iter().filter(|entry| entry.owner == ask.owner);
    if let Some(id) = text("messageId")
        && mine().any(|entry| entry.kept().history.iter().any(|known| known["messageId"] == id))
    {
        agent.check(Rule::RepeatedMessage, place, "this message has been sent before")?;
    }
    let Some(id) = text("taskId") else {
        let context = text("contextId").filter(|_| agent.has(Quirk::ContextIsTask, place));
        let waits =
            mine().find(|entry| Some(entry.context.as_str()) == context && is_interrupted(&entry.state()));
        return Ok(waits.cloned());
    };
    // In 0.1 the client makes the id of a new task.
    if place.generation == Generation::V0_1 && agent.find(id).is_none() {
        return Ok(None);
    }
    let Some(entry) = agent.visible(id, ask, place)? else { return Ok(None) };
    place.phrase.clone_from(&entry.phrase);
    place.born = Some(entry.generation);
    if text("contextId").is_some_and(|context| context != entry.context) {
        agent.check(Rule::ContextMismatch, place, "the task belongs to another context")?;
    }
    if entry.has_ended() {
        if agent.has(Quirk::RefusedButKept, place) {
            entry.hear(message.clone(), 1);
        }
        if agent.has(Quirk::TouchedByRefusal, place) {
            entry.kept().status["timestamp"] = json!(clock::now());
        }
        agent.check(Rule::SendToEnded, place, "the task has ended")?;
    }
    if is_interrupted(&entry.state()) {
        agent.check(Rule::FollowUp, place, "the task takes no more messages")?;
    }
    if entry.binding != ask.binding {
        agent.check(Rule::OtherBinding, place, "no such task")?;
    }
    Ok(Some(entry))
}

fn created(agent: &Agent, ask: &Ask, place: &Place, said: &str) -> Arc<Entry> {
    let message = &ask.params["message"];
    let given = message["contextId"].as_str().filter(|context| !context.is_empty());
    let known = |context: &&str| agent.tasks().iter().any(|entry| entry.context == **context);
    let given = given.filter(|context| !agent.has(Quirk::NewContext, place) || known(context));
    let given = given.filter(|_| !agent.has(Quirk::ForgetsContext, place));
    let context = given.map_or_else(fresh_id, str::to_owned);
    // A client's id gets here where nobody checks that there is such a task; 0.1's clients make their own.
    let own = message["taskId"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    let own = own.filter(|_| !agent.has(Quirk::OwnIds, place));
    let id = if agent.has(Quirk::SameId, place) { "task-1".to_owned() } else { own.unwrap_or_else(fresh_id) };
    let entry = Arc::new(Entry::new((id, context, ask.owner.clone()), said, (ask.generation, ask.binding)));
    agent.keep(Arc::clone(&entry));
    entry
}
