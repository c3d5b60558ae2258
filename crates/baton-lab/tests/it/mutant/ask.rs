//! A request, without its binding; and what comes of it.

use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;
use serde_json::Value;

use super::feed::Feed;

#[derive(Debug)]
pub(crate) struct Ask {
    pub(super) generation: Generation,
    pub(super) binding: Binding,
    pub(super) operation: Operation,
    /// In 1.0's words.
    pub(super) params: Value,
    pub(super) owner: String,
    /// Was there a body? HTTP+JSON need not have one.
    pub(super) has_body: bool,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// In 1.0's words.
    Reply(Value),
    Stream(Feed),
}
