//! Encodes outcomes of the service in the caller's dialect. Only this module does so, and [`event_stream`] for the events
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

use super::request_log::RequestLog;
use super::{event_stream, respond, stored_answer};
use crate::engine::no_room;
use crate::net::{Asker, NoRoom, Share};
use crate::service::outcome::{self, Answered, Outcome, Page, ShownTask};
use crate::service::{CallContext, Service};
use crate::store::Listed;

/// Tells a client that its message had been accepted before, and that this is the same answer again.
const REPLAY_HEADER: HeaderName = HeaderName::from_static("a2a-idempotent-replay");
const EXTENSIONS_HEADER: HeaderName = HeaderName::from_static("a2a-extensions");

/// Initial capacity for a page, at most: a list may show much less of its tasks than is stored.
const MAX_CAPACITY: usize = 64 * 1024;

/// How to encode an answer.
pub(super) struct AnswerFormat {
    pub(super) dialect: Dialect,
    pub(super) facts: AnswerFacts,
    pub(super) envelope: Envelope,
    pub(super) media_type: HeaderValue,
    pub(super) http: Version,
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
            let keep_alive = service.limits().keep_alive;
            let response = event_stream::response(
                stream,
                format,
                keep_alive,
                context.principal.clone(),
                log.open_stream(),
            );
            return Ok(with_headers(response, service, context, replayed, log));
        }
        Outcome::Task(shown) => task(&format, shown, share, asker)?,
        Outcome::Page(page) => {
            let dialect = format.dialect;
            // Boxed: only lists need its memory.
            let encoded = service.page_with_room(context, page, move |page| encode_page(page, dialect));
            let (json, share) = Box::pin(encoded).await?;
            wrap_json(&format.envelope, (b"", b""), json, share)
        }
        Outcome::Message(message) => reply(&format, &Reply::SentMessage(message), share, asker)?,
        Outcome::PushConfig(config) => reply(&format, &Reply::PushConfig(config), share, asker)?,
        Outcome::PushConfigs(configs) => {
            let all = Reply::PushConfigs { configs, next_page_token: String::new() };
            reply(&format, &all, share, asker)?
        }
        Outcome::PushConfigDeleted => reply(&format, &Reply::PushConfigDeleted, share, asker)?,
        Outcome::Card(card) => {
            let body = reply(&format, &Reply::Card(card), share, asker)?;
            let mut response = respond::json(StatusCode::OK, format.media_type, body);
            // It may differ by caller, and a shared cache must not show it to anybody else.
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
            response.headers_mut().insert(VARY, HeaderValue::from_static("Authorization"));
            return Ok(with_headers(response, service, context, replayed, log));
        }
    };
    let response = respond::json(StatusCode::OK, format.media_type, body);
    Ok(with_headers(response, service, context, replayed, log))
}

/// A task. If the caller's dialect is the stored form, the stored bytes are sent without parsing them.
fn task(
    format: &AnswerFormat,
    shown: ShownTask,
    share: Option<Share>,
    asker: Option<&Asker>,
) -> Result<Body, Error> {
    let answers_send = shown.answers_send;
    if format.dialect.is_stored_form()
        && let Some(json) = shown.stored_json()
    {
        let share = match (share, asker) {
            (Some(share), Some(asker)) => Some(asker.fit(share, json.len()).map_err(no_room)?),
            (share, _) => share,
        };
        return Ok(wrap_json(&format.envelope, stored::around_reply(answers_send), json, share));
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
    let mut json = Vec::with_capacity(1024);
    format.envelope.begin(&mut json);
    format.dialect.write_reply(&mut json, reply, &format.facts);
    json.extend_from_slice(format.envelope.end());
    Ok(Body::from(with_share(json.into(), share, asker)?))
}

/// The encoded answer with its share of the room for answers. If it has no share yet, or one that is too small, it must get
/// one without waiting, because it already takes up memory.
fn with_share(bytes: Bytes, share: Option<Share>, asker: Option<&Asker>) -> Result<Bytes, Error> {
    let Some(asker) = asker else { return Ok(bytes) };
    let share = match share {
        Some(share) => asker.fit(share, bytes.len()),
        None => asker.try_enter(bytes.len()).ok_or(NoRoom),
    };
    Ok(share.map_err(no_room)?.holding(bytes))
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

/// A page in the caller's dialect.
fn encode_page(page: &Page, dialect: Dialect) -> Result<Vec<u8>, Error> {
    if dialect.is_stored_form() {
        return cut_page(page);
    }
    let mut json = Vec::with_capacity(page.bytes().min(MAX_CAPACITY));
    dialect.write_reply(&mut json, &Reply::Tasks(page.read()?), &AnswerFacts::default());
    Ok(json)
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
        response.headers_mut().insert(EXTENSIONS_HEADER, value);
    }
    response
}
