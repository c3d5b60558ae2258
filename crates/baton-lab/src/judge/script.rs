//! The scripts: what the agent does, correctly or not, and what the client must do.

use super::refusal::{self, Refusal};
use super::variant::Variant;
use crate::generation::{Binding, Generation};

/// One script: an agent with an address of its own.
#[derive(Debug)]
pub struct Script {
    pub name: &'static str,
    /// What the agent does.
    pub about: &'static str,
    pub does: Does,
    pub ends: Ends,
    pub(super) behaviour: Behaviour,
    pub(super) card_kind: CardKind,
    only: Only,
}

/// What the client must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Send,
    Stream,
    Follow,
    Talk,
    Get,
    Tour,
    Extended,
}

impl Does {
    pub const ALL: [Self; 7] =
        [Self::Send, Self::Stream, Self::Follow, Self::Talk, Self::Get, Self::Tour, Self::Extended];

    /// The value of `A2A_DO` for a command.
    pub fn word(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Stream => "stream",
            Self::Follow => "follow",
            Self::Talk => "talk",
            Self::Get => "get",
            Self::Tour => "tour",
            Self::Extended => "extended-card",
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            Self::Send => "Send any message, without a stream.",
            Self::Stream => "Send any message with a stream, and read it to its end.",
            Self::Follow => {
                "Send any message with a stream, and follow the task to its end, whatever happens to the stream."
            }
            Self::Talk => "Send any message; when the agent asks for more, answer it.",
            Self::Get => "Send any message, then read the task again.",
            Self::Tour => {
                "Send any message, then use the other operations on its task: read it, list tasks page by page, \
                 push notification configs (create, get, list, delete); cancel it last."
            }
            Self::Extended => "Fetch the extended card, with the credential you were given.",
        }
    }
}

/// How a correct client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// With success.
    Well,
    /// With a reported error.
    Badly,
    /// Either way, but within the time limit.
    Either,
}

impl Ends {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Well => "This should work.",
            Self::Badly => "An error should be reported.",
            Self::Either => "",
        }
    }
}

/// What the agent does when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    Right,
    Message,
    Talk,
    Tour,
    OddIds,
    UnknownMembers,
    UnknownState,
    Sparse,
    AllParts,
    NoArtifacts,
    Chunks,
    Frames(Framing),
    Cut,
    EarlyEnd,
    StreamError,
    Refuse(&'static Refusal),
    Html(u16),
    WrongType,
    WrongId,
    EmptyReply,
    Redirect,
    RedirectAway,
    Busy(u16),
    Dropped,
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Plain,
    Comments,
    Crlf,
    Lines,
    Fields,
    Split,
    Large,
}

/// What the card says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CardKind {
    Usual,
    Interfaces,
    FirstDown,
    Huge,
    UnknownMembers,
    NoStreaming,
    Extension,
    Bearer,
    ApiKey,
    Tenant,
    Tour,
    Extended,
}

/// Where a script applies.
#[derive(Debug, Clone, Copy)]
enum Only {
    All,
    V1,
    /// Cards with several interfaces, message replies, extensions: not in 0.1.
    Since0_3,
    Rpc,
}

const fn script(
    name: &'static str,
    does: Does,
    ends: Ends,
    behaviour: Behaviour,
    card_kind: CardKind,
    only: Only,
    about: &'static str,
) -> Script {
    Script { name, about, does, ends, behaviour, card_kind, only }
}

use CardKind as F;
use Does as D;
use Ends as E;
use Only as O;

/// All scripts. If a client fails on the first ones, which are correct agents, its failures on others say little.
#[rustfmt::skip] // A table: a line each.
pub const SCRIPTS: &[Script] = &[
    script("send", D::Send, E::Well, Behaviour::Right, F::Usual, O::All, "A correct agent: the message makes a task that is completed."),
    script("stream", D::Stream, E::Well, Behaviour::Right, F::Usual, O::All, "A correct agent: the task, its updates, the end."),
    script("message", D::Send, E::Well, Behaviour::Message, F::Usual, O::Since0_3, "Replies with a message; there is no task."),
    script("message-stream", D::Stream, E::Well, Behaviour::Message, F::Usual, O::Since0_3, "Replies with a stream of one message; there is no task."),
    script("talk", D::Talk, E::Well, Behaviour::Talk, F::Usual, O::All, "Asks for more (input-required) before it completes the task."),
    script("tour", D::Tour, E::Well, Behaviour::Tour, F::Tour, O::All, "Offers everything: tasks to list, page by page, and push notification configs."),
    script("odd-ids", D::Get, E::Well, Behaviour::OddIds, F::Usual, O::Since0_3, "Its task's id contains a slash, a space, `?`, `#`, `%` and a letter beyond ASCII."),
    script("tenant", D::Get, E::Well, Behaviour::Right, F::Tenant, O::V1, "Its interface has a tenant."),
    script("interfaces", D::Send, E::Well, Behaviour::Right, F::Interfaces, O::Since0_3, "Declares unknown interfaces before the right one, and an equivalent one after it."),
    script("interface-down", D::Send, E::Either, Behaviour::Right, F::FirstDown, O::Since0_3, "The first of two equivalent interfaces cannot be reached."),
    script("huge-card", D::Send, E::Well, Behaviour::Right, F::Huge, O::All, "Its card has 1,500 skills (about 1 MB)."),
    script("unknown-members", D::Send, E::Well, Behaviour::UnknownMembers, F::UnknownMembers, O::All, "Card and reply contain unknown members."),
    script("unknown-state", D::Stream, E::Either, Behaviour::UnknownState, F::Usual, O::All, "One update has an unknown task state."),
    script("sparse", D::Send, E::Well, Behaviour::Sparse, F::Usual, O::All, "Its reply has no optional members."),
    script("all-parts", D::Send, E::Well, Behaviour::AllParts, F::Usual, O::All, "Replies with a part of every kind."),
    script("no-artifacts", D::Send, E::Well, Behaviour::NoArtifacts, F::Usual, O::All, "Completes the task without any artifact."),
    script("chunks", D::Stream, E::Well, Behaviour::Chunks, F::Usual, O::All, "Streams one artifact in five chunks (append, lastChunk)."),
    script("sse-comments", D::Stream, E::Well, Behaviour::Frames(Framing::Comments), F::Usual, O::All, "The stream holds comments and empty lines (keep-alive)."),
    script("sse-crlf", D::Stream, E::Well, Behaviour::Frames(Framing::Crlf), F::Usual, O::All, "Lines of the stream end in CR LF."),
    script("sse-multi-line", D::Stream, E::Well, Behaviour::Frames(Framing::Lines), F::Usual, O::All, "One event is written in several `data:` lines."),
    script("sse-fields", D::Stream, E::Well, Behaviour::Frames(Framing::Fields), F::Usual, O::All, "Events have `id:`, `event:`, `retry:` and an unknown field; no space after the colon."),
    script("sse-split", D::Stream, E::Well, Behaviour::Frames(Framing::Split), F::Usual, O::All, "Chunks of the body end in the middle of lines and of UTF-8 characters."),
    script("sse-large", D::Stream, E::Well, Behaviour::Frames(Framing::Large), F::Usual, O::All, "One event is 1 MiB long."),
    script("stream-cut", D::Follow, E::Either, Behaviour::Cut, F::Usual, O::All, "The connection breaks in the middle of an event; the task goes on and can be subscribed to or read."),
    script("stream-early-end", D::Follow, E::Either, Behaviour::EarlyEnd, F::Usual, O::All, "The stream ends normally while the task is still working; the task can be subscribed to or read."),
    script("stream-error", D::Stream, E::Badly, Behaviour::StreamError, F::Usual, O::All, "An error ends the stream after two events."),
    script("error-task-not-found", D::Send, E::Badly, Behaviour::Refuse(&refusal::NOT_FOUND), F::Usual, O::All, "Refuses the message: TaskNotFoundError."),
    script("error-task-not-cancelable", D::Send, E::Badly, Behaviour::Refuse(&refusal::NOT_CANCELABLE), F::Usual, O::All, "Refuses the message: TaskNotCancelableError."),
    script("error-push-not-supported", D::Send, E::Badly, Behaviour::Refuse(&refusal::NO_PUSH), F::Usual, O::All, "Refuses the message: PushNotificationNotSupportedError."),
    script("error-unsupported-operation", D::Send, E::Badly, Behaviour::Refuse(&refusal::UNSUPPORTED), F::Usual, O::All, "Refuses the message: UnsupportedOperationError."),
    script("error-content-type", D::Send, E::Badly, Behaviour::Refuse(&refusal::CONTENT_TYPE), F::Usual, O::All, "Refuses the message: ContentTypeNotSupportedError."),
    script("error-invalid-agent-response", D::Send, E::Badly, Behaviour::Refuse(&refusal::BAD_RESPONSE), F::Usual, O::Since0_3, "Refuses the message: InvalidAgentResponseError."),
    script("error-extended-card", D::Send, E::Badly, Behaviour::Refuse(&refusal::NO_CARD), F::Usual, O::Since0_3, "Refuses the message: ExtendedAgentCardNotConfiguredError."),
    script("error-extension-required", D::Send, E::Badly, Behaviour::Refuse(&refusal::NO_EXTENSION), F::Usual, O::V1, "Refuses the message: ExtensionSupportRequiredError."),
    script("error-version", D::Send, E::Badly, Behaviour::Refuse(&refusal::VERSION), F::Usual, O::V1, "Refuses the message: VersionNotSupportedError."),
    script("html", D::Send, E::Badly, Behaviour::Html(200), F::Usual, O::All, "Answers with a web page, status 200."),
    script("bad-gateway", D::Send, E::Badly, Behaviour::Html(502), F::Usual, O::All, "Answers with a proxy's error page, status 502."),
    script("wrong-type", D::Send, E::Either, Behaviour::WrongType, F::Usual, O::All, "A correct reply with the content type text/plain."),
    script("wrong-id", D::Send, E::Badly, Behaviour::WrongId, F::Usual, O::Rpc, "Answers another request: the JSON-RPC id is not that of the request."),
    script("empty-reply", D::Send, E::Badly, Behaviour::EmptyReply, F::Usual, O::All, "Answers with an empty object: neither a result nor an error."),
    script("redirect", D::Send, E::Either, Behaviour::Redirect, F::Usual, O::All, "Redirects calls (307) to another address of its own."),
    script("redirect-away", D::Send, E::Either, Behaviour::RedirectAway, F::Bearer, O::All, "Asks for a bearer token, then redirects calls (307) to another origin."),
    script("redirect-away-key", D::Send, E::Either, Behaviour::RedirectAway, F::ApiKey, O::Since0_3, "Asks for an API key, then redirects calls (307) to another origin."),
    script("busy-429", D::Send, E::Either, Behaviour::Busy(429), F::Usual, O::All, "Is too busy at first: 429 with Retry-After: 1."),
    script("busy-503", D::Send, E::Either, Behaviour::Busy(503), F::Usual, O::All, "Is too busy at first: 503 with Retry-After: 1."),
    script("dropped", D::Send, E::Either, Behaviour::Dropped, F::Usual, O::All, "Closes the connection on the first message, without an answer."),
    script("no-streaming", D::Stream, E::Either, Behaviour::Right, F::NoStreaming, O::All, "A correct agent whose card says that it does not stream."),
    script("required-extension", D::Send, E::Either, Behaviour::Right, F::Extension, O::Since0_3, "Its card requires an extension; without it messages are refused."),
    script("bearer", D::Send, E::Well, Behaviour::Right, F::Bearer, O::All, "Its card asks for a bearer token."),
    script("extended-card", D::Extended, E::Well, Behaviour::Right, F::Extended, O::Since0_3, "Has an extended card for clients with a bearer token."),
    script("api-key", D::Send, E::Well, Behaviour::Right, F::ApiKey, O::Since0_3, "Its card asks for an API key in the header X-Judge-Key."),
];

impl Script {
    pub fn named(name: &str) -> Option<&'static Self> {
        SCRIPTS.iter().find(|script| script.name == name)
    }

    /// True if the script exists for that generation and binding.
    pub fn fits(&self, variant: Variant) -> bool {
        match self.only {
            Only::All => true,
            Only::V1 => variant.generation == Generation::V1,
            Only::Since0_3 => variant.generation != Generation::V0_1,
            Only::Rpc => variant.binding == Binding::Jsonrpc,
        }
    }

    pub(super) fn refusal(&self) -> Option<&'static Refusal> {
        match self.behaviour {
            Behaviour::Refuse(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The kind of credential that the client needs.
    pub fn credential(&self) -> Option<Credential> {
        match self.card_kind {
            CardKind::Bearer | CardKind::Extended => Some(Credential::Bearer),
            CardKind::ApiKey => Some(Credential::ApiKey),
            _ => None,
        }
    }
}

/// A kind of credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Bearer,
    ApiKey,
}
