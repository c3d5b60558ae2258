//! Webhooks: their configs, and the calls.

use std::sync::Arc;

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::ask::Ask;
use super::entry::{Config, Entry, fresh_id, is_terminal};
use super::fault::{Place, Quirk, Rule, What};
use super::operations::of_config;
use super::refusal::{Kind, Refusal};
use super::spell;

pub(super) fn answer(agent: &Arc<Agent>, ask: &Ask, place: &mut Place) -> Result<Value, Refusal> {
    if !agent.profile.pushes() {
        agent.check(Rule::NoPush, place, "this agent calls nobody")?;
    }
    let listing = ask.operation == Operation::ListPushConfigs;
    let unknown = ask.params["taskId"].as_str().is_none_or(|id| agent.find(id).is_none());
    if listing && unknown {
        agent.check(Rule::UnknownTask, place, "there is no such task")?;
        return Ok(json!({ "configs": [] }));
    }
    let entry = of_config(agent, ask, place)?;
    let id = ask.params["id"].as_str().unwrap_or_default();
    match ask.operation {
        Operation::CreatePushConfig => add(agent, &entry, ask.params.clone(), place),
        Operation::ListPushConfigs => {
            let configs: Vec<Value> =
                entry.kept().configs.iter().map(|config| config.value.clone()).collect();
            Ok(json!({ "configs": configs }))
        }
        Operation::DeletePushConfig => {
            let found = take(&entry, id, agent.has(Quirk::NotDeleted, place));
            match found {
                Some(config) if !agent.has(Quirk::CallsDeleted, place) => config.stop.cancel(),
                Some(_) => {}
                None => agent.check(Rule::DeleteUnknownConfig, place, "there is no such config")?,
            }
            Ok(json!({}))
        }
        _ => {
            // 0.3 and 0.1 may ask without an id: then the first is meant.
            let kept = entry.kept();
            let mut all = kept.configs.iter().map(|config| &config.value);
            let old = place.generation != Generation::V1 && id.is_empty();
            let found = if old { all.next() } else { all.find(|config| config["id"] == id) };
            match found {
                Some(found) => Ok(found.clone()),
                None => {
                    agent.check(Rule::UnknownConfig, place, "there is no such config")?;
                    Ok(json!({}))
                }
            }
        }
    }
}

/// Takes the config out, unless the agent forgets to; it goes on then.
fn take(entry: &Entry, id: &str, forgets: bool) -> Option<Config> {
    let mut kept = entry.kept();
    let index = kept.configs.iter().position(|config| config.value["id"] == id)?;
    if forgets {
        return Some(Config { value: Value::Null, stop: CancellationToken::new() });
    }
    Some(kept.configs.remove(index))
}

pub(super) fn add(
    agent: &Arc<Agent>,
    entry: &Arc<Entry>,
    mut value: Value,
    place: &Place,
) -> Result<Value, Refusal> {
    if value["url"].as_str().is_none_or(str::is_empty) {
        agent.check(Rule::ConfigUrl, place, "`url` is missing").map_err(|refusal| refusal.about("url"))?;
    }
    let url = value["url"].as_str().unwrap_or_default();
    let plain = url.starts_with("http://") && !url.starts_with("http://127.0.0.1:");
    if place.generation == Generation::V0_1 && plain {
        agent.check(Rule::PlainWebhook, place, "a webhook has to be HTTPS")?;
    }
    if value["id"].as_str().is_none_or(str::is_empty) {
        value["id"] = json!(fresh_id());
    }
    value["taskId"] = json!(entry.id);
    let config = Config { value: value.clone(), stop: CancellationToken::new() };
    {
        let mut kept = entry.kept();
        if agent.has(Quirk::OneConfig, place) {
            kept.configs.clear();
        }
        kept.configs.retain(|known| known.value["id"] != value["id"]);
        if kept.configs.len() >= 100 {
            return Err(Refusal::new(Kind::InvalidParams, "there are enough webhooks"));
        }
        kept.configs.push(config.clone());
    }
    // Nobody outside of this machine is ever called.
    if value["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")) {
        let at = entry.snapshot().1;
        tokio::spawn(follow(Arc::clone(agent), Arc::clone(entry), config, at, place.clone()));
    }
    Ok(value)
}

/// Calls the webhook with each event, in order, until the task has ended or the config is deleted.
async fn follow(agent: Arc<Agent>, entry: Arc<Entry>, config: Config, mut at: usize, place: Place) {
    let calls = async {
        loop {
            entry.longer_than(at).await;
            let Some(event) = entry.event(at) else { return };
            at += 1;
            let ends = is_terminal(event["statusUpdate"]["status"]["state"].as_str().unwrap_or_default());
            call(&agent, &entry, &config.value, event, &place).await;
            if ends {
                return;
            }
        }
    };
    config.stop.run_until_cancelled(calls).await;
}

async fn call(agent: &Agent, entry: &Entry, config: &Value, event: Value, place: &Place) {
    let (kind, mut body) = spell::webhook(place.generation, entry, event);
    agent.edit(What::Call, place, &mut body);
    let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let (Some(scheme), Some(secret)) =
        (text(&config["authentication"]["scheme"]), text(&config["authentication"]["credentials"]))
    {
        headers.push(("authorization".to_owned(), format!("{scheme} {secret}")));
    }
    if let Some(token) = text(&config["token"]) {
        headers.push(("x-a2a-notification-token".to_owned(), token));
    }
    agent.dress(What::Call, place, &mut headers);
    let url = config["url"].as_str().unwrap_or_default();
    let mut request = agent.webhooks().post(url).body(body.to_string());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    // Whoever does not listen hears nothing: the task does not care.
    let _ = request.send().await;
}
