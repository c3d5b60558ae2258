//! A small client that does everything right, until it is told a bad habit.

use std::sync::OnceLock;
use std::time::Duration;

use baton_lab::generation::{Binding, Generation};
use baton_lab::judge::{Credential, Does, Play, Ran};
use baton_lab::speak;
use baton_lab::target::{self, Interface};
use baton_lab::wire::request::{self, Operation, Request};
use baton_lab::wire::sse;
use serde_json::{Value, json};

/// What it does wrong beside its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    None,
    /// Looks for the card of another generation.
    OldCard,
    /// Does not try the second interface.
    GivesUp,
    /// Takes a stream that ended for a task that ended.
    Trusts,
    /// Tries again at once.
    Impatient,
    /// Does not try again, and says that all is well.
    Careless,
    /// Follows a redirect with GET.
    FollowsWithGet,
    /// Takes credentials along, wherever it is sent.
    Carries,
}

pub(crate) struct Client<'a> {
    pub(crate) play: &'a Play,
    pub(crate) habit: Habit,
    /// Changes every request.
    pub(crate) edit: Option<fn(&mut Request, &Scene)>,
    pub(crate) scene: Scene,
    http: reqwest::Client,
    card: Value,
    printed: String,
}

/// What a change of a request may want to know.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) generation: Generation,
    pub(crate) binding: Binding,
    pub(crate) interface: Interface,
    pub(crate) secret: String,
    /// The first task there was, and the first message's id.
    pub(crate) task: String,
    pub(crate) message_id: String,
    /// How many times before.
    pub(crate) number: usize,
}

type Done<T> = Result<T, String>;

/// What one call brought: results, one or many; and whether it broke in the middle.
struct Answer {
    results: Vec<Value>,
    broken: bool,
}

impl<'a> Client<'a> {
    pub(crate) fn new(play: &'a Play, habit: Habit, edit: Option<fn(&mut Request, &Scene)>) -> Self {
        let scene = Scene {
            generation: play.variant.generation,
            binding: play.variant.binding,
            interface: Interface { url: String::new(), tenant: None },
            secret: play.secret.as_ref().map(|(_, secret)| secret.clone()).unwrap_or_default(),
            task: String::new(),
            message_id: String::new(),
            number: 0,
        };
        Client { play, habit, edit, scene, http: http(), card: Value::Null, printed: String::new() }
    }

    /// Plays its part.
    pub(crate) async fn run(&mut self) -> Ran {
        let done = self.act().await;
        let (code, stderr) = match done {
            Ok(()) => (Some(0), String::new()),
            Err(why) => (Some(1), why),
        };
        Ran { code, hung: false, stdout: self.printed.clone(), stderr, duration: Duration::ZERO }
    }

    async fn act(&mut self) -> Done<()> {
        self.fetch_card().await?;
        use Operation as O;
        match self.play.script.does {
            Does::Send => self.send("hello", false).await.map(drop),
            Does::Stream => {
                let streams = self.card["capabilities"]["streaming"] == true;
                self.send("hello", streams).await.map(drop)
            }
            Does::Follow => self.follow().await,
            Does::Talk => {
                self.send("hello", false).await?;
                self.send("the second", false).await.map(drop)
            }
            Does::Get => {
                self.send("hello", false).await?;
                self.on_task(O::GetTask).await
            }
            Does::Extended => self.ask(O::GetExtendedAgentCard, &json!({})).await.map(drop),
            Does::Tour => self.tour().await,
        }
    }

    async fn tour(&mut self) -> Done<()> {
        use Operation as O;
        self.send("hello", false).await?;
        self.on_task(O::GetTask).await?;
        let task = self.scene.task.clone();
        let (create, named, of_task) = match self.scene.generation {
            Generation::V1 => (
                json!({"taskId": task, "url": "https://example.com/hook"}),
                json!({"taskId": task, "id": "c"}),
                json!({"taskId": task}),
            ),
            _ => (
                json!({"taskId": task, "id": task, "pushNotificationConfig": {"url": "https://example.com/hook"}}),
                json!({"id": task, "pushNotificationConfigId": "c"}),
                json!({"id": task}),
            ),
        };
        self.ask(O::CreatePushConfig, &create).await?;
        self.ask(O::GetPushConfig, &named).await?;
        if self.scene.generation != Generation::V0_1 {
            self.ask(O::ListPushConfigs, &of_task).await?;
            self.ask(O::DeletePushConfig, &named).await?;
        }
        if self.scene.generation == Generation::V1 {
            let page =
                self.ask(O::ListTasks, &json!({"pageSize": 1, "status": "TASK_STATE_WORKING"})).await?;
            let token = page.results[0]["nextPageToken"].clone();
            self.ask(O::ListTasks, &json!({"pageSize": 1, "pageToken": token})).await?;
        }
        self.on_task(O::CancelTask).await
    }

    async fn follow(&mut self) -> Done<()> {
        match self.send("hello", true).await {
            Ok(true) => Ok(()),
            _ if self.habit == Habit::Trusts => Ok(()),
            _ => self.on_task(Operation::SubscribeToTask).await,
        }
    }

    async fn on_task(&mut self, operation: Operation) -> Done<()> {
        let params = json!({"id": self.scene.task});
        self.ask(operation, &params).await.map(drop)
    }

    /// Sends a text; says whether that was the end of it.
    async fn send(&mut self, text: &str, streams: bool) -> Done<bool> {
        let mut params = speak::send_params(self.scene.generation, text, json!({}));
        if !self.scene.task.is_empty() {
            match self.scene.generation {
                Generation::V0_1 => params["id"] = json!(self.scene.task),
                _ => params["message"]["taskId"] = json!(self.scene.task),
            }
            match self.scene.generation {
                Generation::V1 => {
                    params["configuration"] = json!({"historyLength": 3, "returnImmediately": false})
                }
                Generation::V0_3 => {}
                Generation::V0_1 => params["historyLength"] = json!(3),
            }
        } else {
            self.scene.message_id = params["message"]["messageId"].as_str().unwrap_or_default().to_owned();
        }
        let operation = if streams { Operation::SendStreamingMessage } else { Operation::SendMessage };
        let answer = self.ask(operation, &params).await?;
        let mut over = false;
        for result in &answer.results {
            let state = state_of(result).map(str::to_lowercase).unwrap_or_default();
            let ends = ["completed", "canceled", "input-required", "input_required"];
            over = ends.iter().any(|end| state.ends_with(end))
                || result.to_string().contains("judged-") && state.is_empty();
            if self.scene.task.is_empty() {
                self.scene.task = task_of(result).unwrap_or_default();
            }
        }
        if answer.broken { Err("the stream broke".to_owned()) } else { Ok(over) }
    }

    async fn fetch_card(&mut self) -> Done<()> {
        let old = (self.scene.generation == Generation::V0_1) != (self.habit == Habit::OldCard);
        let name = if old { "agent.json" } else { "agent-card.json" };
        let url = format!("{}/.well-known/{name}", self.play.url);
        let card = self.http.get(url).send().await.map_err(|error| error.to_string())?;
        self.card = card.json().await.map_err(|error| error.to_string())?;
        self.scene.interface = self.interfaces().remove(0);
        Ok(())
    }

    /// Those that fit, in order.
    fn interfaces(&self) -> Vec<Interface> {
        let Scene { generation, binding, .. } = self.scene;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let entry = |entry: &Value, transport: &str| {
            let version = entry.get("protocolVersion").is_none_or(|version| *version == generation.version());
            let fits = entry[transport] == binding.in_cards() && version;
            fits.then(|| Interface {
                url: text(&entry["url"]).unwrap_or_default(),
                tenant: text(&entry["tenant"]),
            })
        };
        let list = |name: &str| self.card[name].as_array().cloned().unwrap_or_default();
        match generation {
            Generation::V1 => {
                list("supportedInterfaces").iter().filter_map(|each| entry(each, "protocolBinding")).collect()
            }
            Generation::V0_1 => {
                vec![Interface { url: text(&self.card["url"]).unwrap_or_default(), tenant: None }]
            }
            Generation::V0_3 => {
                let mut card = self.card.clone();
                if let Some(members) = card.as_object_mut() {
                    members.remove("protocolVersion");
                }
                let mut all: Vec<Interface> = entry(&card, "preferredTransport").into_iter().collect();
                all.extend(list("additionalInterfaces").iter().filter_map(|each| entry(each, "transport")));
                all
            }
        }
    }

    /// The request of an operation, with all that belongs to it.
    pub(crate) fn request(&self, operation: Operation, params: &Value, interface: &Interface) -> Request {
        let Scene { generation, binding, .. } = self.scene;
        let mut request = request::operation(generation, binding, interface, operation, params).unwrap();
        request.headers.extend(target::extensions_header(&self.card, generation));
        match &self.play.secret {
            Some((Credential::Bearer, secret)) => {
                request.headers.push(("Authorization".to_owned(), format!("Bearer {secret}")));
            }
            Some((Credential::ApiKey, secret)) => {
                request.headers.push(("X-Judge-Key".to_owned(), secret.clone()))
            }
            None => {}
        }
        request
    }

    async fn ask(&mut self, operation: Operation, params: &Value) -> Done<Answer> {
        let mut why = "the card has no interface for me".to_owned();
        let interfaces = self.interfaces();
        let tried = if self.habit == Habit::GivesUp { 1 } else { interfaces.len() };
        for interface in interfaces.into_iter().take(tried) {
            let mut request = self.request(operation, params, &interface);
            if let Some(edit) = self.edit {
                edit(&mut request, &self.scene);
                self.scene.number += 1;
            }
            match self.exchange(&request).await {
                Ok(answer) => {
                    self.scene.interface = interface;
                    answer.results.iter().for_each(|result| texts(result, &mut self.printed));
                    return Ok(answer);
                }
                Err(trouble) => why = trouble,
            }
            if !why.contains("error sending request") {
                break;
            }
        }
        Err(why)
    }

    /// Sends it as it is; nobody looks at the answer.
    pub(crate) async fn blurt(&self, request: &Request) {
        if let Ok(response) = self.post(request).await {
            let _ = response.bytes().await;
        }
    }

    async fn post(&self, request: &Request) -> Result<reqwest::Response, reqwest::Error> {
        let method = request.method.parse().unwrap();
        let mut sent = self.http.request(method, &request.url);
        for (name, value) in &request.headers {
            sent = sent.header(name, value);
        }
        sent.body(request.body.clone().unwrap_or_default()).send().await
    }

    async fn exchange(&self, request: &Request) -> Done<Answer> {
        const TRIES: usize = 3;
        let mut request = request.clone();
        let mut tries = 0;
        loop {
            tries += 1;
            let last = tries == TRIES || self.habit == Habit::Careless;
            let response = match self.post(&request).await {
                Ok(response) => response,
                Err(_) if self.habit == Habit::Careless => {
                    return Ok(Answer { results: Vec::new(), broken: false });
                }
                Err(error) if last || error.is_connect() => return Err(error.to_string()),
                Err(_) => continue,
            };
            match response.status().as_u16() {
                429 | 503 if self.habit == Habit::Careless => {
                    return Ok(Answer { results: Vec::new(), broken: false });
                }
                429 | 503 if !last => {
                    if self.habit != Habit::Impatient {
                        tokio::time::sleep(Duration::from_secs(1)).await; // tidy: allow-sleep the agent asks for it, and judges it
                    }
                }
                307 => {
                    let there = response.headers()["location"].to_str().unwrap().to_owned();
                    let origin = |url: &str| url.split('/').nth(2).map(str::to_owned);
                    if origin(&there) != origin(&request.url) && self.habit != Habit::Carries {
                        return Err("I do not follow to strangers".to_owned());
                    }
                    request.url = there;
                    if self.habit == Habit::FollowsWithGet {
                        request.method = "GET".to_owned();
                        request.body = None;
                    }
                }
                _ => return self.read(&request, response).await,
            }
        }
    }

    async fn read(&self, request: &Request, mut response: reqwest::Response) -> Done<Answer> {
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let id = request.body.as_ref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
        let id = id.map_or(Value::Null, |body| body["id"].clone());
        if !kind.as_deref().unwrap_or_default().starts_with("text/event-stream") {
            let text = response.text().await.map_err(|error| error.to_string())?;
            let json: Value =
                serde_json::from_str(&text).map_err(|_| format!("{status}: this is no JSON"))?;
            let results = vec![self.result(json, &id, status)?];
            return Ok(Answer { results, broken: false });
        }
        let (mut reader, mut events) = (sse::Reader::default(), Vec::new());
        let broken = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => reader.feed(&chunk, &mut events),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        let mut results = Vec::new();
        for event in events {
            let json: Value = serde_json::from_str(&event.data).map_err(|error| error.to_string())?;
            results.push(self.result(json, &id, status)?);
        }
        Ok(Answer { results, broken })
    }

    fn result(&self, mut json: Value, id: &Value, status: u16) -> Done<Value> {
        if let Some(error) = json.get("error") {
            return Err(error.to_string());
        }
        if status >= 400 {
            return Err(format!("status {status}"));
        }
        if self.scene.binding == Binding::Rest {
            let empty = json.as_object().is_some_and(serde_json::Map::is_empty);
            return if empty && self.play.script.name == "empty-reply" {
                Err("empty".to_owned())
            } else {
                Ok(json)
            };
        }
        if json["id"] != *id || json.get("result").is_none() {
            return Err("this is not my answer".to_owned());
        }
        Ok(json["result"].take())
    }
}

/// One for all: making one takes longer than most scripts.
pub(crate) fn http() -> reqwest::Client {
    static HTTP: OnceLock<reqwest::Client> = OnceLock::new();
    let make = || {
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
    };
    HTTP.get_or_init(|| make().pool_max_idle_per_host(0).build().unwrap()).clone()
}

/// All texts in a result, in their order.
fn texts(value: &Value, printed: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, printed)),
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| ["text", "description"].contains(&name.as_str())) {
                    Some(text) => *printed += text,
                    None => texts(member, printed),
                }
            }
        }
        _ => {}
    }
}

fn state_of(result: &Value) -> Option<&str> {
    let places = ["/status/state", "/task/status/state", "/statusUpdate/status/state"];
    places.iter().find_map(|place| result.pointer(place)?.as_str())
}

fn task_of(result: &Value) -> Option<String> {
    let places = ["/task/id", "/statusUpdate/taskId", "/taskId", "/id"];
    places.iter().find_map(|place| result.pointer(place)?.as_str()).map(str::to_owned)
}

/// A right send, to be changed.
pub(crate) fn plain_send(client: &Client<'_>) -> Request {
    let params = speak::send_params(client.scene.generation, "hello", json!({}));
    client.request(Operation::SendMessage, &params, &client.scene.interface)
}

/// The params of a request, wherever its binding has them.
pub(crate) fn params(request: &mut Request, binding: Binding, change: impl FnOnce(&mut Value)) {
    let mut body: Value = serde_json::from_slice(request.body.as_deref().unwrap_or(b"{}")).unwrap();
    change(if binding == Binding::Rest { &mut body } else { &mut body["params"] });
    request.body = Some(body.to_string().into_bytes());
}

/// The envelope itself.
pub(crate) fn envelope(request: &mut Request, change: impl FnOnce(&mut Value)) {
    params(request, Binding::Rest, change);
}

pub(crate) fn header(request: &mut Request, name: &str, value: Option<&str>) {
    request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    request.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
}
