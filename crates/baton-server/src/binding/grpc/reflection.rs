//! `grpc.reflection`: tells a client, such as grpcurl, which services and messages there are.

use std::sync::Arc;

use axum::body::Body;
use baton_protocol::wire::pb::framing::{Deframer, PREFIX};
use baton_protocol::wire::pb::{REFLECTION_SERVICES, Reflection};
use baton_protocol::{Error, ErrorKind};
use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::messages::{self, Messages};
use super::status::Ending;
use super::{Deadline, MEDIA_TYPE, Refused, in_time, message, plain_failure};
use crate::binding::respond;
use crate::engine::Engine;
use crate::engine::caller::Caller;
use crate::engine::stream_slots::StreamSlot;
use crate::site::Site;

/// Longest request: the name of a file or a symbol, and of a host.
const MAX_REQUEST: usize = 4 * 1024;

/// What all requests of a stream may have together. A client that wants to know everything needs a tenth of it.
const MAX_REQUESTS: usize = 64 * 1024;

/// The template of a path that is one of reflection.
pub(in crate::binding) fn route(path: &str) -> Option<&'static str> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let version = REFLECTION_SERVICES.iter().position(|known| *known == service)?;
    let routes = [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ];
    (method == "ServerReflectionInfo").then(|| routes[version])
}

/// The caller is authenticated. The stream ends soon without requests, so its credential is not looked at again.
pub(in crate::binding) fn handle(
    site: &Site,
    reflection: &Arc<Reflection>,
    caller: &Caller,
    deadline: Deadline,
    parts: &Parts,
    body: Body,
) -> Response<Body> {
    let begin = move || -> Result<Exchange, Refused> {
        let deadline = deadline.checked()?;
        message::check_encoding(&parts.headers)?;
        let slot = site.nearest().stream_slot_of(caller)?;
        let requests = Requests { body, ended: false, messages: Deframer::new(MAX_REQUEST), taken: 0 };
        let (reflection, engine) = (Arc::clone(reflection), site.engine().clone());
        Ok(Exchange { reflection, requests, engine, deadline, _slot: slot })
    };
    match begin() {
        Ok(exchange) => respond::json(StatusCode::OK, MEDIA_TYPE, messages::body(exchange)),
        Err(refused) => plain_failure(&Ending::plain(&refused)),
    }
}

/// Answers each request of the stream before it reads the next one.
struct Exchange {
    reflection: Arc<Reflection>,
    requests: Requests,
    engine: Engine,
    deadline: Option<Instant>,
    _slot: StreamSlot,
}

impl Messages for Exchange {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Ending> {
        let closing = self.engine.closing().clone();
        let next = async {
            tokio::select! {
                next = self.requests.next() => next,
                () = closing.cancelled() => {
                    Err(Error::new(ErrorKind::Unavailable, "The server is stopping").into())
                }
            }
        };
        let answered = match in_time(self.deadline, next).await {
            Ok(Some(request)) => self.reflection.answer(request).map(Some).map_err(Refused::from),
            Ok(None) => Ok(None),
            Err(refused) => Err(refused),
        };
        answered.map_err(|refused| Ending::plain(&refused))
    }
}

/// The messages of the client.
struct Requests {
    body: Body,
    ended: bool,
    messages: Deframer,
    /// Bytes of messages so far.
    taken: usize,
}

impl Requests {
    async fn next(&mut self) -> Result<Option<Bytes>, Refused> {
        loop {
            if let Some(message) = self.whole_message()? {
                return Ok(Some(message));
            }
            if self.ended {
                return match self.messages.is_empty() {
                    true => Ok(None),
                    false => Err(Error::new(ErrorKind::InvalidRequest, "The message ends too early").into()),
                };
            }
            match self.body.frame().await {
                None => self.ended = true,
                // Also for a while without a request: `baton-net` gives such a body up.
                Some(Err(error)) => {
                    let idle = Error::new(ErrorKind::Unavailable, "No request came; open another stream");
                    return Err(idle.with_log(error).into());
                }
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.messages.feed(&piece);
                    }
                }
            }
        }
    }

    fn whole_message(&mut self) -> Result<Option<Bytes>, Refused> {
        let whole = self.messages.next().map_err(|why| message::unframed(why, MAX_REQUEST))?;
        self.taken += whole.as_ref().map_or(0, |message| PREFIX + message.len());
        match self.taken > MAX_REQUESTS {
            true => {
                let all = format!("The requests have more than {MAX_REQUESTS} bytes");
                Err(Error::new(ErrorKind::PayloadTooLarge, all).into())
            }
            false => Ok(whole),
        }
    }
}
