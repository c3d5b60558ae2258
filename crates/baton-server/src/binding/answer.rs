//! Encodes outcomes of the service in the caller's encoding. Only this module does so, and [`event_stream`] for the events
//! of streams.

use axum::body::Body;
use baton_protocol::Error;
use baton_protocol::operation::Reply;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::jsonrpc::{self, RpcId};
use baton_protocol::wire::stored;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderName, HeaderValue, Response, StatusCode, Version};

use super::event_stream::Bounds;
#[cfg(feature = "grpc")]
use super::grpc::{self, GrpcFormat};
use super::request_log::RequestLog;
use super::{event_stream, incoming, respond, stored_answer};
use crate::encoding::Encoding;
use crate::engine::no_room;
use crate::net::{Asker, NoRoom, Share};
use crate::service::outcome::{self, Answered, Outcome, Page, ShownTask};
use crate::service::{CallContext, Service};
use crate::store::Listed;

/// Tells a client that its message had been accepted before, and that this is the same answer again.
const REPLAY_HEADER: HeaderName = HeaderName::from_static("a2a-idempotent-replay");

/// Initial capacity for a page, at most: a list may show much less of its tasks than is stored.
const MAX_CAPACITY: usize = 64 * 1024;

/// How to encode an answer.
pub(super) enum AnswerFormat {
    Json(JsonFormat),
    #[cfg(feature = "grpc")]
    Grpc(GrpcFormat),
}

/// For JSON-RPC and HTTP+JSON.
pub(super) struct JsonFormat {
    pub(super) dialect: Dialect,
    pub(super) facts: AnswerFacts,
    pub(super) envelope: Envelope,
    pub(super) media_type: HeaderValue,
    pub(super) http: Version,
}

impl AnswerFormat {
    fn encoding(&self) -> Encoding {
        match self {
            Self::Json(json) => Encoding::Json(json.dialect),
            #[cfg(feature = "grpc")]
            Self::Grpc(grpc) => Encoding::Protobuf { package: grpc.package, numbered: false },
        }
    }

    fn media_type(&self) -> HeaderValue {
        match self {
            Self::Json(json) => json.media_type.clone(),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => grpc::MEDIA_TYPE,
        }
    }

    /// Puts the frame of the binding around an encoded value.
    fn wrap(&self, around: (&[u8], &[u8]), value: Bytes, share: Option<Share>) -> Body {
        match self {
            Self::Json(json) => wrap_json(&json.envelope, around, value, share),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => grpc::body(value, share),
        }
    }
}

/// What surrounds the JSON of an answer, or of each event of a stream.
pub(super) enum Envelope {
    /// A JSON-RPC response with this id.
    Rpc(RpcId),
    /// Nothing.
    Bare,
}

impl Envelope {
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        if let Envelope::Rpc(id) = self {
            jsonrpc::result_prefix(out, id);
        }
    }

    pub(super) fn end(&self) -> &'static [u8] {
        match self {
            Envelope::Rpc(_) => jsonrpc::RESULT_SUFFIX,
            Envelope::Bare => b"",
        }
    }
}

/// The answer to a call that succeeded.
pub(super) async fn response(
    service: &Service,
    context: &CallContext,
    answered: Answered,
    format: AnswerFormat,
    log: &mut RequestLog<'_>,
) -> Result<Response<Body>, Error> {
    let Answered { outcome, replayed, share } = answered;
    let asker = context.asker.as_ref();
    let body = match outcome {
        Outcome::Stream(stream) => {
            let bounds =
                Bounds { keep_alive: service.limits().keep_alive, principal: context.principal.clone() };
            let response = match format {
                AnswerFormat::Json(json) => event_stream::response(stream, json, bounds, log.open_stream()),
                #[cfg(feature = "grpc")]
                AnswerFormat::Grpc(format) => {
                    let numbered = service.is_active(grpc::RESUME, &context.extensions);
                    grpc::stream(stream, format, numbered, bounds, log.open_stream())
                }
            };
            return Ok(with_headers(response, service, context, replayed, log));
        }
        Outcome::Task(shown) => task(&format, shown, share, asker)?,
        Outcome::Page(page) => {
            let encoding = format.encoding();
            // Boxed: only lists need its memory.
            let encoded = service.page_with_room(context, page, move |page| encode_page(page, encoding));
            let (page, share) = Box::pin(encoded).await?;
            format.wrap((b"", b""), page, share)
        }
        Outcome::Message(message) => reply(&format, &Reply::SentMessage(message), share, asker)?,
        Outcome::PushConfig(config) => reply(&format, &Reply::PushConfig(config), share, asker)?,
        Outcome::PushConfigs { configs, next_page_token } => {
            let page = Reply::PushConfigs { configs, next_page_token };
            reply(&format, &page, share, asker)?
        }
        Outcome::PushConfigDeleted => reply(&format, &Reply::PushConfigDeleted, share, asker)?,
        Outcome::Card(card) => {
            let body = reply(&format, &Reply::Card(card), share, asker)?;
            let mut response = respond::json(StatusCode::OK, format.media_type(), body);
            // It may differ by caller, and a shared cache must not show it to anybody else.
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
            response.headers_mut().insert(VARY, HeaderValue::from_static("Authorization"));
            return Ok(with_headers(response, service, context, replayed, log));
        }
    };
    let response = respond::json(StatusCode::OK, format.media_type(), body);
    Ok(with_headers(response, service, context, replayed, log))
}

/// A task. If the caller's encoding is the stored form, the stored bytes are sent without parsing them.
fn task(
    format: &AnswerFormat,
    shown: ShownTask,
    share: Option<Share>,
    asker: Option<&Asker>,
) -> Result<Body, Error> {
    let answers_send = shown.answers_send;
    if format.encoding().is_stored_form()
        && let Some(json) = shown.stored_json()
    {
        let share = match (share, asker) {
            (Some(share), Some(asker)) => Some(asker.fit(share, json.len()).map_err(no_room)?),
            (share, _) => share,
        };
        return Ok(format.wrap(stored::around_reply(answers_send), json, share));
    }
    let task = shown.task()?;
    let task = if answers_send { Reply::SentTask(task) } else { Reply::Task(task) };
    reply(format, &task, share, asker)
}

fn reply(
    format: &AnswerFormat,
    reply: &Reply,
    share: Option<Share>,
    asker: Option<&Asker>,
) -> Result<Body, Error> {
    match format {
        AnswerFormat::Json(JsonFormat { dialect, facts, envelope, .. }) => {
            let mut json = Vec::with_capacity(1024);
            envelope.begin(&mut json);
            dialect.write_reply(&mut json, reply, facts);
            json.extend_from_slice(envelope.end());
            let share = fitting_share(json.len(), share, asker)?;
            let json = Bytes::from(json);
            Ok(Body::from(match share {
                Some(share) => share.holding(json),
                None => json,
            }))
        }
        #[cfg(feature = "grpc")]
        AnswerFormat::Grpc(format) => {
            let message = Bytes::from(format.package.write_reply(reply)?);
            let share = fitting_share(message.len(), share, asker)?;
            Ok(grpc::body(message, share))
        }
    }
}

/// The share of the room for answers that an encoded answer needs. If it has none yet, or one that is too small, it must get
/// one without waiting, because it already takes up memory.
fn fitting_share(bytes: usize, share: Option<Share>, asker: Option<&Asker>) -> Result<Option<Share>, Error> {
    let Some(asker) = asker else { return Ok(None) };
    let share = match share {
        Some(share) => asker.fit(share, bytes),
        None => asker.try_enter(bytes).ok_or(NoRoom),
    };
    share.map(Some).map_err(no_room)
}

/// An answer around JSON that is already encoded.
fn wrap_json(
    envelope: &Envelope,
    (before, after): (&[u8], &[u8]),
    json: Bytes,
    share: Option<Share>,
) -> Body {
    let mut out = Vec::with_capacity(128 + stored_answer::copied(&json));
    envelope.begin(&mut out);
    out.extend_from_slice(before);
    stored_answer::body(out, json, [after, envelope.end()], share)
}

/// A page in the caller's encoding.
fn encode_page(page: &Page, encoding: Encoding) -> Result<Vec<u8>, Error> {
    if encoding.is_stored_form() {
        return cut_page(page);
    }
    let reply = Reply::Tasks(page.read()?);
    match encoding {
        Encoding::Json(dialect) => {
            let mut json = Vec::with_capacity(page.bytes().min(MAX_CAPACITY));
            dialect.write_reply(&mut json, &reply, &AnswerFacts::default());
            Ok(json)
        }
        #[cfg(feature = "grpc")]
        Encoding::Protobuf { package, .. } => package.write_reply(&reply),
    }
}

/// A page in the stored form: the members that a list shows are cut out of the stored JSON without parsing it all.
fn cut_page(page: &Page) -> Result<Vec<u8>, Error> {
    let mut writer = stored::PageWriter::new(&page.call, page.bytes().min(MAX_CAPACITY));
    for listed in &page.tasks {
        if !as_stored(listed).is_some_and(|json| writer.stored(&json)) {
            writer.task(outcome::read(listed)?);
        }
    }
    Ok(writer.end(&page.next_page_token, page.page_size, page.total))
}

/// The task's stored JSON, if its snapshot is of the task's newest version.
fn as_stored(listed: &Listed) -> Option<Bytes> {
    let Listed::Whole(loaded) = listed else { return None };
    let snapshot = loaded.snapshot.as_ref().filter(|it| it.version() == loaded.head.version)?;
    snapshot.task_json()
}

/// Adds the headers that answers to calls have.
fn with_headers(
    mut response: Response<Body>,
    service: &Service,
    context: &CallContext,
    replayed: bool,
    log: &RequestLog<'_>,
) -> Response<Body> {
    if replayed {
        log.replayed();
        response.headers_mut().insert(REPLAY_HEADER, HeaderValue::from_static("true"));
    }
    let active = service.active_extensions(&context.extensions);
    if !active.is_empty()
        && let Ok(value) = HeaderValue::from_str(&active)
    {
        response.headers_mut().insert(incoming::extensions_header(context.generation), value);
    }
    response
}
