//! Checks that the document format cannot express, written in Rust.
//!
//! A check is an `async fn(&Bench) -> Done`, named in a document's `native:`. One file per area, each with its own list
//! of checks; the areas are listed below. A case that needs the second agent, a webhook receiver or raw sockets names
//! it in its `runner_requirements`.

mod acts;
mod callers;
mod grpc;
mod older;
mod receiver;
mod shape;
mod talk;
mod two;
mod v0_1;
mod v0_3;
mod v1;

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::case::{Failure, Verdict};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError};

/// `Ok` if passed, otherwise the verdict.
pub type Done<T = ()> = Result<T, Verdict>;
pub type Check = for<'a> fn(&'a Bench) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
/// The checks of one area, by name.
pub type Checks = &'static [(&'static str, Check)];

/// `checks! { "name" => function, … }`: the list of checks of an area.
macro_rules! checks {
    ($($name:literal => $function:path),* $(,)?) => {
        &[$(($name, |bench| Box::pin(async move {
            match $function(bench).await {
                Ok(()) => $crate::case::Verdict::Pass,
                Err(verdict) => verdict,
            }
        }))),*]
    };
}
pub(crate) use checks;

/// Everything that is wrong with a card by the schema of 1.0, one sentence each.
pub fn card_problems(card: &Value) -> Vec<String> {
    v1::card::problems(card).into_iter().map(sentence).collect()
}

/// The same, and what is unsafe about it: open addresses, secrets, signatures that nobody can read.
pub fn card_lint(card: &Value) -> Vec<String> {
    let found = v1::card::problems(card).into_iter().chain(v1::card_security::problems(card));
    found.map(sentence).collect()
}

fn sentence(found: crate::acts::assertion::Mismatch) -> String {
    let place = if found.path.is_empty() { "the card" } else { &found.path };
    format!("{place}: expected {}, found {}", found.expected, found.actual)
}

/// Every area.
const AREAS: &[Checks] = &[
    acts::CHECKS,
    grpc::answers::CHECKS,
    grpc::deadlines::CHECKS,
    grpc::requests::CHECKS,
    two::CHECKS,
    v0_1::auth::CHECKS,
    v0_1::card::CHECKS,
    v0_1::generations::CHECKS,
    v0_1::push::CHECKS,
    v0_1::streams::CHECKS,
    v0_1::tasks::CHECKS,
    v0_3::auth::CHECKS,
    v0_3::card::CHECKS,
    v0_3::equivalence::CHECKS,
    v0_3::generations::CHECKS,
    v0_3::objects::CHECKS,
    v0_3::push::CHECKS,
    v0_3::rest::CHECKS,
    v0_3::streams::CHECKS,
    v1::auth::CHECKS,
    v1::cancel::CHECKS,
    v1::caching::CHECKS,
    v1::card::CHECKS,
    v1::card_security::CHECKS,
    v1::contexts::CHECKS,
    v1::disconnect::CHECKS,
    v1::endpoints::CHECKS,
    v1::equivalence::CHECKS,
    v1::errors::CHECKS,
    v1::extensions::CHECKS,
    v1::fold::CHECKS,
    v1::history::CHECKS,
    v1::hostile::CHECKS,
    v1::interrupted::CHECKS,
    v1::lifecycle::CHECKS,
    v1::lists::CHECKS,
    v1::many::CHECKS,
    v1::names::CHECKS,
    v1::objects::CHECKS,
    v1::push::CHECKS,
    v1::rpc::CHECKS,
    v1::send::CHECKS,
    v1::streams::CHECKS,
    v1::tls::CHECKS,
    v1::versions::CHECKS,
    v1::watchers::CHECKS,
];

pub fn find(name: &str) -> Option<Check> {
    AREAS.iter().copied().flatten().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    AREAS.iter().copied().flatten().map(|(name, _)| *name)
}

/// A failure as a verdict.
pub fn fail(message: impl Into<String>) -> Verdict {
    Verdict::Fail(Failure::new(message))
}

/// A failure as a verdict.
pub fn differs(expected: impl Into<String>, actual: impl Into<String>) -> Verdict {
    Verdict::Fail(Failure::expected(expected, actual))
}

impl Bench {
    /// The name of an operation in this case's generation.
    pub fn called(&self, operation: Operation) -> &'static str {
        operation.method(self.generation()).unwrap_or_else(|| operation.name())
    }

    /// Calls an operation; no answer at all is a failure.
    pub async fn call(&self, operation: Operation, params: &Value) -> Done<Answer> {
        let request = self.request(operation, params).map_err(|none| Verdict::Skip(none.0))?;
        let asked = self.ask(operation, &request).await;
        asked.map_err(|error| fail(format!("{}: no answer: {error}", self.called(operation))))
    }

    /// The object in an operation's answer; an error is a failure.
    pub async fn reply(&self, operation: Operation, params: &Value) -> Done<Value> {
        match self.call(operation, params).await? {
            Answer::Reply { root: Some(root), .. } => Ok(root),
            other => Err(differs(format!("an answer to {}", self.called(operation)), other.summary())),
        }
    }

    /// The error with which an operation is refused; anything else is a failure.
    pub async fn refusal(&self, operation: Operation, params: &Value) -> Done<WireError> {
        match self.call(operation, params).await? {
            Answer::Error(error) => Ok(error),
            Answer::Stream { error: Some(error), events, .. } if events.is_empty() => Ok(error),
            other => Err(differs(format!("{} to be refused", self.called(operation)), other.summary())),
        }
    }

    /// The events of an operation's stream, which must close.
    pub async fn events(&self, operation: Operation, params: &Value) -> Done<Vec<Value>> {
        match self.call(operation, params).await? {
            Answer::Stream { events, closed: true, error: None, .. } => Ok(events),
            Answer::Stream { error: Some(error), .. } => Err(differs("events only", error.summary())),
            other => Err(differs("a stream that closes", other.summary())),
        }
    }

    /// The task or message in the reply to a send, without the 1.0 wrapper.
    pub async fn send(&self, text: &str, more: Value) -> Done<Value> {
        let params = crate::speak::send_params(self.generation(), text, more);
        let root = self.reply(Operation::SendMessage, &params).await?;
        Ok(root.get("task").or_else(|| root.get("message")).cloned().unwrap_or(root))
    }
}
