//! S-16: whatever another owner has is answered like what nobody has, byte for byte. The cells are generated: operations,
//! bindings and generations, callers, and what the call names.

use std::sync::Arc;

use baton_protocol::operation::{FACTS, Operation};
use baton_server::store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::asking::Interface;
use crate::fixtures::Backend;
use crate::isolation_requests::{Asked, CHANNELS, Channel, Fresh, Made, Named, Names, Tenant, asked, rows};
use crate::isolation_stage::{Caller, REFUSED, RawAnswer, Stage, WEBHOOK_PATH, WEBHOOK_TOKEN};

#[tokio::test]
async fn s16_in_1_0_over_json_rpc_what_another_owner_has_is_answered_like_what_nobody_has() {
    check_channels(&CHANNELS[..2], 700).await;
}

#[tokio::test]
async fn s16_in_1_0_over_http_json_what_another_owner_has_is_answered_like_what_nobody_has() {
    check_channels(&CHANNELS[2..4], 700).await;
}

#[tokio::test]
async fn s16_in_0_3_what_another_owner_has_is_answered_like_what_nobody_has() {
    check_channels(&CHANNELS[4..7], 950).await;
}

#[tokio::test]
async fn s16_in_0_1_what_another_owner_has_is_answered_like_what_nobody_has() {
    check_channels(&CHANNELS[7..], 360).await;
}

/// A store does not know the binding, and whoever is refused does not get to it.
#[tokio::test]
async fn s16_in_a_database_what_another_owner_has_is_answered_like_what_nobody_has() {
    let [_, database] = Backend::each();
    let stage = Stage::new(database.open().await).await;
    let mut cells = 0;
    for channel in [CHANNELS[0], CHANNELS[7]] {
        cells += Matrix { stage: &stage, channel, refused: &[] }.check().await;
    }
    say(&format!("{cells} cells"));
    assert!(cells >= 310, "only {cells} cells");
    stage.server.stop().await;
}

async fn check_channels(channels: &[Channel], least: usize) {
    let stage = Stage::new(Arc::new(MemoryStore::new())).await;
    let mut cells = 0;
    for channel in channels {
        cells += Matrix { stage: &stage, channel: *channel, refused: &REFUSED }.check().await;
    }
    say(&format!("{cells} cells"));
    assert!(cells >= least, "only {cells} cells");
    stage.server.stop().await;
}

/// All rows of a channel.
struct Matrix<'a> {
    stage: &'a Stage,
    channel: Channel,
    /// Callers who are refused whatever they name, with the status.
    refused: &'a [(Caller, u16)],
}

impl Matrix<'_> {
    /// How many cells were compared.
    async fn check(&self) -> usize {
        // Two tasks, so that every later listing has a second page.
        for _ in 0..2 {
            self.stage.prepare_filler(self.channel).await;
        }
        let mut cells = 0;
        for facts in &FACTS {
            for named in rows(facts.operation) {
                let Matrix { stage, channel, refused } = *self;
                cells += Row { stage, channel, refused, operation: facts.operation, named }.check().await;
            }
        }
        cells
    }
}

/// The id of a webhook says nothing without its task.
#[tokio::test]
async fn s16_a_webhook_of_another_owner_cannot_be_named_at_ones_own_task() {
    for backend in Backend::each() {
        let stage = Stage::new(backend.open().await).await;
        let channel = CHANNELS[0];
        let (names, _) = stage.prepare(channel, Made::Asking).await;
        stage.prepare_webhook(channel, &names.task).await;
        let key = [("x-api-key", stage.key(Caller::Other).unwrap())];
        let sent = json!({"message":
            {"messageId": stage.fresh_name(), "role": "ROLE_USER", "parts": [{"text": "ask"}]}});
        let own = stage.server.call_with("SendMessage", sent, &key).await.result()["task"]["id"].clone();
        let call = async |operation: &str, id: &str| {
            let params = json!({"taskId": own, "id": id});
            stage.server.call_with(&format!("{operation}TaskPushNotificationConfig"), params, &key).await
        };
        // Whether somebody else has a webhook of this id makes no difference.
        for operation in ["Get", "Delete"] {
            let [same, other] = [call(operation, "one").await, call(operation, "two").await];
            assert_eq!(same.body.get("error"), other.body.get("error"), "{operation}");
            assert!(!same.body.to_string().contains(WEBHOOK_TOKEN), "{}", same.body);
        }
        let listed = json!({"taskId": own});
        let listed = stage.server.call_with("ListTaskPushNotificationConfigs", listed, &key).await;
        assert!(listed.result()["configs"].as_array().is_none_or(Vec::is_empty), "{}", listed.body);
        let owners = json!({"taskId": names.task, "id": "one"});
        let owners = stage.as_owner(channel, "GetTaskPushNotificationConfig", owners).await;
        assert_eq!(owners["token"], WEBHOOK_TOKEN);
        stage.server.stop().await;
    }
}

/// Every row can be asked somewhere; an operation without rows is one that nobody thought of.
#[test]
fn s16_every_operation_has_rows_in_the_isolation_matrix() {
    let nobodys = String::from("nobodys-");
    let names =
        Names { task: nobodys.clone(), context: nobodys.clone(), message: nobodys.clone(), cursor: nobodys };
    let fresh = Fresh { text_again: String::new(), id: "fresh".to_owned(), wait: true };
    for facts in &FACTS {
        let rows = rows(facts.operation);
        assert!(!rows.is_empty(), "{facts:?}");
        for named in rows {
            let channels = CHANNELS.iter().filter(|channel| {
                let asked = asked(facts.operation, channel.interface, named, &names, &fresh);
                asked.is_some_and(|asked| channel.written("", None, &asked).is_some())
            });
            let expected = if facts.v0_1.is_some() { 5 } else { 4 };
            assert!(channels.count() >= expected, "{facts:?} {named:?}");
        }
    }
}

/// One operation on one channel that names one thing of the owner's; the callers are its cells.
struct Row<'a> {
    stage: &'a Stage,
    channel: Channel,
    refused: &'a [(Caller, u16)],
    operation: Operation,
    named: Named,
}

impl Row<'_> {
    /// How many cells were compared.
    async fn check(&self) -> usize {
        let made = self.named.made();
        // A task of 0.1 has no tenant.
        if made == Made::Legacy && self.channel.tenant != Tenant::None {
            return 0;
        }
        let (names, fresh) = self.stage.prepare(self.channel, made).await;
        if self.request(self.channel, Caller::Owner, &names, &fresh).is_none() {
            return 0;
        }
        if self.named == Named::Config {
            self.stage.prepare_webhook(self.channel, &names.task).await;
        }
        let before = self.owners_view(&names).await;
        let mut cells = 0;
        for caller in [Caller::Other, Caller::OtherTenant, Caller::OtherAgent] {
            cells += usize::from(self.is_answered_like_unknown(caller, &names, &fresh).await);
        }
        // Who is refused is refused before anything is looked at: one state of the task is enough.
        if made == Made::Asking && !self.refused.is_empty() {
            let stored = self.stage.server.task_count().await;
            for (caller, status) in self.refused {
                self.is_refused(*caller, *status, &names, &fresh).await;
                cells += 1;
            }
            assert_eq!(self.stage.server.task_count().await, stored, "{self:?}: stored for who was refused");
        }
        assert_eq!(self.owners_view(&names).await, before, "{self:?}: another caller changed it");
        cells += self.is_there_for_its_owner(&names, &fresh).await;
        if made == Made::Working {
            self.stage.as_owner(self.channel, "CancelTask", json!({"id": names.task})).await;
        }
        cells
    }

    fn request(&self, channel: Channel, caller: Caller, names: &Names, fresh: &Fresh) -> Option<Vec<u8>> {
        let call: Asked = asked(self.operation, channel.interface, self.named, names, fresh)?;
        let agent = if caller == Caller::OtherAgent { "/second" } else { "" };
        channel.written(agent, self.stage.key(caller), &call)
    }

    /// The owner's context, task and webhooks, as the owner sees them.
    async fn owners_view(&self, names: &Names) -> [Value; 3] {
        let listed = json!({"contextId": names.context});
        let listed = self.stage.as_owner(self.channel, "ListTasks", listed).await;
        if self.named.made() == Made::Replied {
            return [listed, Value::Null, Value::Null];
        }
        let webhooks = json!({"taskId": names.task});
        let webhooks = self.stage.as_owner(self.channel, "ListTaskPushNotificationConfigs", webhooks).await;
        [listed, self.stage.as_owner(self.channel, "GetTask", json!({"id": names.task})).await, webhooks]
    }

    /// The answers to the same request with the owner's names and with unknown ones. What the caller sends in addition,
    /// such as a new message's id, differs too: the second request must not be a repetition of the first.
    async fn both(&self, channel: Channel, caller: Caller, names: &Names, fresh: &Fresh) -> [Exchange; 2] {
        let unknown = names.unknown();
        [
            self.exchange(channel, caller, names, fresh).await,
            self.exchange(channel, caller, &unknown, fresh).await,
        ]
    }

    async fn exchange(&self, channel: Channel, caller: Caller, names: &Names, fresh: &Fresh) -> Exchange {
        let fresh = Fresh { id: self.stage.fresh_name(), ..fresh.clone() };
        let request = self.request(channel, caller, names, &fresh).expect("written before");
        let is_owner = matches!(caller, Caller::Owner | Caller::SecondKey);
        let answer = if is_owner && self.owners_stream_stays_open() {
            self.stage.head(&request).await
        } else {
            self.stage.whole(&request).await
        };
        let masked = answer.masked(&[&names.all()[..], &[&fresh.id]].concat());
        Exchange { request, masked, body: answer.body }
    }

    fn owners_stream_stays_open(&self) -> bool {
        self.operation == Operation::SubscribeToTask
            || self.operation == Operation::SendStreamingMessage && self.named.made() == Made::Working
    }

    async fn is_answered_like_unknown(&self, caller: Caller, names: &Names, fresh: &Fresh) -> bool {
        let channel = match caller {
            Caller::OtherTenant => self.channel.of_another_tenant(),
            _ => Some(self.channel),
        };
        let Some(channel) = channel else { return false };
        let [foreign, unknown] = self.both(channel, caller, names, fresh).await;
        assert_eq!(foreign.masked, unknown.masked, "{caller:?} {self:?}");
        // The mask of ids could hide one of the owner's that the caller did not name.
        let (said, body) = (String::from_utf8_lossy(&foreign.request), &foreign.body);
        let secrets = [&names.task, &names.context, &names.message, &fresh.text_again];
        let secrets = secrets.into_iter().map(String::as_str).chain([WEBHOOK_TOKEN, WEBHOOK_PATH]);
        for secret in secrets.filter(|secret| !said.contains(secret)) {
            assert!(!body.contains(secret), "{caller:?} {self:?}: {body}");
        }
        let is_ann = caller != Caller::Other;
        assert!(is_ann || !body.contains("for ann"), "{self:?}: {body}");
        true
    }

    async fn is_refused(&self, caller: Caller, status: u16, names: &Names, fresh: &Fresh) {
        let [foreign, unknown] = self.both(self.channel, caller, names, fresh).await;
        let foreign = foreign.masked;
        assert_eq!(foreign.status, status, "{caller:?} {self:?}: {}", foreign.body);
        assert_eq!(foreign.has_header("www-authenticate"), status == 401, "{caller:?} {self:?}");
        assert_eq!(foreign, unknown.masked, "{caller:?} {self:?}");
    }

    /// The control: without it, a row whose request is wrong in itself would show nothing.
    async fn is_there_for_its_owner(&self, names: &Names, fresh: &Fresh) -> usize {
        // A message to a task that works for ever is answered at once, or not at all.
        let fresh = Fresh { wait: self.named.made() != Made::Working, ..fresh.clone() };
        let is_send = matches!(self.operation, Operation::SendMessage | Operation::SendStreamingMessage);
        let is_same = match self.named {
            // A card has no id.
            Named::Nothing => Some(true),
            // A message starts a task in an unknown context too, and in 0.1 a task with an unknown id. One with another
            // text is another message, whatever its id.
            Named::Context if is_send => None,
            Named::ChangedMessage(_) => None,
            _ if is_send && self.channel.interface == Interface::V01 => None,
            _ => Some(false),
        };
        let Some(is_same) = is_same else { return 0 };
        let callers: &[Caller] = if is_send { &[Caller::Owner] } else { &[Caller::SecondKey, Caller::Owner] };
        for caller in callers {
            let [own, unknown] = self.both(self.channel, *caller, names, &fresh).await.map(|it| it.masked);
            assert_eq!(own == unknown, is_same, "{caller:?} {self:?}: {own:?} and {unknown:?}");
        }
        callers.len()
    }
}

/// A request and its answer.
struct Exchange {
    request: Vec<u8>,
    masked: RawAnswer,
    /// The body without a mask.
    body: String,
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {:?} on {:?}", self.operation, self.named, self.channel)
    }
}

#[allow(clippy::print_stdout, reason = "the number of cells is worth reading")]
fn say(text: &str) {
    println!("{text}");
}
