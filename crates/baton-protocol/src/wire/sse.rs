//! Server-sent events as A2A uses them: one frame per event, one JSON document per frame.
//!
//! The writer is strict (a frame cannot be broken by what is put in it), the reader takes whatever the WHATWG
//! event stream grammar allows, since it meets other people's servers.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{SseEvent, SseParser, SseTooLarge};
pub use write::{breaks_line, write_comment, write_event, write_retry};
