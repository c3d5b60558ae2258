//! The agent that is called: the client library, set up by the settings, and its results as JSON of protocol 1.0 with a view
//! of each for the text form.

mod connect;
mod encode;
mod failure;

use std::cell::RefCell;

use baton_client::{Answered, CardKeys, CardTrust, Client, Discovered, EventStream, Origin};
use baton_protocol::Generation;
use baton_protocol::domain::{AgentCard, PushConfig, PushConfigId, Task, TaskId, TaskPage};
use baton_protocol::operation::{
    Call as Operation, CancelTask, GetTask, HistoryLength, ListTasks, SendMessage,
};
use baton_protocol::wire::{StreamItem, v1};

use self::connect::{builder, check_credentials, credentials_hint, preference, with_credentials, with_token};
pub(crate) use self::connect::{identity, plain_client};
pub(crate) use self::encode::{page_json, push_config_json, push_configs_json, read};
use self::encode::{read_json, received, received_json, written};
pub(crate) use self::failure::failure;
use super::error::{CallError, Code, PROGRAM};
use super::wait::Read;
use super::{Call, debug};
use super::{catalog, tokens};
use crate::output;
use crate::output::view::Event;

/// An agent whose card is known and whose interface is chosen.
pub(crate) struct Agent {
    client: Client,
    /// The task so far, from the events of the last stream.
    folded: RefCell<Option<Task>>,
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
    let discovered = find(call).await?;
    let signature = builder(&call.settings)?.verify_card(&discovered, keys).await;
    let json = match discovered.generation {
        Generation::V1 => discovered.json.clone(),
        Generation::V0_3 | Generation::V0_1 => written(|out| v1::write_card(out, &discovered.card)),
    };
    let Discovered { card, json: received, .. } = discovered;
    Ok(Found { card, json, received, signature })
}

pub(crate) async fn find(call: &Call) -> Result<Discovered, CallError> {
    let settings = &call.settings;
    let Some(agent) = &settings.agent_card else {
        let error = CallError::usage("no agent is named: give -a, or an http(s) address behind the command");
        return Err(error.with_hint(format!("{PROGRAM} send http://127.0.0.1:3000 \"hello\"")));
    };
    let builder = builder(settings)?;
    let named = match catalog::split(agent) {
        None => agent.clone(),
        Some((place, entry)) => {
            let text = builder.read(place).await.map_err(|error| failure(&error))?;
            let address = catalog::find(&text, place, entry)?;
            // The user has named the catalog, and nobody else decides where the user's credentials go.
            let origin = |address: &str| Origin::parse(address).ok();
            if settings.has_credentials() && (origin(place).is_none() || origin(place) != origin(&address)) {
                let message = format!(
                    "the catalog leads to {address}: credentials are not sent to a host that it chooses"
                );
                return Err(
                    CallError::usage(message).with_hint(format!("name that card itself: -a {address}"))
                );
            }
            address
        }
    };
    builder.discover(&named).await.map_err(|error| failure(&error))
}

impl Agent {
    pub(crate) async fn connect(call: &Call) -> Result<Self, CallError> {
        let settings = &call.settings;
        let discovered = find(call).await?;
        check_credentials(settings, &discovered.card)?;
        let mut builder = with_credentials(builder(settings)?, settings);
        if !settings.has_credentials()
            && let Some(folder) = &settings.own_folder
            && let Some(stored) = tokens::load(folder, &identity(call, &discovered))
        {
            builder = with_token(builder, folder, &stored);
        }
        for extension in discovered.card.capabilities.extensions.iter().filter(|extension| extension.required)
        {
            builder = builder.extension(&extension.uri);
        }
        let builder = builder.prefer(preference(settings, &discovered.card)?);
        let client = builder.with_card(discovered).map_err(|error| failure(&error))?;
        if settings.debug {
            let interface = client.interface();
            let version = interface.version().version();
            debug::note(&format!("interface {} {version} {}", interface.binding(), interface.url()));
        }
        if client.withholds_credentials() {
            output::warn(&format!(
                "the credentials are not sent: the card leads to {}, another host than the one that was named",
                client.interface().url()
            ));
        }
        Ok(Agent { client, folded: RefCell::default() })
    }

    pub(crate) fn card(&self) -> &AgentCard {
        self.client.card()
    }

    pub(crate) async fn send(&self, message: SendMessage) -> Result<Received, CallError> {
        if self.is_current() {
            return received_json(self.raw(Operation::SendMessage(message)).await?);
        }
        let answered = self.client.send(message).await.map_err(|error| self.failure(&error))?;
        received(match answered {
            Answered::Task(task) => StreamItem::Task(*task),
            Answered::Message(message) => StreamItem::Message(*message),
        })
    }

    /// Whether the agent speaks 1.0, so that its results can be shown as they came.
    fn is_current(&self) -> bool {
        self.client.interface().version() == Generation::V1
    }

    async fn raw(&self, call: Operation) -> Result<String, CallError> {
        self.client.call_raw(&call).await.map_err(|error| self.failure(&error))
    }

    /// Sends a message and delivers its events. An agent that does not stream is asked again and again.
    pub(crate) async fn stream(&self, message: SendMessage) -> Result<Events, CallError> {
        let stream = self.client.stream(message).await.map_err(|error| self.failure(&error))?;
        Ok(Events { stream })
    }

    pub(crate) async fn subscribe(&self, id: &TaskId) -> Result<Events, CallError> {
        self.needs(self.card().capabilities.streaming, "streaming", "UnsupportedOperationError").map_err(
            |error| {
                error
                    .with_hint(format!("{PROGRAM} task get --wait {}", output::task::shell_word(id.as_str())))
            },
        )?;
        let stream = self.client.subscribe(id).await.map_err(|error| self.failure(&error))?;
        Ok(Events { stream })
    }

    pub(crate) async fn get(&self, id: &TaskId, history_length: HistoryLength) -> Result<Read, CallError> {
        if self.is_current() {
            let call = Operation::GetTask(GetTask { id: id.clone(), history_length });
            return read_json(self.raw(call).await?);
        }
        let task = self.client.get_with_history(id, history_length).await;
        read(&task.map_err(|error| self.failure(&error))?)
    }

    pub(crate) async fn cancel(&self, cancel: CancelTask) -> Result<Read, CallError> {
        if self.is_current() {
            return read_json(self.raw(Operation::CancelTask(cancel)).await?);
        }
        read(&self.client.cancel_with(cancel).await.map_err(|error| self.failure(&error))?)
    }

    /// One page, or all of them as one.
    pub(crate) async fn list(&self, list: ListTasks, all: bool) -> Result<TaskPage, CallError> {
        let mut pages = self.client.tasks(list);
        let mut whole: Option<TaskPage> = None;
        while let Some(page) = pages.next_page().await {
            let page = page.map_err(|error| self.failure(&error))?;
            match &mut whole {
                None => whole = Some(page),
                Some(whole) => {
                    whole.tasks.extend(page.tasks);
                    whole.next_page_token = page.next_page_token;
                }
            }
            if !all {
                break;
            }
        }
        whole.ok_or_else(|| CallError::internal("the agent sent no page"))
    }

    pub(crate) async fn create_push_config(&self, config: PushConfig) -> Result<String, CallError> {
        self.needs_push()?;
        let made = self.client.create_push_config(config).await.map_err(|error| self.failure(&error))?;
        Ok(push_config_json(made))
    }

    pub(crate) async fn push_config(&self, task_id: &TaskId, id: &PushConfigId) -> Result<String, CallError> {
        self.needs_push()?;
        let found = self.client.push_config(task_id, id).await.map_err(|error| self.failure(&error))?;
        Ok(push_config_json(found))
    }

    /// All webhooks of a task.
    pub(crate) async fn push_configs(&self, task_id: &TaskId) -> Result<Vec<PushConfig>, CallError> {
        self.needs_push()?;
        let mut configs = Vec::new();
        let mut token = None;
        loop {
            let page =
                self.client.push_configs(task_id, token).await.map_err(|error| self.failure(&error))?;
            let more = !page.next_page_token.is_empty() && !page.configs.is_empty();
            configs.extend(page.configs);
            token = Some(page.next_page_token);
            if !more {
                return Ok(configs);
            }
        }
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
        let card = self.client.extended_card().await.map_err(|error| self.failure(&error))?;
        let json = written(|out| v1::write_card(out, &card));
        let mut extended = self.client.discovered().clone();
        (extended.card, extended.json, extended.generation) = (card, json, Generation::V1);
        let signature = builder(&call.settings)?.verify_card(&extended, keys).await;
        let Discovered { card, json, .. } = extended;
        Ok(Found { card, received: json.clone(), json, signature })
    }

    /// What the events of the last stream add up to.
    pub(crate) fn folded(&self) -> Option<Received> {
        let task = self.folded.borrow().clone()?;
        received(StreamItem::Task(task)).ok()
    }

    fn needs_push(&self) -> Result<(), CallError> {
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
                Err(error.with_hint(format!("{PROGRAM} card get")))
            }
        }
    }

    fn failure(&self, error: &baton_client::Error) -> CallError {
        let failed = failure(error);
        match failed.code {
            Code::CredentialsMissing => failed.or_hint(|| credentials_hint(self.card())),
            _ => failed,
        }
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
        *agent.folded.borrow_mut() = self.stream.task().cloned();
        Some(next.map_err(|error| agent.failure(&error)).and_then(|event| received(event.item)))
    }
}
