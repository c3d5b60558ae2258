//! Encodings: envelopes, frames, and one codec per generation.

pub mod card;
pub mod dialect;
pub mod http_json;
pub mod jsonrpc;
#[cfg(feature = "grpc")]
pub mod pb;
pub mod peer_error;
mod peer_parts;
pub mod peer_state;
pub mod spelling;
pub mod sse;
pub mod stored;
pub mod v0_1;
pub mod v0_3;
pub mod v1;

mod members;
mod notification;
pub(crate) mod objects;
mod read;
mod scalars;
mod stream_item;
mod time;
pub(crate) mod write;

use crate::operation::Call;

pub use self::notification::{ReadNotification, read_notification};
pub use self::stream_item::StreamItem;

/// A call with the tenant in its parameters; generations before 1.0 have no tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub tenant: Option<String>,
    pub call: Call,
}
