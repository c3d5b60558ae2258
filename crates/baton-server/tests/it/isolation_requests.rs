//! The tables of the isolation matrix: how a call is written on each channel, and what of another owner's it may name.

use baton_protocol::operation::Operation;
use serde_json::json;

use crate::asking::{Ask, Interface, Sending, rest, rpc, sending};
use crate::speakers::envelope;

/// An interface, with the version header and the tenant that its requests have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channel {
    pub(crate) interface: Interface,
    pub(crate) version: Option<&'static str>,
    pub(crate) tenant: Tenant,
}

/// The tenant of a request, and where it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tenant {
    None,
    Member(&'static str),
    Path(&'static str),
}

use Interface::{V01, V1Rest, V1Rpc, V03Rest, V03Rpc};

pub(crate) const CHANNELS: [Channel; 9] = [
    channel(V1Rpc, Some("1.0"), Tenant::None),
    channel(V1Rpc, Some("1.0"), Tenant::Member("acme")),
    channel(V1Rest, Some("1.0"), Tenant::None),
    channel(V1Rest, Some("1.0"), Tenant::Path("acme")),
    channel(V03Rpc, None, Tenant::None),
    channel(V03Rpc, Some("0.3"), Tenant::None),
    channel(V03Rest, None, Tenant::None),
    channel(V01, None, Tenant::None),
    channel(V01, Some("0.1"), Tenant::None),
];

const fn channel(interface: Interface, version: Option<&'static str>, tenant: Tenant) -> Channel {
    Channel { interface, version, tenant }
}

impl Channel {
    /// The same with another tenant; `None` if this generation has no tenants.
    pub(crate) fn of_another_tenant(self) -> Option<Self> {
        let tenant = match (self.tenant, self.interface) {
            (Tenant::Member(_), _) => Tenant::None,
            (Tenant::Path(_), _) => Tenant::Path("other"),
            (Tenant::None, V1Rpc) => Tenant::Member("other"),
            (Tenant::None, V1Rest) => Tenant::Path("other"),
            (Tenant::None, _) => return None,
        };
        Some(Channel { tenant, ..self })
    }

    /// JSON-RPC of 1.0 with the same tenant, for what a test prepares and inspects.
    pub(crate) fn plain(self) -> Self {
        let tenant = match self.tenant {
            Tenant::Path(name) => Tenant::Member(name),
            other => other,
        };
        channel(V1Rpc, Some("1.0"), tenant)
    }

    /// The bytes of the request; `None` where the interface has no such operation. `agent` is the path of the agent.
    pub(crate) fn written(self, agent: &str, key: Option<&str>, call: &Asked) -> Option<Vec<u8>> {
        let tenant_path = match self.tenant {
            Tenant::Path(name) => format!("/{name}"),
            Tenant::Member(_) | Tenant::None => String::new(),
        };
        let (method, path, body) = if self.interface.is_rest() {
            let (method, path, body) = rest(self.interface, &call.ask);
            let body = body.map(|body| body.to_string()).unwrap_or_default();
            (method.to_string(), format!("{agent}{tenant_path}{path}"), body)
        } else {
            let (method, mut params) = rpc(self.interface, &call.ask)?;
            if let Tenant::Member(name) = self.tenant {
                params["tenant"] = json!(name);
            }
            let path = format!("{agent}{tenant_path}");
            let path = if path.is_empty() { "/".to_owned() } else { path };
            ("POST".to_owned(), path, envelope(method, &params))
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in [
            ("a2a-version", self.version),
            ("x-api-key", key),
            ("last-event-id", call.last_event_id.as_deref()),
            ("content-type", Some("application/json")),
        ] {
            head.extend(value.map(|value| format!("{name}: {value}\r\n")));
        }
        Some(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())
    }
}

/// What an owner has and others may try to name.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) task: String,
    pub(crate) context: String,
    pub(crate) message: String,
    pub(crate) cursor: String,
}

impl Names {
    /// Names of the same form and length that nobody has.
    pub(crate) fn unknown(&self) -> Self {
        let change = |name: &String| {
            let (start, end) = name.split_at(name.len() - 4);
            let other = |digit: char| match digit {
                '0'..='8' => char::from(digit as u8 + 1),
                '9' => '0',
                'a'..='e' | 'A'..='E' => char::from(digit as u8 + 1),
                'f' => 'a',
                _ => 'A',
            };
            format!("{start}{}", end.chars().map(other).collect::<String>())
        };
        Names {
            task: change(&self.task),
            context: change(&self.context),
            message: change(&self.message),
            cursor: change(&self.cursor),
        }
    }

    pub(crate) fn all(&self) -> [&str; 4] {
        [&self.task, &self.context, &self.message, &self.cursor]
    }
}

/// How the owner's task was made, and the state that it is in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Made {
    Asking,
    Working,
    Completed,
    /// In 0.1: the owner chose the task's id.
    Legacy,
    /// There is no task: a skill answered with a message.
    Replied,
}

/// What of the owner's a call names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Named {
    Task(Made),
    Context,
    TaskAndContext,
    /// A task that the message refers to.
    Reference(Made),
    /// The id of a message that the owner sent, with the same text again.
    Message(Made),
    /// The same id with another text.
    ChangedMessage(Made),
    /// A page token.
    Cursor,
    /// A task, and the number of one of its events.
    Resume(Made, &'static str),
    /// The id of a message that started a stream, and the number of one of its events.
    ResumeMessage(&'static str),
    /// A task that has a webhook, and that webhook's id.
    Config,
    /// Nothing: the call is about the caller alone.
    Nothing,
}

use Made::{Asking, Completed, Legacy, Replied, Working};

const TASKS: [Named; 4] =
    [Named::Task(Asking), Named::Task(Working), Named::Task(Completed), Named::Task(Legacy)];
const MESSAGES: [Named; 9] = [
    Named::Context,
    Named::TaskAndContext,
    Named::Reference(Asking),
    Named::Reference(Completed),
    Named::Reference(Legacy),
    Named::Message(Asking),
    Named::Message(Replied),
    Named::ChangedMessage(Completed),
    Named::ChangedMessage(Replied),
];
const RESUMED: [Named; 4] = [
    Named::Resume(Asking, "1"),
    Named::Resume(Completed, "0"),
    Named::Resume(Completed, "999999"),
    Named::Resume(Legacy, "1"),
];

/// The rows of an operation. A new operation needs its own.
pub(crate) fn rows(operation: Operation) -> Vec<Named> {
    match operation {
        Operation::SendMessage => [&TASKS[..], &MESSAGES].concat(),
        Operation::SendStreamingMessage => {
            let resumed = [Named::ResumeMessage("1"), Named::ResumeMessage("999999")];
            [&TASKS[..], &MESSAGES, &resumed].concat()
        }
        Operation::GetTask | Operation::CancelTask => TASKS.to_vec(),
        Operation::ListTasks => vec![Named::Context, Named::Cursor],
        Operation::SubscribeToTask => [&TASKS[..], &RESUMED].concat(),
        Operation::CreatePushConfig
        | Operation::GetPushConfig
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig => vec![Named::Config],
        Operation::GetExtendedCard => vec![Named::Nothing],
    }
}

impl Named {
    /// How the owner's task is made for this row.
    pub(crate) fn made(self) -> Made {
        match self {
            Named::Task(made)
            | Named::Reference(made)
            | Named::Message(made)
            | Named::ChangedMessage(made)
            | Named::Resume(made, _) => made,
            Named::ResumeMessage(_) => Completed,
            Named::Context | Named::TaskAndContext | Named::Cursor | Named::Config | Named::Nothing => Asking,
        }
    }
}

/// A request that names something.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) last_event_id: Option<String>,
}

/// Text and id of a message that a row does not give.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    /// The owner's own text, for sending it again.
    pub(crate) text_again: String,
    /// For the message, and for the task in 0.1.
    pub(crate) id: String,
    pub(crate) wait: bool,
}

/// The request of a row; `None` where the generation cannot name this.
pub(crate) fn asked(
    operation: Operation,
    interface: Interface,
    named: Named,
    names: &Names,
    fresh: &Fresh,
) -> Option<Asked> {
    let send = || message(interface, named, names, fresh);
    let task = names.task.clone();
    let ask = match operation {
        Operation::SendMessage => Ask::Send(send()?),
        Operation::SendStreamingMessage => Ask::Stream(send()?),
        Operation::GetTask => Ask::Get { id: task, history: None },
        Operation::ListTasks => Ask::List {
            context: (named == Named::Context).then(|| names.context.clone()),
            page_size: (named == Named::Cursor).then_some(1),
            page_token: (named == Named::Cursor).then(|| names.cursor.clone()),
        },
        Operation::CancelTask => Ask::Cancel(task),
        Operation::SubscribeToTask => Ask::Subscribe(task),
        Operation::CreatePushConfig => Ask::SetPush(task),
        Operation::GetPushConfig => Ask::GetPush(task),
        Operation::ListPushConfigs => Ask::ListPush(task),
        Operation::DeletePushConfig => Ask::DeletePush(task),
        Operation::GetExtendedCard => Ask::Card,
    };
    let last_event_id = match named {
        Named::Resume(_, number) | Named::ResumeMessage(number) => Some(number.to_owned()),
        _ => None,
    };
    Some(Asked { ask, last_event_id })
}

fn message(interface: Interface, named: Named, names: &Names, fresh: &Fresh) -> Option<Sending> {
    let is_legacy = interface == V01;
    let mut sent = sending("more");
    sent.wait = Some(fresh.wait);
    sent.message = Some(fresh.id.clone());
    // In 0.1 the client chooses the task's id.
    sent.task = is_legacy.then(|| fresh.id.clone());
    let again = |sent: Sending, text: &str| {
        // Messages of 0.1 have no id.
        let skill = (named.made() == Replied).then(|| "talk".to_owned());
        let message = Some(names.message.clone());
        (!is_legacy).then(|| Sending { text: text.to_owned(), skill, message, ..sent })
    };
    match named {
        Named::Task(_) => sent.task = Some(names.task.clone()),
        Named::Context => sent.context = Some(names.context.clone()),
        Named::TaskAndContext => {
            sent.task = Some(names.task.clone());
            sent.context = Some(names.context.clone());
        }
        Named::Reference(_) if is_legacy => return None,
        Named::Reference(_) => {
            "references".clone_into(&mut sent.text);
            sent.references = vec![names.task.clone()];
        }
        Named::Message(_) | Named::ResumeMessage(_) => return again(sent, &fresh.text_again),
        Named::ChangedMessage(_) => return again(sent, "another text"),
        Named::Cursor | Named::Resume(..) | Named::Config | Named::Nothing => return None,
    }
    Some(sent)
}
