//! Sends requests and records them with their answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Response, StatusCode, Url};
use tokio::sync::Mutex as AsyncMutex;

use super::answer::{self, Answer};
use super::credentials::Credentials;
use super::detour::{self, Detour};
use super::digest::Challenge;
use super::evidence::{self, Exchange, Received, Sent};
use super::grpc::call::{self, Call, Channel};
use super::grpc::methods::Method;
use super::grpc::{self, frames};
use super::no_answer::NoAnswer;
use super::open::{Open, Source};
use super::request::Request;
use super::socket::{self, Socket};
use super::trust::Trust;
use crate::generation::{Binding, Generation};

#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// How long one answer, or one whole stream, may take.
    pub timeout: Duration,
    pub credentials: Credentials,
}

/// Sends the requests of one case and records them.
#[derive(Debug, Clone)]
pub struct Probe {
    clients: Arc<Clients>,
    options: ProbeOptions,
    around: Option<Arc<Around>>,
    /// The digest challenge that these credentials have answered last.
    challenge: Arc<Mutex<Option<Challenge>>>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    /// HTTP/2 connections of this case, by address and whether the client certificate is shown.
    channels: Arc<AsyncMutex<BTreeMap<(String, bool), Channel>>>,
}

/// One client that shows the client certificate, one that does not: a connection of one must not serve the other.
#[derive(Debug)]
struct Clients {
    known: reqwest::Client,
    stranger: reqwest::Client,
    trust: Trust,
}

/// The way through a proxy.
#[derive(Debug)]
struct Around {
    detour: Detour,
    clients: Clients,
}

/// How long an idle connection is kept. Servers close idle connections, many after 5 s; a request at that moment would
/// be reset, which would look like a fault of the agent.
const IDLE: Duration = Duration::from_secs(1);

impl Probe {
    /// Trusts the system's certificates.
    pub fn new(options: ProbeOptions) -> Result<Self, NoAnswer> {
        Self::trusting(options, &Trust::system().map_err(NoAnswer::new)?)
    }

    pub fn trusting(options: ProbeOptions, trust: &Trust) -> Result<Self, NoAnswer> {
        let clients = Arc::new(Clients::new(&options, trust, |client| client)?);
        Ok(Probe {
            clients,
            options,
            around: None,
            challenge: Arc::default(),
            exchanges: Arc::default(),
            channels: Arc::default(),
        })
    }

    /// The same through a detour. There every request uses a new connection, so that each is affected by the faults.
    pub fn by(&self, detour: Detour) -> Result<Self, NoAnswer> {
        let clients = Clients::new(&self.options, &self.clients.trust, |client| {
            let tunnels = detour.clone();
            let tunnel = reqwest::Proxy::custom(move |url: &Url| tunnels.tunnel(url));
            client.pool_max_idle_per_host(0).proxy(tunnel)
        })?;
        Ok(Probe { around: Some(Arc::new(Around { detour, clients })), ..self.fresh() })
    }

    /// The same directly to the agent.
    pub fn direct(&self) -> Self {
        Probe { around: None, ..self.clone() }
    }

    /// A connection of its own to the host of an address, for bytes that no HTTP client would send.
    pub async fn connect(&self, url: &str) -> Result<Socket, NoAnswer> {
        let config = self.clients.trust.config(self.options.credentials.certificate);
        socket::connect(url, &self.way_to(url)?, config).await
    }

    /// The version of TLS that a handshake with the host of an address agrees on.
    pub async fn tls_version(&self, url: &str) -> Result<String, NoAnswer> {
        let config = self.clients.trust.config(self.options.credentials.certificate);
        socket::version(url, &self.way_to(url)?, config).await
    }

    /// The same without TLS, whatever the address says.
    pub async fn connect_bare(&self, url: &str) -> Result<Socket, NoAnswer> {
        socket::connect_bare(&self.way_to(url)?).await
    }

    /// The actual target of a connection to an address.
    fn way_to(&self, url: &str) -> Result<String, NoAnswer> {
        let (authority, _) =
            detour::place_of(url).ok_or_else(|| NoAnswer::new(format!("{url} is no address")))?;
        let around = self.around.as_ref().and_then(|around| around.detour.to(&authority));
        Ok(around.map_or(authority, |address| address.to_string()))
    }

    /// The same, with a new, empty record.
    pub fn fresh(&self) -> Self {
        Probe { exchanges: Arc::default(), channels: Arc::default(), ..self.clone() }
    }

    /// Without credentials.
    pub fn stranger(&self) -> Self {
        self.acting_as(Credentials::default())
    }

    /// With other credentials.
    pub fn acting_as(&self, credentials: Credentials) -> Self {
        let mut options = self.options.clone();
        options.credentials = credentials;
        Probe { options, challenge: Arc::default(), ..self.clone() }
    }

    /// With a shorter timeout.
    pub fn within(&self, timeout: Duration) -> Self {
        let mut other = self.clone();
        other.options.timeout = timeout.min(self.options.timeout);
        other
    }

    pub fn trust(&self) -> &Trust {
        &self.clients.trust
    }

    pub fn credentials(&self) -> &Credentials {
        &self.options.credentials
    }

    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// The exchanges so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends and reads the whole answer. A stream is read until it closes, `enough` returns true, or the timeout.
    pub async fn ask(
        &self,
        generation: Generation,
        binding: Binding,
        request: &Request,
    ) -> Result<Answer, NoAnswer> {
        self.ask_until(generation, binding, request, |_| false).await
    }

    pub async fn ask_until(
        &self,
        generation: Generation,
        binding: Binding,
        request: &Request,
        enough: impl Fn(&[serde_json::Value]) -> bool + Send,
    ) -> Result<Answer, NoAnswer> {
        let mut open = self.open(request).await?;
        if !open.is_stream() {
            let body = open.rest().await?;
            return Ok(answer::read(generation, binding, &open.received, &body));
        }
        let (mut events, mut frames, mut error) = (Vec::new(), Vec::new(), None);
        let mut closed = false;
        while error.is_none() && !enough(&events) {
            match tokio::time::timeout(open.left(), open.next_frame()).await {
                Ok(Ok(Some(frame))) => {
                    match answer::read_event(generation, binding, &frame) {
                        Ok(event) => events.push(event),
                        Err(found) => error = Some(found),
                    }
                    frames.push(frame);
                }
                Ok(Ok(None)) => {
                    closed = true;
                    break;
                }
                Ok(Err(trouble)) => return Err(trouble),
                Err(_patience) => break,
            }
        }
        let (status, headers) = (open.received.status, open.received.headers.clone());
        if let Some(error) = error.take_if(|_| binding == Binding::Grpc && events.is_empty()) {
            // Whether the head was sent before the error makes no difference in gRPC.
            return Ok(Answer::Error(error));
        }
        Ok(Answer::Stream { status, headers, events, frames, closed, error })
    }

    /// Sends, and returns as soon as the head of the answer has arrived.
    pub async fn open(&self, request: &Request) -> Result<Open, NoAnswer> {
        if let Some(method) = request.grpc() {
            return self.open_grpc(method, request).await;
        }
        let started = Instant::now();
        let sent = self.masked(request);
        let answered = tokio::time::timeout(self.options.timeout, self.send(request)).await;
        let response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(trouble)) => return Err(self.unanswered(sent, trouble, started)),
            Err(_) => return Err(self.unanswered(sent, self.too_late(), started)),
        };
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let received =
            Received { status: response.status().as_u16(), headers: headers.collect(), body: String::new() };
        let index = self.note(sent, Some(received.clone()), None, started);
        Ok(Open::new(received, Source::Http(response), self, index, started))
    }

    fn too_late(&self) -> NoAnswer {
        NoAnswer::new(format!("no answer within {} s", self.options.timeout.as_secs_f32()))
    }

    fn unanswered(&self, sent: Sent, trouble: NoAnswer, started: Instant) -> NoAnswer {
        self.note(sent, None, Some(trouble.why.clone()), started);
        trouble
    }

    /// The same over gRPC: a stream is open once its head is there, any other answer once it is whole.
    async fn open_grpc(&self, method: Method, request: &Request) -> Result<Open, NoAnswer> {
        let started = Instant::now();
        let sent = self.masked(request);
        let params = request.body.as_deref().and_then(super::json::read).unwrap_or_default();
        let answering = async {
            let message = method.encoded(&params).map_err(NoAnswer::new)?;
            let mut call = self.call(request, frames::framed(0, &message)).await?;
            let opens =
                request.streams && call.status == 200 && call::find(&call.head, "grpc-status").is_none();
            if opens && grpc::is_grpc(&call)? {
                return Ok((call, None));
            }
            let whole = grpc::whole(&mut call, method).await?;
            Ok((call, Some(whole)))
        };
        let answered = tokio::time::timeout(self.options.timeout, answering).await;
        let (call, whole) = match answered {
            Ok(Ok(answered)) => answered,
            Ok(Err(trouble)) => return Err(self.unanswered(sent, trouble, started)),
            Err(_) => return Err(self.unanswered(sent, self.too_late(), started)),
        };
        let mut headers = call.head.clone();
        headers.extend(call.trailers.iter().flatten().cloned());
        let status = whole.as_ref().map_or(call.status, |whole| whole.status);
        let received = Received { status, headers, body: String::new() };
        let index = self.note(sent, Some(received.clone()), None, started);
        Ok(match whole {
            None => Open::new(received, Source::Grpc(Box::new(call), method), self, index, started),
            Some(whole) => {
                let open = Open::new(received, Source::Whole, self, index, started);
                open.with(if whole.body.is_null() { Vec::new() } else { whole.body.to_string().into_bytes() })
            }
        })
    }

    /// A call with a body that is framed already; the evidence is left to the caller.
    async fn call(&self, request: &Request, body: Vec<u8>) -> Result<Call, NoAnswer> {
        let channel = self.channel(&request.url).await?;
        let headers = request.headers.iter().chain(&self.options.credentials.headers).cloned().collect();
        call::send(channel, &request.url, &headers, body).await
    }

    /// A call with any bytes, for checks of what gRPC's clients never send; its answer is not yet understood.
    pub(crate) async fn call_raw(&self, request: &Request, body: Vec<u8>) -> Result<Call, NoAnswer> {
        let started = Instant::now();
        let sent = self.masked(request);
        match tokio::time::timeout(self.options.timeout, self.call(request, body)).await {
            Ok(Ok(call)) => {
                let (status, headers) = (call.status, call.head.clone());
                self.note(sent, Some(Received { status, headers, body: String::new() }), None, started);
                Ok(call)
            }
            Ok(Err(trouble)) => Err(self.unanswered(sent, trouble, started)),
            Err(_) => Err(self.unanswered(sent, self.too_late(), started)),
        }
    }

    /// HTTP/2 to the host of an address: the connection that this case has, or a new one. Through a proxy always a new
    /// one, so that each call is affected by the faults.
    async fn channel(&self, url: &str) -> Result<Channel, NoAnswer> {
        let certificate = self.options.credentials.certificate;
        let config = self.clients.trust.http2(certificate);
        let way = self.way_to(url)?;
        if self.around.is_some() {
            return call::channel(socket::connect_http2(url, &way, &config).await?).await;
        }
        let mut channels = self.channels.lock().await;
        if let Some(known) = channels.get_mut(&(way.clone(), certificate))
            && known.ready().await.is_ok()
        {
            return Ok(known.clone());
        }
        let fresh = call::channel(socket::connect_http2(url, &way, &config).await?).await?;
        channels.insert((way, certificate), fresh.clone());
        Ok(fresh)
    }

    /// Sends; a digest challenge is answered once.
    async fn send(&self, request: &Request) -> Result<Response, NoAnswer> {
        let response = self.send_once(request).await?;
        if self.options.credentials.digest.is_none() || response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let Some(challenge) = Challenge::find(values.filter_map(|value| value.to_str().ok())) else {
            return Ok(response);
        };
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge);
        self.send_once(request).await
    }

    async fn send_once(&self, request: &Request) -> Result<Response, NoAnswer> {
        let credentials = &self.options.credentials;
        let method = reqwest::Method::from_bytes(request.method.as_bytes())
            .map_err(|error| NoAnswer::new(error.to_string()))?;
        let clients = self.around.as_ref().map_or(&*self.clients, |around| &around.clients);
        let client = if credentials.certificate { &clients.known } else { &clients.stranger };
        let address = credentials.address(&request.url, false);
        let around = self.around.as_ref().and_then(|around| around.detour.around(&address));
        let mut builder = match &around {
            Some((url, host)) => client.request(method, url).header("host", host),
            None => client.request(method, &address),
        };
        for (name, value) in request.headers.iter().chain(&credentials.headers) {
            builder = builder.header(name, value);
        }
        if let Some(value) = self.digest(request, &address) {
            builder = builder.header("authorization", value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        builder.send().await.map_err(|error| NoAnswer::of(&error))
    }

    /// The answer to the last digest challenge, for this request.
    fn digest(&self, request: &Request, address: &str) -> Option<String> {
        let login = self.options.credentials.digest.as_ref()?;
        let mut challenge = self.challenge.lock().unwrap_or_else(PoisonError::into_inner);
        let url = Url::parse(address).ok()?;
        let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
        let target = format!("{}{query}", url.path());
        let client = uuid::Uuid::new_v4().simple().to_string();
        Some(challenge.as_mut()?.answer(login, &request.method, &target, &client))
    }

    fn note(
        &self,
        sent: Sent,
        received: Option<Received>,
        trouble: Option<String>,
        started: Instant,
    ) -> usize {
        let mut exchanges = self.lock();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        exchanges.push(Exchange { sent, received, trouble, duration_ms });
        exchanges.len() - 1
    }

    /// Masks credentials for reports.
    fn masked(&self, request: &Request) -> Sent {
        let credentials = &self.options.credentials;
        let hidden = |name: &str| (name.to_owned(), "***".to_owned());
        let secret = credentials.headers.iter().map(|(name, _)| hidden(name));
        let digest = credentials.digest.iter().map(|_| hidden("Authorization"));
        let plain = request.headers.iter().map(|(name, value)| {
            let secret = ["authorization", "cookie", "x-api-key", "proxy-authorization"];
            let hide = secret.iter().any(|known| name.eq_ignore_ascii_case(known));
            (name.clone(), if hide { "***".to_owned() } else { value.clone() })
        });
        Sent {
            method: request.method.clone(),
            url: credentials.address(&request.url, true),
            headers: plain.chain(secret).chain(digest).collect(),
            body: request.body.as_deref().map(evidence::shown),
        }
    }
}

impl Clients {
    fn new(
        options: &ProbeOptions,
        trust: &Trust,
        more: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, NoAnswer> {
        let client = |shows_certificate: bool| {
            let plain = reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(options.timeout.min(Duration::from_secs(10)))
                .pool_idle_timeout(IDLE)
                .tls_backend_preconfigured(trust.config(shows_certificate).as_ref().clone())
                .no_proxy();
            more(plain).build().map_err(|error| NoAnswer::of(&error))
        };
        Ok(Clients { known: client(true)?, stranger: client(false)?, trust: trust.clone() })
    }
}
