//! The events of a stream over gRPC.

use baton_protocol::wire::StreamItem;
use baton_protocol::wire::pb::framing::Deframer;
use baton_protocol::wire::pb::resume::take_number;
use baton_protocol::wire::peer_state::{FromPeer, put_back};
use bytes::Bytes;

use super::{check_head, check_status, package, unframed};
use crate::choose::Interface;
use crate::error::{Error, TransportKind};
use crate::http::Answer;
use crate::stream::Frame;

/// An open stream.
#[derive(Debug)]
pub(crate) struct Messages {
    interface: Interface,
    answer: Answer,
    deframer: Deframer,
    limit: usize,
    /// Reported after the events that came before it.
    failed: Option<Error>,
    ended: bool,
}

impl Messages {
    /// A stream that is refused at once has its status in the head.
    pub(crate) async fn open(interface: Interface, mut answer: Answer, limit: usize) -> Result<Self, Error> {
        check_head(&interface, &mut answer).await?;
        let refused = answer.headers().contains_key("grpc-status");
        answer.has_no_deadline();
        if refused {
            check_status(interface.generation, &answer)?;
        }
        let deframer = Deframer::new(limit);
        Ok(Messages { interface, answer, deframer, limit, failed: None, ended: refused })
    }

    /// The next event; `None` when the agent has ended the stream. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            let message = self.deframer.next().map_err(|why| unframed(&self.answer, why, self.limit))?;
            if let Some(message) = message {
                return self.decode(message).map(Some);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.ended {
                return Ok(None);
            }
            match self.answer.chunk().await {
                Ok(Some(piece)) => self.deframer.feed(&piece),
                Ok(None) => {
                    self.ended = true;
                    check_status(self.interface.generation, &self.answer)?;
                    if !self.deframer.is_empty() {
                        return Err(self.answer.fail(TransportKind::Cut, "the last event ends too early"));
                    }
                }
                Err(error) => self.failed = Some(error),
            }
        }
    }

    fn decode(&self, message: Bytes) -> Result<Frame, Error> {
        let item = package(&self.interface)?.read_stream_item(message);
        let mut item = item.map_err(|error| self.answer.malformed(error.to_string()))?;
        let number = take_number(&mut item.value);
        let json = item_json(&self.interface, &item);
        self.answer.show(|| json.clone().into_bytes());
        Ok(Frame { id: number.map(|number| number.to_string()), ..Frame::new(item, json) })
    }
}

/// An event in the JSON of its generation.
fn item_json(interface: &Interface, item: &FromPeer<StreamItem>) -> String {
    let mut out = Vec::new();
    interface.dialect().write_stream_update(&mut out, &item.value);
    put_back(&String::from_utf8_lossy(&out), &item.unknown_states)
}
