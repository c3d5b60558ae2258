//! ListTasks.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::agent::Agent;
use super::ask::Ask;
use super::entry::Entry;
use super::fault::{Place, Quirk, Rule};
use super::refusal::Refusal;

const STATES: &[&str] = &[
    "UNSPECIFIED",
    "SUBMITTED",
    "WORKING",
    "COMPLETED",
    "FAILED",
    "CANCELED",
    "INPUT_REQUIRED",
    "REJECTED",
    "AUTH_REQUIRED",
];

pub(super) fn list(agent: &Agent, ask: &Ask, place: &Place) -> Result<Value, Refusal> {
    let params = &ask.params;
    let size = page_size(agent, params.get("pageSize"), place)?;
    let start = match text(params, "pageToken") {
        Some(token) => match position(token) {
            Some(start) => start,
            None => {
                refuse(agent, Rule::PageToken, place, "pageToken", "is none of ours")?;
                0
            }
        },
        None => 0,
    };
    let state = text(params, "status");
    let known = |state: &str| STATES.iter().any(|known| state == format!("TASK_STATE_{known}"));
    if state.is_some_and(|state| !known(state)) {
        refuse(agent, Rule::StatusWord, place, "status", "is no state of a task")?;
    }
    let after = text(params, "statusTimestampAfter");
    if after.is_some_and(|time| !time.ends_with('Z') || !time.starts_with(|c: char| c.is_ascii_digit())) {
        refuse(agent, Rule::TimeWord, place, "statusTimestampAfter", "is no time")?;
    }
    agent.check_history_length(params.get("historyLength"), place)?;
    let mut found: Vec<Arc<Entry>> = agent.tasks();
    let continued = ask.params.get("pageToken").is_some();
    let careless = agent.has(Quirk::ListShowsEverybodys, place)
        || continued && agent.has(Quirk::PageShowsEverybodys, place);
    found.retain(|entry| entry.owner == ask.owner || careless);
    if let Some(context) = text(params, "contextId").filter(|_| !agent.has(Quirk::ListIgnoresContext, place))
    {
        found.retain(|entry| entry.context == context);
    }
    if let Some(state) = state.filter(|state| known(state) && !agent.has(Quirk::ListIgnoresState, place)) {
        found.retain(|entry| entry.state() == state);
    }
    if let Some(after) = after {
        let exclusive = agent.has(Quirk::TimeIsExclusive, place);
        found.retain(|entry| {
            let time = time_of(entry);
            // Times of different length would not sort as texts.
            let (time, after) = (time.trim_end_matches('Z'), after.trim_end_matches('Z'));
            time > after || (time == after && !exclusive)
        });
    }
    // Times are read once: a task that moves on in the middle would spoil the order.
    found.sort_by_cached_key(|entry| std::cmp::Reverse(time_of(entry)));
    if agent.has(Quirk::OldestFirst, place) {
        found.reverse();
    }
    let end = (start + size).min(found.len());
    let shown = found.get(start..end).unwrap_or_default();
    let tasks: Vec<Value> = shown.iter().map(|entry| row(agent, entry, params, place)).collect();
    let next = if end < found.len() {
        let overlap = usize::from(agent.has(Quirk::PagesOverlap, place));
        URL_SAFE_NO_PAD.encode(format!("page:{}", end - overlap))
    } else {
        String::new()
    };
    Ok(json!({"tasks": tasks, "nextPageToken": next, "pageSize": size, "totalSize": found.len()}))
}

fn row(agent: &Agent, entry: &Entry, params: &Value, place: &Place) -> Value {
    let mut task = entry.snapshot().0;
    agent.trim(entry, &mut task, params["historyLength"].as_u64(), place);
    if params["includeArtifacts"] != true
        && !agent.has(Quirk::ListShowsArtifacts, place)
        && let Some(members) = task.as_object_mut()
    {
        members.remove("artifacts");
    }
    task
}

fn page_size(agent: &Agent, size: Option<&Value>, place: &Place) -> Result<usize, Refusal> {
    let usual = if agent.has(Quirk::ShortPages, place) { 20 } else { 50 };
    let Some(size) = size.filter(|size| !size.is_null()) else { return Ok(usual) };
    let Some(size) = size.as_i64() else {
        refuse(agent, Rule::WrongType, place, "pageSize", "has to be a whole number")?;
        return Ok(usual);
    };
    if size < 1 {
        refuse(agent, Rule::PageSizeSmall, place, "pageSize", "has to be at least 1")?;
    }
    if size > 100 {
        refuse(agent, Rule::PageSizeLarge, place, "pageSize", "has to be at most 100")?;
    }
    if size > 50 {
        refuse(agent, Rule::PageSizeOver50, place, "pageSize", "has to be at most 50")?;
    }
    Ok(usize::try_from(size.clamp(1, 100)).unwrap_or(usual))
}

fn refuse(agent: &Agent, rule: Rule, place: &Place, field: &str, why: &str) -> Result<(), Refusal> {
    agent.check(rule, place, &format!("`{field}` {why}")).map_err(|refusal| refusal.about(field))
}

fn text<'a>(params: &'a Value, name: &str) -> Option<&'a str> {
    params.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn time_of(entry: &Entry) -> String {
    entry.kept().status["timestamp"].as_str().unwrap_or_default().to_owned()
}

fn position(token: &str) -> Option<usize> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    std::str::from_utf8(&bytes).ok()?.strip_prefix("page:")?.parse().ok()
}
