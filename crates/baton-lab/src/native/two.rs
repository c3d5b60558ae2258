//! Two agents: each can be found from the other, accepts the other's output, and keeps its own tasks separate.
//!
//! The lab is a client of both. A2A has no way to make one agent call another; a user who knows a phrase that does it
//! can give it with `--var callPhrase`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::shape::{fault, judge};
use super::talk::{COMPLETE, Said, Say, filled, fresh_id, skip};
use super::{Checks, Done, checks, differs, fail};
use crate::acts::assertion::Mismatch;
use crate::fault::{Plan, Proxy};
use crate::generation::Binding;
use crate::run::Bench;
use crate::target::{self, Behaviours};
use crate::wire::detour::authority_of;
use crate::wire::request::Operation;
use crate::wire::{Answer, Request};

pub(super) const CHECKS: Checks = checks! {
    "two.discovery" => discovery,
    "two.there" => there,
    "two.back" => back,
    "two.apart" => apart,
    "two.many" => many,
    "two.context" => context,
    "two.calls" => calls,
};

/// Parallel tasks on each of the two.
const TASKS: usize = 8;
/// Fewer, since the answers of a model may cost money.
const FEW_TASKS: usize = 3;
/// Longest text of one agent that is sent to the other.
const MOST_PASSED_ON: usize = 16 * 1024;

/// The same case on the other agent.
fn second(bench: &Bench) -> Done<Bench> {
    bench.second().ok_or_else(|| {
        skip(format!("the second agent declares no interface of {} that is known here", bench.generation()))
    })
}

/// The card is at the agent's address, and the card's address leads to the agent.
async fn discovery(bench: &Bench) -> Done {
    let other = second(bench)?;
    if bench.interface().url == other.interface().url {
        return Err(differs(
            "two agents with addresses of their own",
            format!("{} twice", other.interface().url),
        ));
    }
    for (one, two) in [(bench, &other), (&other, bench)] {
        found_by(one, two).await?;
    }
    Ok(())
}

/// Discovers `two` as `one` would.
async fn found_by(one: &Bench, two: &Bench) -> Done {
    let url = two.card_url();
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    let request = Request { method: "GET".to_owned(), url: url.clone(), headers, body: None, streams: false };
    let lost = |error: crate::wire::NoAnswer| fail(format!("{url}: no answer: {error}"));
    let mut open = two.probe().stranger().open(&request).await.map_err(lost)?;
    let body = open.rest().await.map_err(lost)?;
    let status = open.received.status;
    let card: Value = match serde_json::from_slice(&body) {
        Ok(card) if status == 200 => card,
        _ => return Err(differs(format!("the card at {url}"), format!("HTTP {status}"))),
    };
    if filled(&card, "name").is_none() {
        return Err(differs(format!("a card with a name at {url}"), "one without"));
    }
    let declared = target::interfaces(&card);
    // Cards of 0.1 have an address without further details.
    let declared = declared.get(&(two.generation(), two.binding())).map(|interface| interface.url.as_str());
    let address = declared.or_else(|| card["url"].as_str()).unwrap_or_default();
    if is_loopback(address) && !is_loopback(&two.target().base) {
        let base = &two.target().base;
        return Err(differs(format!("an address that others can reach, as {base} is"), address.to_owned()));
    }
    if is_loopback(address) && !is_loopback(&one.target().base) {
        two.note(format!("{address} is on this machine alone: the other agent cannot call it"));
    }
    let params = json!({ "id": fresh_id() });
    match two.call(Operation::GetTask, &params).await? {
        Answer::Error(error) if two.binding() == Binding::Jsonrpc && error.code.is_none() => {
            Err(differs(format!("an A2A agent at {address}"), error.summary()))
        }
        Answer::Error(_) | Answer::Reply { .. } => Ok(()),
        other @ Answer::Stream { .. } => Err(differs(format!("an A2A agent at {address}"), other.summary())),
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

async fn there(bench: &Bench) -> Done {
    let other = second(bench)?;
    passed_on(bench, &other).await
}

async fn back(bench: &Bench) -> Done {
    let other = second(bench)?;
    passed_on(&other, bench).await
}

/// The answer of one agent is sent to the other, which must receive it unchanged.
async fn passed_on(from: &Bench, to: &Bench) -> Done {
    let made = match from.say(&Say::text(COMPLETE)).await? {
        Said::Task(task) => from.settled(&task).await?,
        Said::Message(message) => message,
    };
    let Some(words) = words(&made) else {
        return Err(skip("the answer to be passed on holds no text"));
    };
    let say = Say::text(&words);
    let asked = to.call(Operation::SendMessage, &say.params(to)).await?;
    let root = match asked {
        Answer::Reply { root: Some(root), .. } => root,
        Answer::Error(error) if to.is_named(&error, "ContentTypeNotSupportedError") => {
            return Err(skip("the other agent takes no text"));
        }
        other => return Err(differs("an agent that takes what the other one wrote", other.summary())),
    };
    let reply = root.get("task").or_else(|| root.get("message")).unwrap_or(&root);
    if reply["status"].is_null() {
        // A message reply: there is no task to examine.
        return Ok(());
    }
    let task = to.settled(reply).await?;
    let task = to.get(&task["id"]).await?;
    arrived(&task, say.id(), &words)
}

/// The text in the history must be the one that was sent; an agent may keep no history.
fn arrived(task: &Value, message: &Value, words: &str) -> Done {
    let history = task["history"].as_array().into_iter().flatten();
    let own = history.filter(|kept| kept["messageId"] == *message).collect::<Vec<_>>();
    for kept in own {
        let text = kept["parts"][0]["text"].as_str();
        if text != Some(words) {
            let text = text.map_or("no text".to_owned(), |text| format!("{text:?}"));
            return Err(differs(format!("the words of the other agent in the history, {words:?}"), text));
        }
    }
    Ok(())
}

/// The text of an answer: of its artifacts, else of its status, else of the message itself.
fn words(made: &Value) -> Option<String> {
    let artifacts = made["artifacts"].as_array().into_iter().flatten().map(|artifact| &artifact["parts"]);
    let places = artifacts.chain([&made["status"]["message"]["parts"], &made["parts"]]);
    let mut texts = places.filter_map(|parts| {
        let texts: Vec<&str> = parts
            .as_array()?
            .iter()
            .filter_map(|part| part["text"].as_str())
            .filter(|text| !text.is_empty())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    });
    texts.next().map(|text| text.chars().take(MOST_PASSED_ON).collect())
}

/// A task of one agent must not be known to the other.
async fn apart(bench: &Bench) -> Done {
    let other = second(bench)?;
    for (own, foreign) in [(bench, &other), (&other, bench)] {
        let say = Say::text(COMPLETE);
        let task = own.task(&say).await?;
        match foreign.call(Operation::GetTask, &json!({ "id": task["id"] })).await? {
            // Other cases check which error it is.
            Answer::Error(_) => {}
            Answer::Reply { root: Some(root), .. } if is_the_same(&root, &task, say.id()) => {
                let known = format!("the task of {}", own.target().base);
                return Err(differs(format!("TaskNotFoundError at {}", foreign.target().base), known));
            }
            Answer::Reply { .. } => {
                foreign.note("both agents have a task of that id, which is not the same one")
            }
            answer @ Answer::Stream { .. } => return Err(differs("TaskNotFoundError", answer.summary())),
        }
    }
    Ok(())
}

/// Agents that number their tasks may have equal ids; context and messages distinguish such tasks.
fn is_the_same(seen: &Value, task: &Value, message: &Value) -> bool {
    let context = |task: &Value| task.get("contextId").or_else(|| task.get("sessionId")).cloned();
    let history = seen["history"].as_array().into_iter().flatten();
    (context(seen).is_some() && context(seen) == context(task))
        || history.into_iter().any(|kept| kept["messageId"] == *message)
}

/// One of many tasks, and its result.
struct Talk {
    agent: &'static str,
    marker: String,
    message_id: Value,
    /// The reply to the send, and to a later read.
    seen: Vec<Value>,
}

/// Many tasks on both at once: no task may contain anything of another.
async fn many(bench: &Bench) -> Done {
    let other = second(bench)?;
    let examples = |bench: &Bench| bench.target().behaviours != Behaviours::Prefixes;
    let tasks = if examples(bench) || examples(&other) { FEW_TASKS } else { TASKS };
    let both = (0..tasks).flat_map(|_| [("first", bench), ("second", &other)]);
    let all = join_all(both.map(|(name, bench)| one_of_many(name, bench))).await;
    let talks = all.into_iter().collect::<Done<Vec<_>>>()?;
    judge(crossed(&talks))
}

async fn one_of_many(agent: &'static str, bench: &Bench) -> Done<Talk> {
    let marker = fresh_id();
    let say = Say::text(&format!("{COMPLETE} between two agents {marker}"));
    let mut seen = Vec::new();
    match bench.say(&say).await? {
        Said::Task(task) => {
            let settled = bench.settled(&task).await?;
            let now = bench.get(&settled["id"]).await?;
            seen.extend([task, now]);
        }
        Said::Message(message) => seen.push(message),
    }
    Ok(Talk { agent, marker, message_id: say.id().clone(), seen })
}

/// Duplicate ids at one agent, and texts or messages of another task.
fn crossed(talks: &[Talk]) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let id = |talk: &Talk| {
        talk.seen.first().and_then(|said| said.get("id").or_else(|| said.get("messageId")).cloned())
    };
    for (index, talk) in talks.iter().enumerate() {
        let place = format!("{}[{index}]", talk.agent);
        let twin = |other: &Talk| other.agent == talk.agent && id(other) == id(talk);
        if talks[..index].iter().any(twin) {
            found.push(fault(&format!("{place}.id"), "an id of its own", id(talk).as_ref()));
        }
        for seen in &talk.seen {
            let text = seen.to_string();
            let foreign = talks.iter().find(|other| {
                let message = other.message_id.as_str().unwrap_or_default();
                other.marker != talk.marker
                    && (text.contains(&other.marker) || (!message.is_empty() && text.contains(message)))
            });
            if let Some(other) = foreign {
                let whose = json!(format!("words of a task at the {} agent", other.agent));
                found.push(fault(&place, "only what belongs to this task", Some(&whose)));
                break;
            }
        }
    }
    found
}

/// The same contextId at both agents names two separate contexts.
async fn context(bench: &Bench) -> Done {
    let other = second(bench)?;
    let shared = json!(fresh_id());
    let mut made = Vec::new();
    for one in [bench, &other] {
        let params = Say::text(COMPLETE).within(&shared).params(one);
        match one.call(Operation::SendMessage, &params).await? {
            Answer::Reply { root: Some(root), .. } if root.get("task").is_some() => {
                made.push((one, root["task"].clone()))
            }
            Answer::Reply { .. } => {
                return Err(skip("an agent answers with a message; this case needs tasks"));
            }
            Answer::Error(_) => return Err(skip("an agent takes no contextId of a client's making")),
            answer @ Answer::Stream { .. } => return Err(differs("a task", answer.summary())),
        }
    }
    for (own, task) in &made {
        let page = own.reply(Operation::ListTasks, &json!({ "contextId": shared })).await?;
        let ids: Vec<&Value> =
            page["tasks"].as_array().into_iter().flatten().map(|task| &task["id"]).collect();
        let foreign = made.iter().find(|(_, other)| other["id"] != task["id"] && ids.contains(&&other["id"]));
        if let Some((whose, other)) = foreign {
            let expected = format!("only tasks of {} in its context", own.target().base);
            return Err(differs(expected, format!("{} of {}", other["id"], whose.target().base)));
        }
    }
    Ok(())
}

/// Sends the user's phrase to the first agent, and checks by a proxy that it calls the second.
async fn calls(bench: &Bench) -> Done {
    let other = second(bench)?;
    let phrase = bench.options().given.get("callPhrase").and_then(Value::as_str);
    let Some(phrase) = phrase.filter(|phrase| phrase.contains("{url}")) else {
        return Err(skip(
            "A2A has no way to make an agent call another; where a phrase does, give it: --var callPhrase='ask {url} …'",
        ));
    };
    let base = &other.target().base;
    let Some(authority) = authority_of(base).filter(|_| is_loopback(&bench.target().base)) else {
        return Err(skip(
            "a call is only seen where the first agent is on this machine and the second speaks http://",
        ));
    };
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| skip(format!("no port to watch calls at: {error}")))?;
    let at = listener.local_addr().map_err(|error| skip(format!("no port to watch calls at: {error}")))?;
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let url = format!("http://{at}/{path}");
    let watch = Proxy::new(authority, Plan { recipes: Vec::new(), every: 1, seed: 0 });
    let stop = CancellationToken::new();
    let (watching, until) = (watch.clone(), stop.clone());
    let _stop = stop.drop_guard();
    tokio::spawn(async move { watching.serve(listener, until.cancelled()).await });
    let say = Say::text(&phrase.replace("{url}", url.trim_end_matches('/')));
    match bench.say(&say).await? {
        Said::Task(task) => drop(bench.settled(&task).await?),
        Said::Message(_) => {}
    }
    let seen = watch.tally();
    if seen.up > 0 && seen.down > 0 {
        bench.note(format!(
            "{} connections, {} bytes to the second agent and {} back",
            seen.connections, seen.up, seen.down
        ));
        return Ok(());
    }
    Err(differs("a call to the second agent by the time the task is settled", "none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_on_this_machine_are_known() {
        for url in [
            "http://127.0.0.1:1/",
            "http://localhost",
            "https://a.localhost:2/x",
            "http://[::1]:3",
            "http://0.0.0.0:1",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://10.0.0.1:1/", "https://agent.example", "http://[2001:db8::1]/"] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn words_are_found_where_agents_put_them() {
        let artifact = json!({"artifacts": [{"parts": [{"data": {}}]}, {"parts": [{"text": "a"}, {"kind": "text", "text": "b"}]}],
            "status": {"message": {"parts": [{"text": "c"}]}}});
        assert_eq!(words(&artifact).as_deref(), Some("a\nb"));
        assert_eq!(words(&json!({"status": {"message": {"parts": [{"text": "c"}]}}})).as_deref(), Some("c"));
        assert_eq!(words(&json!({"messageId": "1", "parts": [{"text": "d"}]})).as_deref(), Some("d"));
        assert_eq!(words(&json!({"artifacts": [{"parts": [{"text": ""}]}]})), None);
    }

    #[test]
    fn changed_words_are_found() {
        let kept = |text: &str| json!({"history": [{"messageId": "other", "parts": []}, {"messageId": "m", "parts": [{"text": text}]}]});
        assert_eq!(arrived(&kept("hello"), &json!("m"), "hello"), Ok(()));
        assert_eq!(arrived(&json!({}), &json!("m"), "hello"), Ok(()));
        arrived(&kept("hallo"), &json!("m"), "hello").unwrap_err();
    }

    #[test]
    fn the_same_id_may_be_another_task() {
        let task = json!({"id": "1", "contextId": "c"});
        assert!(is_the_same(&task, &task, &json!("m")));
        assert!(is_the_same(&json!({"id": "1", "history": [{"messageId": "m"}]}), &task, &json!("m")));
        assert!(!is_the_same(&json!({"id": "1", "contextId": "d"}), &task, &json!("m")));
        assert!(!is_the_same(&json!({"id": "1"}), &json!({"id": "1"}), &json!("m")));
    }

    #[test]
    fn crossed_tasks_are_found() {
        let talk = |agent, marker: &str, id: &str, words: &str| Talk {
            agent,
            marker: marker.to_owned(),
            message_id: json!(format!("message-{marker}")),
            seen: vec![json!({"id": id, "history": [{"parts": [{"text": words}]}]})],
        };
        let right =
            [talk("first", "q1", "1", "q1"), talk("second", "q2", "1", "q2"), talk("first", "q3", "2", "q3")];
        assert_eq!(crossed(&right), [], "each agent has ids of its own");
        assert_eq!(
            crossed(&[talk("first", "q1", "1", "q1"), talk("first", "q2", "1", "q2")])[0].path,
            "first[1].id"
        );
        let mixed = [talk("first", "q1", "1", "what q2 said"), talk("second", "q2", "2", "q2")];
        assert_eq!(crossed(&mixed)[0].path, "first[0]");
        let mixed = [talk("first", "q1", "1", "q1"), talk("second", "q2", "2", "message-q1")];
        assert_eq!(crossed(&mixed)[0].path, "second[1]");
    }
}
