//! An answer whose head has arrived: its body, read as it comes.

use std::time::{Duration, Instant};

use super::evidence::{self, Received};
use super::grpc::call::Call;
use super::grpc::methods::Method;
use super::grpc::{self, Piece};
use super::no_answer::NoAnswer;
use super::probe::Probe;
use super::sse::{Event, Reader};

/// Largest answer that is read.
const MOST_ANSWER: usize = 16 * 1024 * 1024;

/// An answer whose head has arrived.
#[derive(Debug)]
pub struct Open {
    pub received: Received,
    source: Source,
    reader: Reader,
    frames: Vec<Event>,
    seen: Vec<u8>,
    /// Number of further bytes that were dropped.
    let_go: usize,
    probe: Probe,
    index: usize,
    started: Instant,
    deadline: Instant,
}

/// Where the rest of an answer comes from.
#[derive(Debug)]
pub(super) enum Source {
    Http(reqwest::Response),
    /// A stream of gRPC.
    Grpc(Box<Call>, Method),
    /// Everything is there already.
    Whole,
}

impl Open {
    /// `index`: of the exchange in the probe's evidence.
    pub(super) fn new(
        received: Received,
        source: Source,
        probe: &Probe,
        index: usize,
        started: Instant,
    ) -> Self {
        Open {
            source,
            reader: Reader::default(),
            frames: Vec::new(),
            seen: Vec::new(),
            let_go: 0,
            probe: probe.clone(),
            index,
            started,
            deadline: started + probe.timeout(),
            received,
        }
    }

    /// The same with a body that has arrived.
    pub(super) fn with(mut self, body: Vec<u8>) -> Self {
        self.seen = body;
        self.keep(None);
        self
    }

    pub(super) fn is_grpc(&self) -> bool {
        matches!(self.source, Source::Grpc(..))
    }

    pub fn is_stream(&self) -> bool {
        if self.is_grpc() {
            return true;
        }
        let content_type =
            self.received.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        content_type.is_some_and(|(_, value)| value.to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// The remaining time. It ends slightly before the connection's own timeout: a stream that stays open is a result,
    /// not a broken answer.
    pub fn left(&self) -> Duration {
        let early = self.deadline.checked_sub(Duration::from_millis(20)).unwrap_or(self.deadline);
        early.saturating_duration_since(Instant::now())
    }

    /// The complete rest of the body.
    pub async fn rest(&mut self) -> Result<Vec<u8>, NoAnswer> {
        while self.more().await? {}
        Ok(std::mem::take(&mut self.seen))
    }

    /// The rest of the body up to a limit; what follows is read and dropped.
    pub async fn beginning(&mut self, most: usize) -> Result<Vec<u8>, NoAnswer> {
        while self.more().await? {
            self.let_go += self.seen.len().saturating_sub(most);
            self.seen.truncate(most);
        }
        Ok(std::mem::take(&mut self.seen))
    }

    /// The next event, or `None` when the server closed the stream.
    pub async fn next_frame(&mut self) -> Result<Option<Event>, NoAnswer> {
        loop {
            if !self.frames.is_empty() {
                return Ok(Some(self.frames.remove(0)));
            }
            let before = self.seen.len();
            if !self.more().await? {
                return Ok(None);
            }
            if !self.is_grpc() {
                let fresh = self.seen[before..].to_vec();
                self.reader.feed(&fresh, &mut self.frames);
            }
        }
    }

    /// Reads more; `false` at the end.
    async fn more(&mut self) -> Result<bool, NoAnswer> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let chunk = match tokio::time::timeout(left, self.source.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(self.broke(error.why)),
            Err(_) => return Err(self.broke("the answer began, but did not end in time".to_owned())),
        };
        let chunk = match chunk {
            Chunk::Bytes(bytes) => bytes,
            Chunk::Event(event) => {
                let text = format!("{}\n", event.data).into_bytes();
                self.frames.push(event);
                text
            }
            Chunk::End => {
                self.keep(None);
                return Ok(false);
            }
        };
        let before = self.seen.len();
        self.seen.extend_from_slice(&chunk);
        // The evidence already has the beginning of a long answer; the length is added at the end.
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
        NoAnswer::new(trouble)
    }

    /// Records the received bytes in the evidence.
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

enum Chunk {
    Bytes(Vec<u8>),
    Event(Event),
    End,
}

impl Source {
    async fn chunk(&mut self) -> Result<Chunk, NoAnswer> {
        match self {
            Self::Whole => Ok(Chunk::End),
            Self::Http(response) => {
                let chunk = response.chunk().await.map_err(|error| NoAnswer::of(&error))?;
                Ok(chunk.map_or(Chunk::End, |bytes| Chunk::Bytes(bytes.to_vec())))
            }
            Self::Grpc(call, method) => {
                let event = |name: Option<&str>, data: &serde_json::Value| {
                    Chunk::Event(Event { id: None, name: name.map(str::to_owned), data: data.to_string() })
                };
                Ok(match grpc::piece(call, *method).await? {
                    Piece::Message(message) => event(None, &message),
                    Piece::Failed(status) => {
                        let last = event(Some("error"), &status.body());
                        *self = Self::Whole;
                        last
                    }
                    Piece::Done => Chunk::End,
                })
            }
        }
    }
}
