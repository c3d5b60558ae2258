//! Messages of `lf.a2a.v1`.

mod from_domain;
mod to_domain;

use bytes::Bytes;
use prost::Message as _;

use super::read_answer;
use crate::domain::{Message, Task};
use crate::error::Error;
use crate::wire::StreamItem;
use crate::wire::peer_state::FromPeer;

pub(super) use self::from_domain::{write_call, write_reply};
pub(super) use self::to_domain::{decode_call, read_reply};

/// The generated messages. Free-form JSON in them is encoded: `google.protobuf.Struct`, or `Value` in a part.
#[allow(clippy::all, missing_docs, unreachable_pub)]
pub mod messages {
    include!("../generated/v1.rs");
}

pub(super) fn write_stream_task(task: &Task) -> Vec<u8> {
    from_domain::stream_task(task).encode_to_vec()
}

pub(super) fn write_stream_message(message: &Message) -> Vec<u8> {
    from_domain::stream_message(message).encode_to_vec()
}

pub(super) fn write_stream_update(item: &StreamItem) -> Vec<u8> {
    from_domain::stream_item(item).encode_to_vec()
}

pub(super) fn read_stream_item(message: Bytes) -> Result<FromPeer<StreamItem>, Error> {
    read_answer(message, "stream event", to_domain::stream_item)
}
