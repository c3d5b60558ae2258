//! The client of one agent: its card, the interface in use, and the path of every call.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use baton_protocol::domain::AgentCard;
use baton_protocol::generation::VERSION_HEADER;
use baton_protocol::operation::{Call, Reply};
use baton_protocol::wire::jsonrpc::RpcId;
use baton_protocol::{ErrorKind, Generation};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::builder::Builder;
use crate::choose::{Binding, Interface};
use crate::credentials::Authorizer;
use crate::credentials::oauth::{Caller, Flow, Prompt, Token};
use crate::discover::Discovered;
use crate::error::{Error, TransportKind};
use crate::http::{Answer, Http, Request};
use crate::options::{Reconnects, Retries, SizeLimits, Timeouts};
use crate::origin::Origin;
use crate::retry::Attempts;
use crate::stream::Events;
#[cfg(feature = "grpc")]
use crate::stream::Opening;
#[cfg(feature = "grpc")]
use crate::transport::grpc;
use crate::transport::{Received, encode, read_reply};

/// Talks to one agent. Clones are cheap and share connections.
///
/// Made by [`Client::connect`], or by [`Client::builder`] for everything that can be set.
#[derive(Debug, Clone)]
pub struct Client(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) http: Arc<Http>,
    pub(crate) discovered: Discovered,
    /// The one in use.
    pub(crate) card: RwLock<Arc<AgentCard>>,
    /// The best first. At least one.
    pub(crate) interfaces: Vec<Interface>,
    /// Which of them is in use: another, when one cannot be reached.
    pub(crate) current: AtomicUsize,
    /// It has answered at least once.
    pub(crate) has_answered: AtomicBool,
    /// Webhooks of 0.3 are sent in HTTP+JSON as the JavaScript SDK reads them; else as Python and Go do.
    pub(crate) bare_webhooks: AtomicBool,
    pub(crate) next_id: AtomicU64,
    pub(crate) authorizer: Authorizer,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: SizeLimits,
    pub(crate) retries: Retries,
    pub(crate) reconnects: Reconnects,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Vec<String>,
}

const EXTENSIONS_HEADER: HeaderName = HeaderName::from_static("a2a-extensions");
const OLD_EXTENSIONS_HEADER: HeaderName = HeaderName::from_static("x-a2a-extensions");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Servers refuse long headers.
const LONGEST_EVENT_ID: usize = 4096;

impl Client {
    /// A client with the defaults: `https://host`, the address of a card, or a file with one.
    pub async fn connect(agent: &str) -> Result<Self, Error> {
        Self::builder().connect(agent).await
    }

    /// Everything that can be set.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The agent's card: the one that was found, or the extended one as soon as it was read ([`extended_card`]).
    ///
    /// [`extended_card`]: Self::extended_card
    pub fn card(&self) -> Arc<AgentCard> {
        Arc::clone(&self.0.card.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The agent has told more, or something newer, of itself.
    pub(crate) fn replace_card(&self, card: Arc<AgentCard>) {
        *self.0.card.write().unwrap_or_else(PoisonError::into_inner) = card;
    }

    /// The card that was found, with its source.
    pub fn discovered(&self) -> &Discovered {
        &self.0.discovered
    }

    /// Where calls go.
    pub fn interface(&self) -> &Interface {
        &self.0.interfaces[self.0.current.load(Ordering::Relaxed)]
    }

    /// Schemes that the card requires and that no credential was given for. Calls are made nevertheless: the agent may be
    /// less strict than its card.
    pub fn missing_credentials(&self) -> &[String] {
        self.0.authorizer.missing()
    }

    /// True if there are credentials, or headers of the user's own, that the interface does not get, because it is at another
    /// origin than the one the user named. [`Builder::trust_origin`] allows it.
    pub fn withholds_credentials(&self) -> bool {
        self.0.authorizer.withholds(&self.interface().url, !self.0.headers.is_empty())
    }

    /// Where credentials and headers may go: the origin that the user named, and those that the user trusts. With a card from
    /// a file, those of its interfaces.
    pub fn trusted_origins(&self) -> &[Origin] {
        self.0.authorizer.trusted()
    }

    /// Obtains a token from the authorization server that the card names, with the user's help where the flow needs it, and
    /// uses it from now on. `prompt` is called with what the user has to do. Needs
    /// [`Credential::OAuth`](crate::Credential).
    pub async fn log_in(&self, flow: Flow, prompt: impl Fn(Prompt) + Send + Sync) -> Result<Token, Error> {
        let source = self.0.authorizer.token_source().ok_or_else(|| {
            Error::Credentials("the card has no scheme with an authorization server".to_owned())
        })?;
        source.log_in(&self.caller(), flow, &prompt).await
    }

    /// Whether the card says that the agent streams.
    pub(crate) fn streams(&self) -> bool {
        self.card().capabilities.streaming == Some(true)
    }

    pub(crate) fn reconnects(&self) -> &Reconnects {
        &self.0.reconnects
    }

    pub(crate) fn size_limits(&self) -> &SizeLimits {
        &self.0.limits
    }

    pub(crate) fn retries(&self) -> &Retries {
        &self.0.retries
    }

    /// Makes any call that does not stream, again if that is safe. The methods for single operations do more: this one
    /// returns what the agent answered, and waits for nothing.
    pub async fn call(&self, call: Call) -> Result<Reply, Error> {
        if call.operation().facts().streams {
            return Err(Error::Invalid(format!("{} is answered with a stream", call.operation().facts().v1)));
        }
        self.call_peer(&call, self.retries()).await.map(|received| received.reply.value)
    }

    /// The same, with everything that is known of the answer.
    pub(crate) async fn call_peer(&self, call: &Call, retries: &Retries) -> Result<Received, Error> {
        self.until_answered(retries, call, |at| self.call_once(at, call)).await
    }

    /// Makes a call again and again: at the next interface if this one cannot be reached, in another form if the agent
    /// wants that, and as often as the retries allow. `once` is given the interface.
    pub(crate) async fn until_answered<T, F>(
        &self,
        retries: &Retries,
        call: &Call,
        once: impl Fn(usize) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut attempts = Attempts::new(retries, call.operation());
        loop {
            let at = self.0.current.load(Ordering::Relaxed);
            match once(at).await {
                Ok(answered) => return Ok(answered),
                Err(error) if self.moved_on(at, &error) || self.takes_bare_webhook(at, call, &error) => {}
                Err(error) => attempts.again(error).await?,
            }
        }
    }

    /// True if a webhook was refused for its form and is sent in the other one from now on. The specification of 0.3 leaves
    /// the form open, and servers understand one of the two.
    fn takes_bare_webhook(&self, at: usize, call: &Call, error: &Error) -> bool {
        let Interface { binding, generation, .. } = &self.0.interfaces[at];
        (*binding, *generation) == (Binding::HttpJson, Generation::V0_3)
            && matches!(call, Call::CreatePushConfig(_))
            && error.kind() == Some(ErrorKind::InvalidParams)
            && !self.0.bare_webhooks.swap(true, Ordering::Relaxed)
    }

    pub(crate) async fn call_once(&self, at: usize, call: &Call) -> Result<Received, Error> {
        let interface = &self.0.interfaces[at];
        let (id, mut answer, sent) = self.exchange(interface, call, None).await?;
        let reply = read_reply(interface, call, &id, &mut answer, self.0.limits.reply).await;
        reply.map_err(|error| with_fact(error, sent))
    }

    /// Opens a stream. One that is lost later is not opened again here.
    pub(crate) async fn open_stream(
        &self,
        call: &Call,
        last_event_id: Option<&str>,
        retries: &Retries,
    ) -> Result<Events, Error> {
        #[cfg(feature = "grpc")]
        if self.0.interfaces[self.0.current.load(Ordering::Relaxed)].binding == Binding::Grpc {
            let (client, call, last) = (self.clone(), call.clone(), last_event_id.map(str::to_owned));
            let retries = retries.clone();
            // With its retries: an interface that cannot be reached may take longer to say so than the head is waited for.
            return Opening::begin(async move {
                client.until_answered(&retries, &call, |at| client.events(at, &call, last.as_deref())).await
            })
            .await;
        }
        self.until_answered(retries, call, |at| self.events(at, call, last_event_id)).await
    }

    /// The events of a new stream, once its head has come.
    async fn events(&self, at: usize, call: &Call, last_event_id: Option<&str>) -> Result<Events, Error> {
        let interface = &self.0.interfaces[at];
        let (id, answer, sent) = self.exchange(interface, call, last_event_id).await?;
        let SizeLimits { event, reply, .. } = self.0.limits;
        let events = Events::open(interface.clone(), id, answer, event, reply).await;
        events.map_err(|error| with_fact(error, sent))
    }

    /// True if the interface cannot be reached and another one is tried from now on. An interface that has answered before is
    /// only away for a while, and those at the same origin are as far away as it is.
    fn moved_on(&self, at: usize, error: &Error) -> bool {
        let unreachable = error.transport().is_some_and(|error| {
            use TransportKind::{Connect, Timeout, Tls};
            !error.may_have_reached() && matches!(error.kind(), Connect | Timeout | Tls)
        });
        if !unreachable || self.0.has_answered.load(Ordering::Relaxed) {
            return false;
        }
        let origin = |at: usize| Origin::of(&self.0.interfaces[at].url);
        // After the last one the retries begin, with the last one.
        let Some(next) = (at + 1..self.0.interfaces.len()).find(|next| origin(*next) != origin(at)) else {
            return false;
        };
        let _ = self.0.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
        true
    }

    /// Sends a call and waits for the head of its answer. A challenge is answered once. Also tells whether credentials
    /// were sent.
    pub(crate) async fn exchange(
        &self,
        interface: &Interface,
        call: &Call,
        last_event_id: Option<&str>,
    ) -> Result<(RpcId, Answer, bool), Error> {
        let mut challenged = false;
        loop {
            let id = RpcId::number(self.0.next_id.fetch_add(1, Ordering::Relaxed));
            let mut request = self.request(interface, call, &id, last_event_id)?;
            let sent =
                self.0.authorizer.apply(&self.caller(), &mut request).await? || has_own(&request.headers);
            let challenge_for = request.clone();
            let answer = self.0.http.send(request).await?;
            self.0.has_answered.store(true, Ordering::Relaxed);
            if answer.is_unauthenticated() && !challenged {
                challenged = true;
                if self.0.authorizer.challenged(&challenge_for, &answer.challenges()).await {
                    continue;
                }
            }
            return Ok((id, answer, sent));
        }
    }

    /// For everything up to the end of an answer, or to the head of a stream.
    fn patience(&self, call: &Call) -> Option<Duration> {
        let Timeouts { call: usual, send, idle, .. } = self.0.timeouts;
        match call {
            // The answer comes when the agent has done its work.
            Call::SendMessage(message) if !message.return_immediately => send,
            Call::SendMessage(_) | Call::SendStreamingMessage(_) => Some(send.unwrap_or(idle)),
            _ => Some(usual),
        }
    }

    fn caller(&self) -> Caller {
        let Shared { http, timeouts, limits, .. } = &*self.0;
        Caller { http: Arc::clone(http), timeouts: timeouts.clone(), limits: limits.clone() }
    }

    fn request(
        &self,
        interface: &Interface,
        call: &Call,
        id: &RpcId,
        last_event_id: Option<&str>,
    ) -> Result<Request, Error> {
        let encoded = encode(interface, call, id, self.0.bare_webhooks.load(Ordering::Relaxed))?;
        let operation = call.operation();
        let streams = operation.facts().streams;
        let is_grpc = interface.binding == Binding::Grpc;
        let patience = self.patience(call);
        let mut headers = HeaderMap::new();
        if encoded.body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(encoded.content_type));
        }
        if is_grpc {
            #[cfg(feature = "grpc")]
            grpc::add_metadata(&mut headers, patience.filter(|_| !streams));
        } else {
            let accept = match streams {
                // Errors come as JSON.
                true => "text/event-stream, application/json, application/a2a+json",
                false => "application/json, application/a2a+json",
            };
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        // 0.1 has no versions.
        if interface.generation != Generation::V0_1 {
            let version = HeaderValue::from_static(interface.generation.version());
            headers.insert(HeaderName::from_static(VERSION_HEADER), version);
        }
        let extensions = self.extensions(interface, streams);
        if !extensions.is_empty() {
            let name = match interface.generation {
                Generation::V1 => EXTENSIONS_HEADER,
                Generation::V0_3 | Generation::V0_1 => OLD_EXTENSIONS_HEADER,
            };
            headers.insert(name, crate::http::header_value("extensions", &extensions.join(","))?);
        }
        // Ids are the agent's choice. One that no header can hold is no help, as if there were none.
        let last = last_event_id.filter(|last| last.len() <= LONGEST_EVENT_ID);
        if let Some(Ok(last)) = last.map(|last| HeaderValue::from_bytes(last.as_bytes())) {
            headers.insert(LAST_EVENT_ID, last);
        }
        let mut request = Request {
            method: encoded.method,
            url: encoded.url,
            headers,
            body: encoded.body,
            http2: is_grpc,
            shown: self.shown(interface, call),
            secret_query: Vec::new(),
            with_certificate: false,
            total: patience,
            idle: self.0.timeouts.idle,
        };
        // The user's own headers may hold secrets, too.
        if self.0.authorizer.trusts(&request) {
            for (name, value) in &self.0.headers {
                request.headers.append(name.clone(), value.clone());
            }
        }
        Ok(request)
    }
}

#[cfg(feature = "grpc")]
impl Client {
    /// The user's, and the one with which a stream over gRPC can be resumed.
    fn extensions(&self, interface: &Interface, streams: bool) -> Vec<&str> {
        let needed =
            (streams && interface.binding == Binding::Grpc).then(|| grpc::resume_extension(self)).flatten();
        let own = self.0.extensions.iter().map(String::as_str);
        own.chain(needed.filter(|needed| !self.0.extensions.iter().any(|own| own == needed))).collect()
    }

    /// What a body of gRPC says.
    fn shown(&self, interface: &Interface, call: &Call) -> Option<Bytes> {
        let is_shown = interface.binding == Binding::Grpc && self.0.http.is_observed();
        is_shown.then(|| grpc::shown(interface, call))
    }
}

#[cfg(not(feature = "grpc"))]
impl Client {
    fn extensions(&self, _: &Interface, _: bool) -> Vec<&str> {
        self.0.extensions.iter().map(String::as_str).collect()
    }

    fn shown(&self, _: &Interface, _: &Call) -> Option<Bytes> {
        None
    }
}

/// Whether a header that the user added is a credential.
fn has_own(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key(header::COOKIE)
}

/// Notes on an error whether credentials had been sent. On every one: agents refuse with many statuses and codes.
pub(crate) fn with_fact(mut error: Error, sent: bool) -> Error {
    if let Error::Agent(agent) = &mut error {
        agent.credentials_sent = sent;
    }
    error
}
