//! Sends requests and keeps what was sent and received.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::answer::{self, Answer};
use super::detour::Detour;
use super::evidence::{self, Exchange, Received, Sent};
use super::request::Request;
use super::sse::Reader;
use crate::generation::{Binding, Generation};

/// Largest answer that is read.
const MOST_ANSWER: usize = 16 * 1024 * 1024;

/// What goes with every request unless a case leaves it out.
#[derive(Clone, Default)]
pub struct Credentials {
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.headers.iter().map(|(name, _)| name)).finish()
    }
}

#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// How long one answer, or one whole stream, may take.
    pub timeout: Duration,
    pub credentials: Credentials,
}

/// One case's hands: sends, waits, remembers.
#[derive(Debug, Clone)]
pub struct Probe {
    http: reqwest::Client,
    options: ProbeOptions,
    detour: Option<Arc<Detour>>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// How long a connection that nobody uses is kept. Servers close theirs, many after 5 s; a request that meets that moment
/// is reset, which would be held against the agent.
const IDLE: Duration = Duration::from_secs(1);

/// No answer came. What it is like decides whether the agent or the way to it is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(pub String);

impl Probe {
    pub fn new(options: ProbeOptions) -> Result<Self, NoAnswer> {
        let http = client(&options).build().map_err(|error| NoAnswer(error.to_string()))?;
        Ok(Probe { http, options, detour: None, exchanges: Arc::default() })
    }

    /// The same by another way. Every request has a connection of its own there, so that each meets what the way does
    /// to connections.
    pub fn by(&self, detour: Detour) -> Result<Self, NoAnswer> {
        let http = client(&self.options).pool_max_idle_per_host(0).build();
        let http = http.map_err(|error| NoAnswer(error.to_string()))?;
        Ok(Probe { http, detour: Some(Arc::new(detour)), ..self.fresh() })
    }

    /// The same straight to the agent.
    pub fn direct(&self) -> Self {
        Probe { detour: None, ..self.clone() }
    }

    /// Where a connection to `host:port` really goes.
    pub fn way_to(&self, authority: &str) -> String {
        let detour = self.detour.as_ref().and_then(|detour| detour.to(authority));
        detour.map_or_else(|| authority.to_owned(), |address| address.to_string())
    }

    /// The same way of sending, with a memory of its own.
    pub fn fresh(&self) -> Self {
        Probe { exchanges: Arc::default(), ..self.clone() }
    }

    /// Without credentials.
    pub fn stranger(&self) -> Self {
        self.acting_as(Credentials::default())
    }

    /// With other credentials.
    pub fn acting_as(&self, credentials: Credentials) -> Self {
        let mut options = self.options.clone();
        options.credentials = credentials;
        Probe { options, ..self.clone() }
    }

    /// With less patience.
    pub fn within(&self, timeout: Duration) -> Self {
        let mut other = self.clone();
        other.options.timeout = timeout.min(self.options.timeout);
        other
    }

    pub fn credentials(&self) -> &Credentials {
        &self.options.credentials
    }

    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// What has been exchanged so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends and reads the whole answer. A stream is read until it closes, `enough` says so, or patience ends.
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
        // A moment before the connection's own: a stream that stays open is an observation, not a broken answer.
        let deadline = open.deadline.checked_sub(Duration::from_millis(20)).unwrap_or(open.deadline);
        while error.is_none() && !enough(&events) {
            let left = deadline.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, open.next_frame()).await {
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
        Ok(Answer::Stream { status, headers, events, frames, closed, error })
    }

    /// Sends, and answers as soon as the head of the answer is there.
    pub async fn open(&self, request: &Request) -> Result<Open, NoAnswer> {
        let started = Instant::now();
        let method = reqwest::Method::from_bytes(request.method.as_bytes())
            .map_err(|error| NoAnswer(error.to_string()))?;
        let around = self.detour.as_ref().and_then(|detour| detour.around(&request.url));
        let mut builder = match &around {
            Some((url, host)) => self.http.request(method, url).header("host", host),
            None => self.http.request(method, &request.url),
        };
        for (name, value) in request.headers.iter().chain(&self.options.credentials.headers) {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let sent = self.masked(request);
        let answered = tokio::time::timeout(self.options.timeout, builder.send()).await;
        let response = match answered {
            Ok(Ok(response)) => response,
            failed => {
                let trouble = match failed {
                    Ok(Err(error)) => in_words(&error),
                    _ => format!("no answer within {} s", self.options.timeout.as_secs_f32()),
                };
                self.note(sent, None, Some(trouble.clone()), started);
                return Err(NoAnswer(trouble));
            }
        };
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let received =
            Received { status: response.status().as_u16(), headers: headers.collect(), body: String::new() };
        let index = self.note(sent, Some(received.clone()), None, started);
        let deadline = started + self.options.timeout;
        Ok(Open {
            received,
            response,
            reader: Reader::default(),
            frames: Vec::new(),
            seen: Vec::new(),
            let_go: 0,
            probe: self.clone(),
            index,
            started,
            deadline,
        })
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

    /// Credentials do not get into a report.
    fn masked(&self, request: &Request) -> Sent {
        let secret =
            self.options.credentials.headers.iter().map(|(name, _)| (name.clone(), "***".to_owned()));
        let plain = request.headers.iter().map(|(name, value)| {
            let secret = ["authorization", "cookie", "x-api-key", "proxy-authorization"];
            let hide = secret.iter().any(|known| name.eq_ignore_ascii_case(known));
            (name.clone(), if hide { "***".to_owned() } else { value.clone() })
        });
        Sent {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: plain.chain(secret).collect(),
            body: request.body.as_deref().map(evidence::shown),
        }
    }
}

fn client(options: &ProbeOptions) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(options.timeout.min(Duration::from_secs(10)))
        .pool_idle_timeout(IDLE)
        .no_proxy()
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct Open {
    pub received: Received,
    response: reqwest::Response,
    reader: Reader,
    frames: Vec<super::sse::Event>,
    seen: Vec<u8>,
    /// Bytes that came after those and were let go.
    let_go: usize,
    probe: Probe,
    index: usize,
    started: Instant,
    deadline: Instant,
}

impl Open {
    pub fn is_stream(&self) -> bool {
        let content_type =
            self.received.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        content_type.is_some_and(|(_, value)| value.to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// How long it may still take. A moment before the connection's own end: a stream that stays open is an
    /// observation, not a broken answer.
    pub fn left(&self) -> Duration {
        let early = self.deadline.checked_sub(Duration::from_millis(20)).unwrap_or(self.deadline);
        early.saturating_duration_since(Instant::now())
    }

    /// The rest of the body, whole.
    pub async fn rest(&mut self) -> Result<Vec<u8>, NoAnswer> {
        while self.more().await? {}
        Ok(std::mem::take(&mut self.seen))
    }

    /// The rest of the body; of a longer one its beginning, while all of it is read and let go.
    pub async fn beginning(&mut self, most: usize) -> Result<Vec<u8>, NoAnswer> {
        while self.more().await? {
            self.let_go += self.seen.len().saturating_sub(most);
            self.seen.truncate(most);
        }
        Ok(std::mem::take(&mut self.seen))
    }

    /// The next event, or `None` when the server closed the stream.
    pub async fn next_frame(&mut self) -> Result<Option<super::sse::Event>, NoAnswer> {
        loop {
            if !self.frames.is_empty() {
                return Ok(Some(self.frames.remove(0)));
            }
            let before = self.seen.len();
            if !self.more().await? {
                return Ok(None);
            }
            let fresh = self.seen[before..].to_vec();
            self.reader.feed(&fresh, &mut self.frames);
        }
    }

    /// Reads on; `false` at the end.
    async fn more(&mut self) -> Result<bool, NoAnswer> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let chunk = match tokio::time::timeout(left, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(self.broke(in_words(&error))),
            Err(_) => return Err(self.broke("the answer began, but did not end in time".to_owned())),
        };
        let Some(chunk) = chunk else {
            self.keep(None);
            return Ok(false);
        };
        let before = self.seen.len();
        self.seen.extend_from_slice(&chunk);
        // Of a long answer the evidence has its beginning by now, and learns the length at the end.
        if before <= evidence::MOST_BODY {
            self.keep(None);
        }
        if self.seen.len() + self.let_go > MOST_ANSWER {
            return Err(self.broke(format!("the answer is larger than {MOST_ANSWER} bytes")));
        }
        Ok(true)
    }

    fn broke(&mut self, trouble: String) -> NoAnswer {
        self.keep(Some(trouble.clone()));
        NoAnswer(trouble)
    }

    /// Keeps what has come in the evidence.
    fn keep(&self, trouble: Option<String>) {
        let mut exchanges = self.probe.lock();
        let Some(exchange) = exchanges.get_mut(self.index) else { return };
        if let Some(received) = &mut exchange.received {
            received.body = evidence::beginning_of(&self.seen, self.seen.len() + self.let_go);
        }
        exchange.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if trouble.is_some() {
            exchange.trouble = trouble;
        }
    }
}

/// The innermost cause is what tells somebody something.
fn in_words(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}
