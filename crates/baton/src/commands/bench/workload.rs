//! What is asked of the agent, and one request of it.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use baton_client::Client;
use baton_lab::fault::draw::Draw;
use baton_protocol::domain::{TaskId, TaskState};
use baton_protocol::operation::{Call, GetTask, HistoryLength, ListTasks, Reply, SendMessage};

use super::trouble::Trouble;
use super::watched::Watched;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// SendMessage: a message, answered when the task has ended.
    Send,
    /// SendStreamingMessage: a message, and the events up to the end of its task.
    Stream,
    /// GetTask: always the same task.
    Get,
    /// ListTasks: the first page.
    List,
}

impl Operation {
    const ALL: [Operation; 4] = [Self::Send, Self::Stream, Self::Get, Self::List];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Stream => "stream",
            Self::Get => "get",
            Self::List => "list",
        }
    }

    /// Whether each request is a message, which makes the agent work.
    pub(super) fn is_message(self) -> bool {
        matches!(self, Self::Send | Self::Stream)
    }
}

/// Operations, and how often each is chosen in relation to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mix(Vec<(Operation, u32)>);

impl Mix {
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation> + Clone {
        self.0.iter().map(|(operation, _)| *operation)
    }

    pub(super) fn has(&self, wanted: Operation) -> bool {
        self.operations().any(|operation| operation == wanted)
    }

    pub(super) fn pick(&self, draw: &mut Draw) -> Operation {
        let total: u64 = self.0.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = draw.up_to(total);
        for (operation, weight) in &self.0 {
            match left.checked_sub(u64::from(*weight)) {
                None | Some(0) => return *operation,
                Some(rest) => left = rest,
            }
        }
        Operation::Send
    }
}

/// `send`, or with weights `send=8,get=2`.
impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mix = Vec::new();
        for item in text.split(',') {
            let (name, weight) = item.split_once('=').unwrap_or((item, "1"));
            let operation = Operation::ALL.into_iter().find(|operation| operation.name() == name.trim());
            let operation = operation.ok_or("write send, stream, get or list, or several: send=8,get=2")?;
            let weight = weight.trim().parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
            let weight = weight.ok_or_else(|| format!("{name}: the weight is a number from 1 to 1000000"))?;
            if mix.iter().any(|(other, _)| *other == operation) {
                return Err(format!("{name} is there twice"));
            }
            mix.push((operation, weight));
        }
        Ok(Mix(mix))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (operation, weight)) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            match self.0.len() {
                1 => f.write_str(operation.name())?,
                _ => write!(f, "{before}{}={weight}", operation.name())?,
            }
        }
        Ok(())
    }
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A message led to a task that is now in this state.
    Task(TaskState),
    /// A message was answered with a message.
    Message,
    /// Something was read.
    Read,
}

/// A request that is over.
#[derive(Debug)]
pub(super) struct Performed {
    pub(super) result: Result<Outcome, Trouble>,
    /// When the result was there.
    pub(super) ended: Instant,
    /// The stream, if it was one and was opened.
    pub(super) watched: Option<Watched>,
}

/// Makes requests.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) client: Client,
    /// Sent again and again, each time under a new id.
    pub(super) message: SendMessage,
    /// The task that is read.
    pub(super) task: Option<TaskId>,
    pub(super) timeout: Duration,
}

impl Workload {
    /// One request; `due` is when it should have been sent.
    pub(super) async fn perform(&self, operation: Operation, due: Instant) -> Performed {
        if operation == Operation::Stream {
            return self.stream(due).await;
        }
        let result = self.ask(operation).await;
        Performed { result, ended: Instant::now(), watched: None }
    }

    async fn ask(&self, operation: Operation) -> Result<Outcome, Trouble> {
        let call = match (operation, &self.task) {
            (Operation::Get, Some(id)) => {
                Call::GetTask(GetTask { id: id.clone(), history_length: HistoryLength::All })
            }
            (Operation::List, _) => Call::ListTasks(ListTasks::default()),
            _ => Call::SendMessage(self.fresh_message()),
        };
        Ok(match self.client.call(call).await? {
            Reply::SentTask(task) => Outcome::Task(task.status.state),
            Reply::SentMessage(_) => Outcome::Message,
            _ => Outcome::Read,
        })
    }

    async fn stream(&self, due: Instant) -> Performed {
        let deadline = Instant::now() + self.timeout;
        let call = Call::SendStreamingMessage(self.fresh_message());
        let mut stream = match self.client.stream_raw(call, None).await {
            Ok(stream) => stream,
            Err(error) => {
                return Performed { result: Err(error.into()), ended: Instant::now(), watched: None };
            }
        };
        let mut watched = Watched::new(due);
        let result = watched.follow(&mut stream, deadline).await.map(|()| match watched.state() {
            Some(state) => Outcome::Task(state),
            None => Outcome::Message,
        });
        Performed { result, ended: watched.settled.unwrap_or_else(Instant::now), watched: Some(watched) }
    }

    /// The same message as a new turn.
    pub(super) fn fresh_message(&self) -> SendMessage {
        let mut send = self.message.clone();
        send.message.id = baton_client::message(Vec::new()).id;
        send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_shown_and_drawn_by_its_weights() {
        for (text, shown) in [("send", "send"), ("stream=3", "stream"), ("send=8, get=2", "send=8, get=2")] {
            assert_eq!(text.parse::<Mix>().unwrap().to_string(), shown);
        }
        for wrong in ["", "sned", "send=0", "send=x", "send,send", "send=1000001"] {
            wrong.parse::<Mix>().unwrap_err();
        }
        let mix: Mix = "send=9,get=1".parse().unwrap();
        let mut draw = Draw::new(1);
        let gets = (0..10_000).filter(|_| mix.pick(&mut draw) == Operation::Get).count();
        assert!((900..1100).contains(&gets), "{gets}");
    }
}
