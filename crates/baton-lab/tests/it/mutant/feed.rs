//! A stream: the log of a task as one client sees it, and what may be wrong with that.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::entry::{Entry, is_interrupted, is_terminal};
use super::fault::{Cut, Place, Quirk};
use super::send::Hostage;

#[derive(Debug)]
pub(crate) struct Feed {
    entry: Option<Arc<Entry>>,
    place: Place,
    cuts: Vec<Cut>,
    /// What is to be sent before anything is read.
    ready: VecDeque<Value>,
    at: usize,
    /// Nothing more is read.
    ended: bool,
    /// How many events have been read.
    count: usize,
    chunks: usize,
    held: Vec<Value>,
    cut_off: CancellationToken,
    closes_others: bool,
    _hostage: Hostage,
}

impl Feed {
    /// One message, and nothing else.
    pub(super) fn single(agent: &Agent, event: Value, place: &Place) -> Self {
        let mut feed = Self::new(agent, None, Hostage(None), place);
        feed.ended = true;
        feed.take(event, true);
        feed
    }

    pub(super) fn of_send(
        agent: &Agent,
        entry: &Arc<Entry>,
        (task, at): (Value, usize),
        hostage: Hostage,
        place: &Place,
    ) -> Self {
        let mut feed = Self::new(agent, Some(Arc::clone(entry)), hostage, place);
        feed.at = at;
        feed.take(json!({ "task": task }), false);
        feed
    }

    pub(super) fn of_subscription(agent: &Agent, entry: &Arc<Entry>, place: &Place) -> Self {
        let (task, at) = entry.snapshot();
        let mut feed = Self::new(agent, Some(Arc::clone(entry)), Hostage(None), place);
        feed.at = at;
        let count = {
            let mut kept = entry.kept();
            kept.subscriptions += 1;
            kept.subscriptions
        };
        if count < 2 {
            feed.cuts.retain(|cut| *cut != Cut::SecondLoses);
        }
        if agent.has(Quirk::CloseOthers, place) {
            feed.closes_others = true;
            feed.cut_off = entry.cut_streams.clone();
        }
        let ends = is_terminal(task["status"]["state"].as_str().unwrap_or_default());
        feed.take(json!({ "task": task }), ends);
        feed
    }

    fn new(agent: &Agent, entry: Option<Arc<Entry>>, hostage: Hostage, place: &Place) -> Self {
        Feed {
            entry,
            place: place.clone(),
            cuts: agent.cuts(place),
            ready: VecDeque::new(),
            at: 0,
            ended: false,
            count: 0,
            chunks: 0,
            held: Vec::new(),
            cut_off: CancellationToken::new(),
            closes_others: false,
            _hostage: hostage,
        }
    }

    /// The next event, in 1.0's words.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                if self.cuts.contains(&Cut::Open) {
                    std::future::pending::<()>().await;
                }
                return None;
            }
            let entry = self.entry.clone()?;
            self.cut_off.clone().run_until_cancelled(entry.longer_than(self.at)).await?;
            let event = entry.event(self.at)?;
            self.at += 1;
            let ends = self.ends(&event);
            self.take(event, ends);
        }
    }

    /// The task is canceled with the stream.
    pub(super) fn cancel(&self) {
        if let Some(entry) = &self.entry {
            entry.stop.cancel();
            entry.enter("CANCELED", None);
        }
    }

    /// Does the stream close here? 1.0 leaves it to the agent at a question: this one closes at a question, and stays
    /// for a sign-in, which comes by another way. A subscription stays for both.
    fn ends(&self, event: &Value) -> bool {
        let state = event["statusUpdate"]["status"]["state"].as_str().unwrap_or_default();
        let stays = match (self.place.generation, self.place.operation) {
            (Generation::V1, Some(Operation::SubscribeToTask)) => true,
            (Generation::V1, _) => state == "TASK_STATE_AUTH_REQUIRED",
            (Generation::V0_3 | Generation::V0_1, _) => false,
        };
        is_terminal(state) || (is_interrupted(state) && !stays)
    }

    /// An event goes out, as far as the cuts let it.
    fn take(&mut self, event: Value, ends: bool) {
        let first = self.count == 0;
        self.count += 1;
        let kind = kind_of(&event);
        if kind == "artifactUpdate" {
            self.chunks += 1;
        }
        let mut out = vec![event];
        for cut in self.cuts.clone() {
            out = self.apply(cut, out, (first, ends), &kind);
        }
        if ends {
            out.append(&mut self.held);
            self.ended = true;
        }
        self.ready.extend(out);
    }

    fn apply(
        &mut self,
        cut: Cut,
        mut out: Vec<Value>,
        (first, ends): (bool, bool),
        kind: &str,
    ) -> Vec<Value> {
        let second = self.count == 2;
        match cut {
            Cut::DropFirst if first => out.clear(),
            Cut::DropState(state) => out.retain(|event| event["statusUpdate"]["status"]["state"] != state),
            Cut::DropKind(dropped) => out.retain(|event| kind_of(event) != dropped),
            Cut::DropSecondChunk if kind == "artifactUpdate" && self.chunks == 2 => out.clear(),
            Cut::SecondLoses if kind == "artifactUpdate" => out.clear(),
            Cut::Twice(twice) if kind == twice => out.extend(out.clone()),
            Cut::TaskAgain if second => {
                let task = self.entry.as_ref().map(|entry| entry.snapshot().0);
                out.push(json!({ "task": task }));
            }
            Cut::Insert(event) if second => out.push(self.made(event)),
            Cut::Swap if kind == "artifactUpdate" => self.held.append(&mut out),
            Cut::Swap => out.append(&mut self.held),
            Cut::Hold => self.held.append(&mut out),
            Cut::CloseBeforeEnd if ends => out.clear(),
            _ => {}
        }
        out
    }

    /// An event that never happened.
    fn made(&self, event: &str) -> Value {
        let ids = self.entry.as_ref().map(|entry| (entry.id.clone(), entry.context.clone()));
        let (task, context) = ids.unwrap_or_default();
        let text = event.replace("$task", &task).replace("$context", &context);
        serde_json::from_str(&text).expect("defects are written in JSON")
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if self.closes_others && !self.ended {
            self.cut_off.cancel();
        }
    }
}

pub(super) fn kind_of(event: &Value) -> String {
    event.as_object().and_then(|members| members.keys().next()).cloned().unwrap_or_default()
}
