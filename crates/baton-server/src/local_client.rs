//! A client inside the process, without sockets or encoding. For tests of agents, and for applications that call their
//! own agents.

use baton_protocol::domain::{Message, Part, PartContent, Role, Task, TaskId, TaskState};
use baton_protocol::operation::{Call, CancelTask, GetTask, HistoryLength, SendMessage, SubscribeToTask};
use baton_protocol::wire::StreamItem;
use baton_protocol::{Error, ErrorKind, Generation};

use crate::auth::{Principal, ReservedOwner};
use crate::engine::caller::Caller;
use crate::engine::clock::fresh_message_id;
use crate::engine::{Content, EventStream, Frame, from_store};
use crate::service::{CallContext, Outcome, Service};

/// Calls one agent of a server in the same process. The same rules apply as for clients on the network: routing, limits,
/// history and store. See [`Server::client`](crate::Server::client).
///
/// ```
/// # async fn it_asks_first() -> Result<(), Box<dyn std::error::Error>> {
/// use baton_server::a2a::TaskState;
/// use baton_server::{AgentError, Server, Turn};
///
/// async fn book(turn: Turn) -> Result<(), AgentError> {
///     let city = turn.ask("Where to?").await?;
///     turn.complete_with(format!("Have a good trip to {}", city.text())).await
/// }
///
/// let client = Server::agent("book", "Books trips", book).build().await?.client();
/// let asked = client.send("A trip, please").await?.into_task()?;
/// assert_eq!(asked.status.state, TaskState::InputRequired);
///
/// let done = client.send_to(&asked, "Oslo").await?;
/// assert_eq!(done.text(), "Have a good trip to Oslo");
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(it_asks_first()).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct LocalClient {
    service: Service,
    principal: Principal,
    tenant: Option<String>,
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// A task that has ended or waits for input. It is still working only if it took longer than
    /// [`Options::send_wait`](crate::engine::options::Options::send_wait).
    Task(Task),
    /// A message skill's answer.
    Message(Message),
}

/// The events of a task, one by one. See [`LocalClient::stream`].
#[derive(Debug)]
pub struct LocalStream {
    events: EventStream,
}

impl LocalClient {
    pub(crate) fn new(service: Service) -> Self {
        LocalClient { service, principal: Principal::anonymous(), tenant: None }
    }

    /// The same, calling as `owner`: what an authenticator would have said about the caller.
    pub fn as_owner(mut self, owner: &str) -> Result<Self, ReservedOwner> {
        self.principal = Principal::new(owner)?;
        Ok(self)
    }

    /// A client whose calls name this tenant.
    #[must_use]
    pub fn in_tenant(mut self, tenant: &str) -> Self {
        self.tenant = Some(tenant.to_owned());
        self
    }

    /// Sends a new message, and waits until the task has ended or waits for input, or the agent has replied.
    pub async fn send(&self, content: impl Into<Content>) -> Result<Answer, Error> {
        self.send_message(user_message(content.into())).await
    }

    /// Sends a message to a task: the answer to its question, or more input while it works.
    pub async fn send_to(&self, task: &Task, content: impl Into<Content>) -> Result<Answer, Error> {
        self.send_message(to_task(task, content.into())).await
    }

    /// Sends a message as it is, with its own id and target. Sending the same message again does not run the agent again;
    /// the first answer is returned.
    pub async fn send_message(&self, message: Message) -> Result<Answer, Error> {
        match self.dispatch(Call::SendMessage(SendMessage::new(message))).await? {
            Outcome::Message(message) => Ok(Answer::Message(message)),
            other => task_of(other).map(Answer::Task),
        }
    }

    /// Sends a new message and returns the events.
    pub async fn stream(&self, content: impl Into<Content>) -> Result<LocalStream, Error> {
        self.stream_message(user_message(content.into())).await
    }

    /// Sends a message to a task and returns the events.
    pub async fn stream_to(&self, task: &Task, content: impl Into<Content>) -> Result<LocalStream, Error> {
        self.stream_message(to_task(task, content.into())).await
    }

    /// Sends a message as it is and returns the events.
    pub async fn stream_message(&self, message: Message) -> Result<LocalStream, Error> {
        self.watch(Call::SendStreamingMessage(SendMessage::new(message))).await
    }

    /// The events of a task from now on.
    pub async fn subscribe(&self, id: &TaskId) -> Result<LocalStream, Error> {
        self.watch(Call::SubscribeToTask(SubscribeToTask { id: id.clone() })).await
    }

    /// The task as it is now.
    pub async fn task(&self, id: &TaskId) -> Result<Task, Error> {
        let get = GetTask { id: id.clone(), history_length: HistoryLength::All };
        task_of(self.dispatch(Call::GetTask(get)).await?)
    }

    /// Cancels the task.
    pub async fn cancel(&self, id: &TaskId) -> Result<Task, Error> {
        let cancel = CancelTask { id: id.clone(), metadata: None };
        task_of(self.dispatch(Call::CancelTask(cancel)).await?)
    }

    /// Tells an agent that what it asked for with [`require_auth`](crate::Turn::require_auth) is granted: the turn that awaits
    /// it goes on, and a turn that has ended is followed by the next one. For what learns of it beside the protocol, such as
    /// the page where a user comes back from an authorization server. The task must be the [owner](Self::as_owner)'s, and wait
    /// for that. To the agent `content` is the owner's next message, so it has to check what was granted, as it has to when a
    /// client says so. This does not wait for what the agent makes of it.
    pub async fn authorized(&self, id: &TaskId, content: impl Into<Content>) -> Result<Task, Error> {
        let task = self.task(id).await?;
        if task.status.state != TaskState::AuthRequired {
            let message = "The task does not wait for authorization";
            return Err(Error::new(ErrorKind::UnsupportedOperation, message));
        }
        let message = to_task(&task, content.into());
        let send = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        // Those that the client had to request with its first message.
        let extensions = self.service.required_extensions();
        task_of(self.dispatch_with(Call::SendMessage(send), extensions).await?)
    }

    async fn watch(&self, call: Call) -> Result<LocalStream, Error> {
        match self.dispatch(call).await? {
            Outcome::Stream(events) => Ok(LocalStream { events }),
            _ => Err(unexpected()),
        }
    }

    async fn dispatch(&self, call: Call) -> Result<Outcome, Error> {
        self.dispatch_with(call, Vec::new()).await
    }

    async fn dispatch_with(&self, call: Call, extensions: Vec<String>) -> Result<Outcome, Error> {
        // A test or the application itself: only an owner it names is limited.
        let caller = Caller::of(&self.principal, None);
        let context = CallContext {
            caller,
            scope: self.service.scope(&self.principal, self.tenant.as_deref())?,
            generation: Generation::V1,
            last_event_id: None,
            extensions,
            trace: None,
            // This client is part of the application.
            permission: None,
            principal: self.principal.clone(),
            asker: None,
        };
        Ok(self.service.dispatch(&context, call).await?.outcome)
    }
}

impl Answer {
    /// The task. An error if the agent answered with a message.
    pub fn into_task(self) -> Result<Task, Error> {
        match self {
            Answer::Task(task) => Ok(task),
            Answer::Message(_) => Err(Error::new(ErrorKind::Internal, "The answer is a message, not a task")),
        }
    }

    /// The message. An error if the agent made a task.
    pub fn into_message(self) -> Result<Message, Error> {
        match self {
            Answer::Message(message) => Ok(message),
            Answer::Task(_) => Err(Error::new(ErrorKind::Internal, "The answer is a task, not a message")),
        }
    }

    /// All text of the answer: of the message; or of the task's artifacts, joined with newlines; or, if there are no
    /// artifacts, of the task's last status.
    pub fn text(&self) -> String {
        let task = match self {
            Answer::Message(message) => return message.text(),
            Answer::Task(task) => task,
        };
        if task.artifacts.is_empty() {
            return task.status.message.as_ref().map(Message::text).unwrap_or_default();
        }
        let texts: Vec<String> = task.artifacts.iter().map(|artifact| text_of(&artifact.parts)).collect();
        texts.join("\n")
    }
}

impl LocalStream {
    /// The next event; `None` when the stream is over. The first is the task as it was at the beginning.
    pub async fn next(&mut self) -> Option<Result<StreamItem, Error>> {
        let frame = match self.events.next().await? {
            Ok(frame) => frame,
            Err(error) => return Some(Err(error)),
        };
        Some(match frame {
            Frame::Task { snapshot, .. } => Ok(StreamItem::Task(snapshot.task.clone())),
            Frame::Message(message) => Ok(StreamItem::Message(message)),
            Frame::Event(event) => event.item().map_err(from_store),
        })
    }

    /// All remaining events.
    pub async fn rest(mut self) -> Result<Vec<StreamItem>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }
}

/// Joined without a separator: streamed text may arrive in several parts.
fn text_of(parts: &[Part]) -> String {
    let text = |part: &Part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
    };
    parts.iter().filter_map(text).collect()
}

fn user_message(content: Content) -> Message {
    let Content { parts, metadata, extensions } = content;
    Message { metadata, extensions, ..Message::new(fresh_message_id(), Role::User, parts) }
}

fn to_task(task: &Task, content: Content) -> Message {
    let (task_id, context_id) = (Some(task.id.clone()), Some(task.context_id.clone()));
    Message { task_id, context_id, ..user_message(content) }
}

/// The whole task; no call of this client limits the history.
fn task_of(outcome: Outcome) -> Result<Task, Error> {
    match outcome {
        Outcome::Task(shown) => shown.task(),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Error {
    Error::new(ErrorKind::Internal, "The operation answered with something of another kind")
}
