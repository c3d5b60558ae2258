//! What can be wrong with the agent, as data. A [`Defect`] is a row of a table: its faults, and the cases that must
//! find it. The faults are few and general, so that a new case usually needs a row and no code.

use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;

use super::edit::Edit;
use super::profile::Profile;
use super::refusal::Kind;

/// One way to be wrong.
#[derive(Debug)]
pub(crate) struct Defect {
    pub(crate) name: &'static str,
    /// What the agent does wrong, as a sentence.
    pub(crate) wrong: &'static str,
    pub(crate) profile: Profile,
    pub(crate) faults: &'static [Fault],
    /// What is wrong with the agent beside it.
    pub(crate) second: &'static [Fault],
    /// Cases that must fail.
    pub(crate) caught_by: &'static [&'static str],
    /// Cases that may fail, too, since they meet the same fault on their way: ids, or beginnings of ids that end in `*`.
    pub(crate) related: &'static [&'static str],
    /// Cases run one after the other, since the fault would hit another case than the one that causes it.
    pub(crate) alone: bool,
}

impl Defect {
    pub(crate) fn is_related(&self, id: &str) -> bool {
        let fits = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => id.starts_with(start),
            None => id == *pattern,
        };
        self.caught_by.contains(&id) || self.related.iter().any(fits)
    }
}

#[derive(Debug)]
pub(crate) enum Fault {
    /// JSON is changed on its way out.
    Edit(What, Only, &'static [Edit]),
    /// A header has another value, or none.
    Header(What, Only, &'static str, Option<&'static str>),
    Status(What, Only, u16),
    /// The events of a stream are not those that happened.
    Events(Only, Cut),
    /// A rule is not kept, or another one is.
    Rule(Rule, Only, Instead),
    /// A phrase is taken for another.
    Behaves(&'static str, &'static str),
    /// The agent's own logic is wrong.
    Quirk(Quirk, Only),
}

/// What is changed on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Card,
    LegacyCard,
    /// The object an operation answers with.
    Reply,
    /// One event of a stream.
    Event,
    /// The error object; of one kind, or all.
    Refusal(Option<Kind>),
    /// The JSON-RPC response around any of these.
    Envelope,
    /// The call of a webhook.
    Call,
    /// The trailers of an answer over gRPC.
    Trailers,
}

impl What {
    pub(super) fn takes(self, other: Self) -> bool {
        self == other || (self == Self::Refusal(None) && matches!(other, Self::Refusal(_)))
    }
}

/// Where something happens.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) generation: Generation,
    pub(crate) binding: Binding,
    pub(crate) operation: Option<Operation>,
    /// The text that made the task which the request is about.
    pub(crate) phrase: String,
    /// The generation that task was made in.
    pub(crate) born: Option<Generation>,
}

impl Place {
    pub(super) fn new(generation: Generation, binding: Binding) -> Self {
        Place { generation, binding, operation: None, phrase: String::new(), born: None }
    }
}

/// Where a fault shows; what is not said does not matter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Only {
    generation: Option<Generation>,
    binding: Option<Binding>,
    operations: &'static [Operation],
    phrase: &'static str,
    born: Option<Generation>,
}

pub(crate) const ALWAYS: Only =
    Only { generation: None, binding: None, operations: &[], phrase: "", born: None };

impl Only {
    pub(crate) const fn within(self, generation: Generation) -> Self {
        Only { generation: Some(generation), ..self }
    }

    pub(crate) const fn over(self, binding: Binding) -> Self {
        Only { binding: Some(binding), ..self }
    }

    pub(crate) const fn of(self, operations: &'static [Operation]) -> Self {
        Only { operations, ..self }
    }

    pub(crate) const fn saying(self, phrase: &'static str) -> Self {
        Only { phrase, ..self }
    }

    pub(crate) const fn born(self, generation: Generation) -> Self {
        Only { born: Some(generation), ..self }
    }

    pub(super) fn fits(self, place: &Place) -> bool {
        self.generation.is_none_or(|generation| generation == place.generation)
            && self.binding.is_none_or(|binding| binding == place.binding)
            && (self.operations.is_empty()
                || place.operation.is_some_and(|operation| self.operations.contains(&operation)))
            && place.phrase.starts_with(self.phrase)
            && (self.born.is_none() || self.born == place.born)
    }
}

/// What becomes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    DropFirst,
    /// Without the status updates of a state.
    DropState(&'static str),
    /// Without the events of a kind.
    DropKind(&'static str),
    /// Without the second artifact update.
    DropSecondChunk,
    /// Events of a kind come twice.
    Twice(&'static str),
    /// The whole task once more after the first update.
    TaskAgain,
    /// An event more after the first update; `$task` and `$context` stand for the ids.
    Insert(&'static str),
    /// Artifact updates come one event late.
    Swap,
    /// Everything comes at the end.
    Hold,
    /// The stream is not closed.
    Open,
    /// The stream closes in the place of the event that should end it.
    CloseBeforeEnd,
    /// Every stream of a task but the first loses artifact updates.
    SecondLoses,
}

/// What is done about a broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instead {
    Allow,
    Refuse(Kind),
    /// The connection is closed without an answer.
    HangUp,
}

/// What a request can do that is not allowed; and, marked as such, what a careless agent thinks is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    // The body.
    NotUtf8,
    TooDeep,
    BadJson,
    /// JSON, but no object.
    BodyKind,
    /// Neither `jsonrpc` nor `method`.
    NotARequest,
    NoMethod,
    RpcVersion,
    UnknownMethod,
    ParamsKind,
    UnknownPath,
    WrongVerb,
    // The caller.
    NoCredentials,
    BadCredentials,
    RequiredExtension,
    VersionUnknown,
    VersionNonsense,
    VersionAbsent,
    // The message.
    MessageMissing,
    NoParts,
    NoMessageId,
    NoRole,
    EmptyPart,
    WrongType,
    MediaType,
    HistoryNumber,
    NegativeHistory,
    // The task.
    NoId,
    UnknownTask,
    Foreign,
    ContextMismatch,
    SendToEnded,
    CancelEnded,
    SubscribeEnded,
    // Lists.
    PageSizeSmall,
    PageSizeLarge,
    PageToken,
    StatusWord,
    TimeWord,
    // What the card does not offer.
    NoStreaming,
    NoPush,
    NoExtendedCard,
    // Webhooks.
    UnknownConfig,
    ConfigUrl,
    /// 0.1: a webhook without TLS.
    PlainWebhook,
    /// 0.1: something else than a stream at the door for streams.
    OtherAtDoor,
    // gRPC.
    UnknownService,
    NotProtobuf,
    /// No message, or a part of one.
    NoFrame,
    TwoFrames,
    /// A message in a compression that is not known.
    Squeezed,

    // From here on: nothing of this is forbidden.
    /// A client of an older generation that does not say so.
    OldWithoutVersion,
    /// 0.1: members that are null.
    Nulls,
    DataNotObject,
    UnknownMember,
    OutputModes,
    RepeatedMessage,
    Refers,
    MessageExtensions,
    UnknownExtension,
    VersionPatch,
    FollowUp,
    OtherBinding,
    CancelCanceled,
    /// The same where the error table names `canceled`.
    CancelAgain,
    CancelInterrupted,
    CancelMetadata,
    SubscribeInterrupted,
    PageSizeOver50,
    DeleteUnknownConfig,
    ParamsMissing,
    EmptyBody,
    PlainJson,
    ForeignContentType,
    LongBody,
    LongHeader,
    OddLetters,
    OddId,
    TwiceTheSame,
}

impl Rule {
    /// How a right agent refuses; `None` where it does not.
    pub(super) fn usual(self) -> Option<Kind> {
        Some(match self {
            Self::NotUtf8 | Self::TooDeep | Self::BadJson => Kind::Parse,
            Self::BodyKind | Self::NotARequest | Self::NoMethod | Self::RpcVersion | Self::OtherAtDoor => {
                Kind::InvalidRequest
            }
            Self::UnknownMethod
            | Self::UnknownPath
            | Self::WrongVerb
            | Self::UnknownService
            | Self::Squeezed => Kind::MethodNotFound,
            Self::NoFrame | Self::TwoFrames => Kind::Internal,
            Self::NoCredentials | Self::BadCredentials => Kind::Unauthenticated,
            Self::RequiredExtension => Kind::ExtensionRequired,
            Self::VersionUnknown | Self::VersionNonsense | Self::VersionAbsent => Kind::Version,
            Self::ParamsKind
            | Self::MessageMissing
            | Self::NoParts
            | Self::NoMessageId
            | Self::NoRole
            | Self::EmptyPart
            | Self::WrongType
            | Self::HistoryNumber
            | Self::NegativeHistory
            | Self::NoId
            | Self::ContextMismatch
            | Self::PageSizeSmall
            | Self::PageSizeLarge
            | Self::PageToken
            | Self::StatusWord
            | Self::TimeWord
            | Self::NotProtobuf
            | Self::ConfigUrl => Kind::InvalidParams,
            Self::MediaType => Kind::ContentType,
            Self::UnknownTask | Self::Foreign | Self::UnknownConfig => Kind::TaskNotFound,
            Self::SendToEnded | Self::SubscribeEnded | Self::NoStreaming | Self::NoExtendedCard => {
                Kind::Unsupported
            }
            Self::PlainWebhook => Kind::Unsupported,
            Self::CancelEnded | Self::CancelAgain => Kind::TaskNotCancelable,
            Self::NoPush => Kind::PushNotSupported,
            Self::OldWithoutVersion
            | Self::Nulls
            | Self::DataNotObject
            | Self::UnknownMember
            | Self::OutputModes
            | Self::RepeatedMessage
            | Self::Refers
            | Self::MessageExtensions
            | Self::UnknownExtension
            | Self::VersionPatch
            | Self::FollowUp
            | Self::OtherBinding
            | Self::CancelCanceled
            | Self::CancelInterrupted
            | Self::CancelMetadata
            | Self::SubscribeInterrupted
            | Self::PageSizeOver50
            | Self::DeleteUnknownConfig
            | Self::ParamsMissing
            | Self::EmptyBody
            | Self::PlainJson
            | Self::ForeignContentType
            | Self::LongBody
            | Self::LongHeader
            | Self::OddLetters
            | Self::OddId
            | Self::TwiceTheSame => return None,
        })
    }
}

/// Wrong in a way that no change on the way out can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// A send is answered before the task has ended.
    DoesNotWait,
    /// A send waits even if it is asked not to.
    WaitsAnyway,
    /// All tasks have the same id.
    SameId,
    /// An answer goes to the next client.
    CrossedAnswers,
    /// A client that goes takes its task along.
    CancelOnDisconnect,
    /// A stream that is closed closes those beside it.
    CloseOthers,
    /// A task can be subscribed to once.
    OneSubscription,
    /// Line ends in a text are line ends in the frame.
    RawLineEnds,
    /// `historyLength` 0 means all.
    ZeroIsAll,
    /// `historyLength` 0 gives an empty list.
    EmptyHistory,
    /// The oldest messages instead of the latest.
    OldestHistory,
    /// `historyLength` is not read.
    WholeHistory,
    ListIgnoresContext,
    ListIgnoresState,
    ListShowsArtifacts,
    ListShowsEverybodys,
    /// The oldest task comes first.
    OldestFirst,
    /// `statusTimestampAfter` leaves out tasks of that very time.
    TimeIsExclusive,
    /// 20 tasks on a page when nobody asks.
    ShortPages,
    /// The next page begins with the last task of the page before.
    PagesOverlap,
    /// Query parameters are known by snake_case names alone.
    SnakeQuery,
    /// A contextId nobody has made is replaced.
    NewContext,
    /// Every message makes a context of its own.
    ForgetsContext,
    /// The agent makes ids where the client does.
    OwnIds,
    /// A refused message changes the time of the ended task's status.
    TouchedByRefusal,
    /// The names of events say nothing of them.
    OddEventNames,
    /// The door for streams answers with a task.
    DoorWithoutStream,
    /// A follow-up is answered with another context.
    FreshContextOnFollowUp,
    /// A message in a context goes to the task that waits there.
    ContextIsTask,
    /// Every second read of an ended task shows it at work.
    Flickers,
    /// A refused message is kept all the same.
    RefusedButKept,
    /// Follow-ups are kept twice.
    KeptTwice,
    /// A webhook replaces the one before.
    OneConfig,
    /// A deleted webhook stays in the list.
    NotDeleted,
    /// A deleted webhook is called.
    CallsDeleted,
    /// A webhook that comes with a message is ignored.
    IgnoresConfigInSend,
    /// `If-None-Match` is not read.
    AlwaysSendsCard,
    /// The card needs credentials.
    CardNeedsCredentials,
    /// `?A2A-Version=` is not read.
    NoVersionQuery,
    /// A request that breaks off makes the next one fail.
    HurtByHalves,
    /// Tasks and answers are those of the agent beside it.
    SharesAll,
    /// Told to call somebody, it does not.
    CallsNobody,
    /// A request that breaks off ends the agent.
    DiesOfHalves,
    /// After a request that breaks off no message is understood any more.
    DeafAfterHalves,
    /// What the first read brings is taken for the whole body.
    OneRead,
    /// The body is read before anybody asks who sends it.
    ParsesFirst,
    /// A list that is continued shows everybody's tasks.
    PageShowsEverybodys,
    /// Versions of TLS before 1.2 are spoken.
    OldTls,
    /// TLS 1.2 only.
    NoTls13,
    /// No `Strict-Transport-Security`.
    NoHsts,
    /// gRPC: `grpc-timeout` is not read.
    NoDeadline,
    /// gRPC: a stream that ends at its deadline takes its task along.
    DeadlineCancels,
    /// gRPC: an answer is sent twice.
    TwoAnswers,
    /// gRPC: messages have the flag of compressed ones.
    Squeezes,
    /// gRPC: a field has another type.
    WrongField,
    /// gRPC: an error comes after a message.
    EventBeforeRefusal,
}
