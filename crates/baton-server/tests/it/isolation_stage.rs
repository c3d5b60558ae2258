//! A server with several owners and keys of every kind, and answers as bytes in which only ids and times are masked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use baton_protocol::domain::security::SecurityRequirement;
use baton_protocol::domain::{AgentCard, AgentSkill, Timestamp};
use baton_server::auth::{ApiKeys, Chain, IssuedKeys, KeySet, MAX_KEYS, NewKey};
use baton_server::store::Store;
use baton_server::store::record::IssuedKey;
use baton_server::{AgentError, Asked, Mount, PushOptions, Server};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::agents::obedient;
use crate::harness::{TEST_TIMEOUT, TestServer, serve, state};
use crate::isolation_requests::{Channel, Fresh, Made, Names, Tenant};
use crate::socket::connect;
use crate::speakers;

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Caller {
    Owner,
    /// The same owner with another key.
    SecondKey,
    Other,
    /// The same owner and key with another tenant.
    OtherTenant,
    /// The same owner and key at another agent of the server.
    OtherAgent,
    Anonymous,
    Expired,
    Revoked,
    WrongScope,
    /// Text that is no key.
    Garbage,
    /// The form of an issued key, which nobody issued.
    NoSuchKey,
    /// An id that was issued, with another secret.
    WrongSecret,
}

/// Callers who are refused whatever they name, with the status.
pub(crate) const REFUSED: [(Caller, u16); 7] = [
    (Caller::Anonymous, 401),
    (Caller::Expired, 401),
    (Caller::Revoked, 401),
    (Caller::WrongScope, 403),
    (Caller::Garbage, 401),
    (Caller::NoSuchKey, 401),
    (Caller::WrongSecret, 401),
];

pub(crate) struct Stage {
    pub(crate) server: TestServer,
    keys: Vec<(Caller, String)>,
    next: AtomicU32,
}

const SCOPE: &str = "tasks";

/// What the owner's webhook has and nobody else may see.
pub(crate) const WEBHOOK_TOKEN: &str = "token-of-ann";
pub(crate) const WEBHOOK_PATH: &str = "path-of-ann";

async fn talker(asked: Asked) -> Result<String, AgentError> {
    Ok(format!("you said {}", asked.text()))
}

fn agent(id: &str, path: &str) -> Mount {
    let mut card = AgentCard::new(id, "An agent for tests", "1.0.0");
    let schemes = vec![("apiKey".to_owned(), vec![SCOPE.to_owned()])];
    card.security_requirements = vec![SecurityRequirement { schemes }];
    Mount::new(id, card)
        .task_skill(AgentSkill::new("test", "test", "test"), obedient)
        .message_skill(AgentSkill::new("talk", "talk", "talk"), talker)
        .default_skill("test")
        .path(path)
        .extended_card_for(|caller, public| {
            let mut card = public.clone();
            card.description = format!("for {}", caller.owner());
            card
        })
}

impl Stage {
    pub(crate) async fn new(store: Arc<dyn Store>) -> Self {
        let set = Arc::new(KeySet::new().unwrap());
        let issued = IssuedKeys::open(Arc::clone(&store), Arc::clone(&set), MAX_KEYS).await.unwrap();
        let mut keys = Vec::new();
        for (caller, owner, scope) in [
            (Caller::Owner, "ann", SCOPE),
            (Caller::SecondKey, "ann", SCOPE),
            (Caller::Other, "bob", SCOPE),
            (Caller::Expired, "ann", SCOPE),
            (Caller::Revoked, "ann", SCOPE),
            (Caller::WrongScope, "ann", "another"),
        ] {
            let (name, owner) = (format!("{caller:?}"), owner.to_owned());
            let new = NewKey { name, owner, scopes: vec![scope.to_owned()], expires_at: None };
            let (key, text) = issued.issue(new).await.unwrap();
            if caller == Caller::Expired {
                let expired = IssuedKey { expires_at: Some(Timestamp::from_millis(1)), ..key };
                store.put_credential(expired.to_stored()).await.unwrap();
            }
            keys.push((caller, text.expose_secret().to_owned()));
        }
        issued.revoke("Revoked").await.unwrap();
        issued.refresh().await.unwrap();
        let own = keys[0].1.clone();
        keys.push((Caller::OtherTenant, own.clone()));
        keys.push((Caller::OtherAgent, own.clone()));
        keys.push((Caller::WrongSecret, format!("{}{}", &own[..12], "x".repeat(43))));
        keys.push((Caller::NoSuchKey, format!("bk_nosuchid_{}", "x".repeat(43))));
        keys.push((Caller::Garbage, "garbage".to_owned()));

        let chain = Chain::new().scheme("apiKey", ApiKeys::header("X-API-Key", set).unwrap());
        let host = Server::host().mount(agent("first", "/")).mount(agent("second", "/second"));
        let server = serve(host.auth(chain).store(store).push(PushOptions::default())).await;
        Stage { server, keys, next: AtomicU32::new(1) }
    }

    /// `None` for the anonymous.
    pub(crate) fn key(&self, caller: Caller) -> Option<&str> {
        self.keys.iter().find(|(known, _)| *known == caller).map(|(_, key)| key.as_str())
    }

    /// A name that was not used before; all have the same length.
    pub(crate) fn fresh_name(&self) -> String {
        format!("fresh-{:08}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A call by the owner in 1.0 that must succeed.
    pub(crate) async fn as_owner(&self, channel: Channel, method: &str, mut params: Value) -> Value {
        if let Tenant::Member(name) = channel.plain().tenant {
            params["tenant"] = json!(name);
        }
        let key = self.key(Caller::Owner).unwrap();
        self.server.call_with(method, params, &[("x-api-key", key)]).await.result().clone()
    }

    /// The owner's task gets a webhook with the id that all requests name. Nothing is sent to it: its task waits.
    pub(crate) async fn prepare_webhook(&self, channel: Channel, task: &str) {
        let url = format!("https://hooks.example/{WEBHOOK_PATH}");
        let webhook = json!({"taskId": task, "id": "one", "url": url, "token": WEBHOOK_TOKEN});
        self.as_owner(channel, "CreateTaskPushNotificationConfig", webhook).await;
    }

    /// A task that no row names.
    pub(crate) async fn prepare_filler(&self, channel: Channel) {
        let message =
            json!({"messageId": self.fresh_name(), "role": "ROLE_USER", "parts": [{"text": "filler"}]});
        self.as_owner(channel, "SendMessage", json!({"message": message})).await;
    }

    /// Makes a task of the owner (or an answer without a task), in the channel's tenant.
    pub(crate) async fn prepare(&self, channel: Channel, made: Made) -> (Names, Fresh) {
        let message = self.fresh_name();
        let word = match made {
            Made::Asking | Made::Legacy => "ask",
            Made::Working => "hold",
            Made::Completed | Made::Replied => "echo",
        };
        let text = format!("{word} of-ann-{}", message.replace("fresh", "text"));
        let (task, context) = match made {
            Made::Legacy => self.prepare_legacy(&text).await,
            _ => {
                let mut params = json!({"message":
                    {"messageId": message, "role": "ROLE_USER", "parts": [{"text": text}]}});
                params["configuration"] = json!({"returnImmediately": made == Made::Working});
                if made == Made::Replied {
                    params["message"]["metadata"] = json!({"skillId": "talk"});
                }
                let sent = self.as_owner(channel, "SendMessage", params).await;
                let (task, context) = match made {
                    Made::Replied => (json!(self.fresh_name()), &sent["message"]["contextId"]),
                    _ => (sent["task"]["id"].clone(), &sent["task"]["contextId"]),
                };
                (text_of(&task), text_of(context))
            }
        };
        if matches!(made, Made::Working | Made::Legacy) {
            let wanted = if made == Made::Working { "WORKING" } else { "INPUT_REQUIRED" };
            while state(&self.as_owner(channel, "GetTask", json!({"id": task})).await) != wanted {}
        }
        let page = self.as_owner(channel, "ListTasks", json!({"pageSize": 1})).await;
        let cursor = text_of(&page["nextPageToken"]);
        let names = Names { task, context, message, cursor };
        (names, Fresh { text_again: text, id: self.fresh_name(), wait: true })
    }

    async fn prepare_legacy(&self, text: &str) -> (String, String) {
        let key = ("x-api-key", self.key(Caller::Owner).unwrap());
        let mut params = speakers::task(&self.fresh_name(), text);
        params["sessionId"] = json!(self.fresh_name());
        let answer = speakers::rpc(&self.server, &[key], "tasks/send", params).await;
        let task = answer.result();
        (text_of(&task["id"]), text_of(&task["sessionId"]))
    }

    /// Sends these bytes and reads the whole answer; a stream up to its end.
    pub(crate) async fn whole(&self, request: &[u8]) -> RawAnswer {
        let mut stream = connect(&self.server).await;
        stream.write_all(request).await.unwrap();
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await;
        read.unwrap_or_else(|_| panic!("no end after {}", String::from_utf8_lossy(&bytes))).unwrap();
        RawAnswer::of(&bytes)
    }

    /// The same up to the end of its head, because the stream of a task may stay open.
    pub(crate) async fn head(&self, request: &[u8]) -> RawAnswer {
        let mut stream = connect(&self.server).await;
        stream.write_all(request).await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let byte = tokio::time::timeout(TEST_TIMEOUT, stream.read_u8()).await.expect("a head");
            bytes.push(byte.unwrap());
        }
        RawAnswer::of(&bytes)
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// An answer as it was received, apart from the chunks of its body.
#[derive(Debug, PartialEq)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl RawAnswer {
    fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).expect("answers are text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { joined(body) } else { body.to_owned() };
        // These two differ between any two answers.
        let is_its_own = |line: &&str| {
            let line = line.to_ascii_lowercase();
            line.starts_with("date:") || line.starts_with("x-request-id:")
        };
        let head = head.lines().filter(|line| !is_its_own(line)).collect::<Vec<_>>().join("\n");
        RawAnswer { status, head, body }
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.head.lines().any(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))
    }

    /// With `<name>` for what the request named, and `<id>` and `<time>` for what the server made.
    pub(crate) fn masked(&self, names: &[&str]) -> Self {
        let mut body = self.body.clone();
        for name in names {
            body = body.replace(name, "<name>");
        }
        let body = mask(&mask(&body, UUID, "<id>"), TIME, "<time>");
        RawAnswer { status: self.status, head: self.head.clone(), body }
    }
}

/// The chunks of a body in one text.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a chunk's length");
        body.push_str(&rest[..length]);
        chunks = rest[length..].trim_start_matches("\r\n");
    }
    body
}

/// `h` stands for a hexadecimal digit, `d` for a decimal one.
const UUID: &str = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
const TIME: &str = "dddd-dd-ddTdd:dd:dd";

fn mask(text: &str, pattern: &str, mark: &str) -> String {
    let is_here = |at: usize| {
        let window = text.as_bytes().get(at..at + pattern.len());
        window.is_some_and(|window| {
            window.iter().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
                b'h' => byte.is_ascii_hexdigit(),
                b'd' => byte.is_ascii_digit(),
                other => *byte == other,
            })
        })
    };
    let (mut masked, mut at) = (String::new(), 0);
    while let Some(char) = text[at..].chars().next() {
        if is_here(at) {
            masked.push_str(mark);
            at += pattern.len();
            // A fraction of a second, whatever its digits.
            if pattern == TIME && text[at..].starts_with('.') {
                at += 1 + text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            }
        } else {
            masked.push(char);
            at += char.len_utf8();
        }
    }
    masked
}

#[test]
fn ids_and_times_are_masked_and_nothing_else() {
    let text = "id 0192f3c4-aaaa-7bbb-8ccc-0123456789ab at 2026-11-16T21:58:39.123Z, 12-34";
    assert_eq!(mask(&mask(text, UUID, "<id>"), TIME, "<time>"), "id <id> at <time>Z, 12-34");
    assert_eq!(joined("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde");
}
