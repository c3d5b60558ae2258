//! Calls of gRPC over HTTP/2: several connections with several calls each, on one thread, written and read here.

mod channels;
mod connection;
mod hpack;
mod huffman;
mod message;

pub use channels::{Channels, Method};
pub use message::{Ends, Message, bytes_at, messages};
