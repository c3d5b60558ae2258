//! Server-sent events as A2A uses them: one frame per event, one JSON document per frame.
//!
//! The writer is strict (no content can break a frame); the reader accepts everything that the WHATWG event stream
//! grammar allows, since it reads streams of other servers.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{SseEvent, SseParser, SseTooLarge};
pub use write::{breaks_line, write_comment, write_event, write_retry};
