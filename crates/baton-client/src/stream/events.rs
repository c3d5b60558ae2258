//! One connection of a stream: server-sent events, or messages of gRPC, each decoded by the interface's codec.

use baton_protocol::wire::StreamItem;
use baton_protocol::wire::jsonrpc::{self, Response, RpcId};
use baton_protocol::wire::peer_error::{PeerError, error_event};
use baton_protocol::wire::peer_state::FromPeer;
use baton_protocol::wire::sse::{SseEvent, SseParser};

use crate::choose::{Binding, Interface};
use crate::error::Error;
use crate::http::Answer;
#[cfg(feature = "grpc")]
use crate::transport::grpc;
use crate::transport::{agent_error, bounded, is_same_id, result_of};

/// An open connection.
#[derive(Debug)]
pub(crate) enum Events {
    ServerSent(Box<ServerSent>),
    #[cfg(feature = "grpc")]
    Grpc(Box<grpc::Messages>),
}

impl Events {
    /// Errors before the first event come as an ordinary answer.
    pub(crate) async fn open(
        interface: Interface,
        id: RpcId,
        answer: Answer,
        event_limit: usize,
        reply_limit: usize,
    ) -> Result<Self, Error> {
        #[cfg(feature = "grpc")]
        if interface.binding == Binding::Grpc {
            let messages = grpc::Messages::open(interface, answer, event_limit).await?;
            return Ok(Self::Grpc(Box::new(messages)));
        }
        let events = ServerSent::open(interface, id, answer, event_limit, reply_limit).await?;
        Ok(Self::ServerSent(Box::new(events)))
    }

    /// The next event; `None` when the agent has closed the stream. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, Error> {
        match self {
            Self::ServerSent(events) => events.next().await,
            #[cfg(feature = "grpc")]
            Self::Grpc(messages) => messages.next().await,
        }
    }
}

/// Server-sent events.
#[derive(Debug)]
pub(crate) struct ServerSent {
    interface: Interface,
    id: RpcId,
    answer: Answer,
    parser: SseParser,
    limit: usize,
    /// Reported after the events that came before it.
    failed: Option<Error>,
    /// The answer was one JSON document, and this is its event.
    single: Option<Frame>,
    is_stream: bool,
}

/// A decoded event.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    /// When the agent wants a lost connection to be taken up again, in milliseconds.
    pub(crate) retry: Option<u64>,
    pub(crate) item: StreamItem,
    /// The name of its state, if that is none of the eight.
    pub(crate) unknown_state: Option<String>,
    /// What it was read from.
    pub(crate) json: String,
}

impl Frame {
    /// An event without an id.
    pub(crate) fn new(item: FromPeer<StreamItem>, json: String) -> Self {
        let unknown_state = item.unknown_state().map(str::to_owned);
        Frame { id: None, retry: None, item: item.value, unknown_state, json }
    }
}

impl ServerSent {
    /// Errors may have status 200.
    async fn open(
        interface: Interface,
        id: RpcId,
        mut answer: Answer,
        event_limit: usize,
        reply_limit: usize,
    ) -> Result<Self, Error> {
        let is_stream = answer.status() < 300 && answer.media_type() == "text/event-stream";
        let mut single = None;
        if is_stream {
            answer.has_no_deadline();
        } else {
            let body = answer.bytes(reply_limit).await?;
            let text = result_of(&interface, &id, &answer, &body)?;
            // Some servers answer a stream that has one event with just that.
            let item = interface.dialect().read_stream_item(text);
            let item = item.map_err(|error| answer.malformed(error.to_string()))?;
            single = Some(Frame::new(item, text.to_owned()));
        }
        let parser = SseParser::new(event_limit);
        Ok(ServerSent { interface, id, answer, parser, limit: event_limit, failed: None, single, is_stream })
    }

    async fn next(&mut self) -> Result<Option<Frame>, Error> {
        if !self.is_stream {
            return Ok(self.single.take());
        }
        loop {
            if let Some(event) = self.parser.next_event() {
                return self.decode(event).map(Some);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(chunk) = self.answer.chunk().await? else { return Ok(None) };
            if self.parser.feed(&chunk).is_err() {
                self.failed = Some(self.answer.too_large(self.limit));
            }
        }
    }

    fn decode(&self, event: SseEvent) -> Result<Frame, Error> {
        let SseEvent { id, event: name, data, retry } = event;
        let generation = self.interface.generation;
        let text = match self.interface.binding {
            Binding::JsonRpc => match jsonrpc::parse_response(data.as_bytes()) {
                Ok((_, Response::Error { code, message, data })) => {
                    let peer = PeerError::of_rpc(generation, code, message, data, Some(self.answer.status()));
                    return Err(agent_error(&self.answer, peer).into());
                }
                Ok((Some(said), _)) if !is_same_id(&said, &self.id) => {
                    return Err(self.answer.malformed("an event of another request"));
                }
                Ok((_, Response::Result(result))) => result,
                Err(error) => return Err(self.answer.malformed(error.to_string())),
            },
            Binding::HttpJson | Binding::Grpc => match error_event(name.as_deref(), &data) {
                Some(body) => {
                    let peer = PeerError::of_http(generation, None, body);
                    return Err(agent_error(&self.answer, peer).into());
                }
                None => &data,
            },
        };
        let item = self.interface.dialect().read_stream_item(bounded(text, &self.answer)?);
        let item = item.map_err(|error| self.answer.malformed(error.to_string()))?;
        Ok(Frame { id, retry, ..Frame::new(item, text.to_owned()) })
    }
}
