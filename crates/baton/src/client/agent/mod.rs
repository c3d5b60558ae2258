//! The agent that is called: the client library, set up by the settings, and its results as JSON of protocol 1.0 with a view
//! of each for the text form.

mod connect;
mod encode;
mod failure;
mod list;

use std::sync::Arc;

use baton_client::{Builder, CardKeys, CardTrust, Client, Discovered, EventStream, Origin, Reference};
use baton_protocol::Generation;
use baton_protocol::domain::{AgentCard, PushConfig, PushConfigId, TaskId};
use baton_protocol::operation::{Call as Operation, CancelTask, GetTask, HistoryLength, SendMessage};
use baton_protocol::wire::{StreamItem, card, v1};

use self::connect::{
    builder, check_credentials, check_for_card, credentials_hint, preference, with_credentials, with_token,
    withheld,
};
pub(crate) use self::connect::{identity, plain_client, proxies};
pub(crate) use self::encode::event_json;
use self::encode::{item_json, read_json, received_json, translated, written};
pub(crate) use self::failure::failure;
pub(crate) use self::list::Page;
use super::error::{CallError, Code, PROGRAM};
use super::settings::Settings;
use super::wait::Read;
use super::{Call, debug};
use super::{catalog, tokens};
use crate::output;
use crate::output::view::Event;

/// An agent whose card is known and whose interface is chosen.
pub(crate) struct Agent {
    client: Client,
}

/// An event of a stream, or the reply to a send.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) json: String,
    pub(crate) event: Event,
}

impl Received {
    pub(crate) fn task_id(&self) -> Option<&str> {
        match &self.event {
            Event::Task(task) => Some(&task.id),
            Event::Message(message) => message.task_id.as_deref(),
            Event::StatusUpdate(update) => Some(&update.task_id),
            Event::ArtifactUpdate(update) => Some(&update.task_id),
        }
    }
}

/// A card that was found.
pub(crate) struct Found {
    pub(crate) card: AgentCard,
    /// As 1.0 spells it.
    pub(crate) json: String,
    /// As it was received.
    pub(crate) received: String,
    pub(crate) signature: CardTrust,
}

/// Finds the agent's card, without credentials: nobody knows yet which of them the agent takes.
pub(crate) async fn discover(call: &Call, keys: &CardKeys) -> Result<Found, CallError> {
    let (builder, discovered) = find_with(call).await?;
    call.settings.insecure_warning(false).into_iter().for_each(output::warn);
    Ok(judged(&builder, discovered, keys).await)
}

/// A card with the state of its signature.
async fn judged(builder: &Builder, discovered: Discovered, keys: &CardKeys) -> Found {
    let signature = builder.verify_card(&discovered, keys).await;
    let json = match discovered.generation {
        Generation::V1 => discovered.json.clone(),
        Generation::V0_3 | Generation::V0_1 => written(|out| v1::write_card(out, &discovered.card)),
    };
    let Discovered { card, json: received, .. } = discovered;
    Found { card, json, received, signature }
}

pub(crate) async fn find(call: &Call) -> Result<Discovered, CallError> {
    find_with(call).await.map(|(_, discovered)| discovered)
}

/// The card that this reference names.
pub(crate) async fn find_at(call: &Call, agent: &str) -> Result<Discovered, CallError> {
    find_named(call, agent).await.map(|(_, discovered)| discovered)
}

/// The text at an address.
pub(crate) async fn text_at(call: &Call, url: &str) -> Result<String, CallError> {
    builder(&call.settings, &call.secrets)?.read(url).await.map_err(|error| failure(&error))
}

/// The card, and what it was found with: later requests can use the same connection.
async fn find_with(call: &Call) -> Result<(Builder, Discovered), CallError> {
    let Some(agent) = &call.settings.agent_card else {
        let error = CallError::usage("no agent is named: give -a, or put its http(s) address first");
        return Err(error.with_hint(format!("{PROGRAM} send http://127.0.0.1:3000 \"hello\"")));
    };
    find_named(call, agent).await
}

async fn find_named(call: &Call, agent: &str) -> Result<(Builder, Discovered), CallError> {
    let settings = &call.settings;
    let builder = builder(settings, &call.secrets)?;
    let named = match catalog::split(agent) {
        None => agent.to_owned(),
        Some((place, entry)) => {
            let catalog: Reference = place.parse().map_err(|error| failure(&error))?;
            let text = builder.read(place).await.map_err(|error| failure(&error))?;
            let address = catalog::find(&text, &catalog, entry)?;
            let own = catalog::address(&catalog).and_then(|own| Origin::parse(own).ok());
            check_catalog(settings, own.as_ref(), &address)?;
            address
        }
    };
    let discovered = builder.discover(&named).await.map_err(|error| failure(&error))?;
    Ok((builder, discovered))
}

/// The user has named the catalog, and nobody else decides where the user's credentials go.
fn check_catalog(settings: &Settings, own: Option<&Origin>, address: &str) -> Result<(), CallError> {
    let may_have = |to: Origin| own.into_iter().chain(&settings.trusted_origins).any(|from| from.covers(&to));
    if !settings.sends_private() || Origin::parse(address).is_ok_and(may_have) {
        return Ok(());
    }
    let message =
        format!("the catalog leads to {address}: credentials are not sent to a host that it chooses");
    let hint = format!("name that card itself: -a {}", output::task::shell_word(address));
    Err(CallError::usage(message).with_hint(hint))
}

/// Finds the card, and sets the library up for it: credentials, extensions, the interface that is preferred.
pub(crate) async fn prepare(call: &Call) -> Result<(Builder, Discovered), CallError> {
    let settings = &call.settings;
    let (builder, discovered) = find_with(call).await?;
    check_credentials(settings, &discovered.card)?;
    let mut builder = with_credentials(builder, settings);
    let stored = match (&settings.own_folder, identity(&discovered)) {
        (Some(folder), Some(agent)) if !settings.has_credentials() => tokens::load(folder, &agent),
        _ => None,
    };
    if let (Some(folder), Some(stored)) = (&settings.own_folder, &stored) {
        builder = with_token(builder, call, folder, stored);
    }
    let sends_private = settings.sends_private() || stored.is_some();
    settings.insecure_warning(sends_private).into_iter().for_each(output::warn);
    for extension in discovered.card.capabilities.extensions.iter().filter(|extension| extension.required) {
        builder = builder.extension(&extension.uri);
    }
    let builder = builder.prefer(preference(settings, &discovered.card)?);
    Ok((builder, discovered))
}

/// Chooses the interface, and tells what the user may not expect of it.
pub(crate) fn connected(call: &Call, builder: &Builder, discovered: Discovered) -> Result<Client, CallError> {
    let client = builder.with_card(discovered).map_err(|error| failure(&error))?;
    if call.settings.debug {
        let interface = client.interface();
        let version = interface.version().version();
        debug::note(&format!("interface {} {version} {}", interface.binding(), interface.shown_url()));
    }
    if client.withholds_credentials() {
        output::warn(&withheld(&client));
    }
    Ok(client)
}

impl Agent {
    pub(crate) async fn connect(call: &Call) -> Result<Self, CallError> {
        let (builder, discovered) = prepare(call).await?;
        let client = connected(call, &builder, discovered)?;
        Ok(Agent { client })
    }

    pub(crate) fn card(&self) -> Arc<AgentCard> {
        self.client.card()
    }

    pub(crate) async fn send(&self, message: SendMessage) -> Result<Received, CallError> {
        received_json(self.raw(Operation::SendMessage(message)).await?)
    }

    /// Whether the agent speaks 1.0, so that its results can be shown as they came.
    fn is_current(&self) -> bool {
        self.client.interface().version() == Generation::V1
    }

    async fn as_received(&self, call: &Operation) -> Result<String, CallError> {
        self.client.call_raw(call).await.map_err(|error| self.failure(&error))
    }

    /// The result of a call: as it came from an agent of 1.0, else in the words of 1.0.
    async fn raw(&self, call: Operation) -> Result<String, CallError> {
        let json = self.as_received(&call).await?;
        match self.is_current() {
            true => Ok(json),
            false => translated(self.client.interface().dialect(), call.operation(), &json),
        }
    }

    /// Sends a message and delivers its events. An agent that does not stream is asked again and again.
    pub(crate) async fn stream(&self, message: SendMessage) -> Result<Events, CallError> {
        let stream = self.client.stream(message).await.map_err(|error| self.failure(&error))?;
        Ok(Events { stream })
    }

    pub(crate) async fn subscribe(&self, id: &TaskId) -> Result<Events, CallError> {
        self.needs(self.card().capabilities.streaming, "streaming", "UnsupportedOperationError").map_err(
            |error| error.with_command("task get", format!("--wait {}", output::task::id_word(id.as_str()))),
        )?;
        let stream = self.client.subscribe(id).await.map_err(|error| self.failure(&error))?;
        Ok(Events { stream })
    }

    pub(crate) async fn get(&self, id: &TaskId, history_length: HistoryLength) -> Result<Read, CallError> {
        read_json(self.raw(Operation::GetTask(GetTask { id: id.clone(), history_length })).await?)
    }

    pub(crate) async fn cancel(&self, cancel: CancelTask) -> Result<Read, CallError> {
        read_json(self.raw(Operation::CancelTask(cancel)).await?)
    }

    pub(crate) async fn create_push_config(&self, config: PushConfig) -> Result<String, CallError> {
        self.needs_push()?;
        self.raw(Operation::CreatePushConfig(config)).await
    }

    pub(crate) async fn push_config(&self, task_id: &TaskId, id: &PushConfigId) -> Result<String, CallError> {
        self.needs_push()?;
        self.raw(Operation::GetPushConfig { task_id: task_id.clone(), id: Some(id.clone()) }).await
    }

    pub(crate) async fn delete_push_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<(), CallError> {
        self.needs_push()?;
        self.client.delete_push_config(task_id, id).await.map_err(|error| self.failure(&error))
    }

    /// The card that authenticated callers get.
    pub(crate) async fn extended_card(&self, call: &Call, keys: &CardKeys) -> Result<Found, CallError> {
        let declared = self.card().capabilities.extended_agent_card;
        self.needs(declared, "extended card", "ExtendedAgentCardNotConfiguredError")?;
        check_for_card(&call.settings, &self.card())?;
        let json = self.as_received(&Operation::GetExtendedCard).await?;
        let (generation, card) = card::read_any(&json).map_err(|error| {
            CallError::new(Code::CardInvalid, format!("the extended card cannot be read: {error}"))
        })?;
        let mut extended = self.client.discovered().clone();
        (extended.card, extended.generation, extended.json) = (card, generation, json);
        Ok(judged(&builder(&call.settings, &call.secrets)?, extended, keys).await)
    }

    /// Fails if the card does not offer webhooks.
    pub(crate) fn needs_push(&self) -> Result<(), CallError> {
        let declared = self.card().capabilities.push_notifications;
        self.needs(declared, "push notifications", "PushNotificationNotSupportedError")
    }

    /// Operations that the card does not offer are not tried.
    fn needs(&self, declared: Option<bool>, what: &str, name: &str) -> Result<(), CallError> {
        match declared {
            Some(true) => Ok(()),
            _ => {
                let error = CallError::new(
                    Code::Protocol(name.to_owned()),
                    format!("the agent's card does not offer {what}"),
                );
                Err(error.with_command("card get", ""))
            }
        }
    }

    fn failure(&self, error: &baton_client::Error) -> CallError {
        refusal(&self.card(), error)
    }
}

/// A failed call to an agent with this card, which may tell what was missing.
pub(crate) fn refusal(card: &AgentCard, error: &baton_client::Error) -> CallError {
    let failed = failure(error);
    match failed.code {
        Code::CredentialsMissing => failed.or_hint(|| credentials_hint(card)),
        _ => failed,
    }
}

/// The events of a task.
pub(crate) struct Events {
    stream: EventStream,
}

impl Events {
    /// The next event; `None` after the last.
    pub(crate) async fn next(&mut self, agent: &Agent) -> Option<Result<Received, CallError>> {
        let next = self.stream.next().await?;
        Some(next.map_err(|error| agent.failure(&error)).and_then(|event| {
            received_json(match agent.is_current() {
                true => event.json,
                false => {
                    let version = agent.client.interface().version();
                    event_json(version, &event.item, event.unknown_state.as_deref())
                }
            })
        }))
    }

    /// Ends the stream if the task waits for something.
    pub(crate) fn end_if_waiting(&mut self) {
        self.stream.end_if_waiting();
    }

    /// The task that the events so far add up to.
    pub(crate) fn task(&self) -> Option<Received> {
        received_json(item_json(&StreamItem::Task(self.stream.task()?.clone()))).ok()
    }
}
