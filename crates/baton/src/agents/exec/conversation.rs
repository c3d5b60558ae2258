//! Applies the program's lines of JSON to the task: statements become events, questions wait for an answer.

use std::future::IntoFuture as _;
use std::pin::Pin;

use baton_protocol::domain::{Message, MessageId, Part, Role, TaskState};
use baton_server::{AgentError, Question, Turn};

use super::artifacts::Artifacts;
use super::lines::Lines;
use super::says::{self, Says};
use super::turn::Break;

type Answer = Pin<Box<dyn Future<Output = Result<Message, AgentError>> + Send>>;

pub(super) struct Conversation {
    turn: Turn,
    lines: Lines,
    /// True if answers can be written to the program's stdin. Otherwise an answer starts the program again.
    answers: bool,
    question: Option<Answer>,
    /// The task waits for its client.
    interrupted: bool,
    /// The task has ended; further lines are ignored.
    over: bool,
    artifacts: Artifacts,
    /// The messages of both sides in this turn, for a program that has to be started again.
    said: Vec<Message>,
}

impl Conversation {
    pub(super) fn new(turn: &Turn, artifacts: Artifacts, max_line_bytes: usize, answers: bool) -> Self {
        Conversation {
            turn: turn.clone(),
            lines: Lines::new(max_line_bytes),
            answers,
            question: None,
            interrupted: false,
            over: false,
            artifacts,
            said: Vec::new(),
        }
    }

    /// Prepares the program's next run within the turn. Returns the messages so far; the last one is the answer that
    /// the program did not read.
    pub(super) fn begin_again(&mut self) -> &[Message] {
        self.lines = Lines::new(self.lines.most());
        self.question = None;
        self.artifacts.next_turn();
        &self.said
    }

    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// True if the program has ended the task.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// True if the program waits for an answer.
    pub(super) fn waits(&self) -> bool {
        self.question.is_some()
    }

    /// The answer that the program waits for. Cancel safe.
    pub(super) async fn answer(&mut self) -> Result<Message, AgentError> {
        let Some(question) = &mut self.question else { return std::future::pending().await };
        let answer = question.await?;
        self.question = None;
        self.interrupted = false;
        self.said.push(answer.clone());
        Ok(answer)
    }

    pub(super) async fn take(&mut self, bytes: &[u8]) -> Result<(), Break> {
        if self.over {
            return Ok(());
        }
        for (number, line) in self.lines.cut(bytes).map_err(|bad| Break::invalid(&bad))? {
            self.hear(number, &line).await?;
        }
        Ok(())
    }

    pub(super) async fn finish(&mut self) -> Result<(), Break> {
        match self.lines.finish() {
            Ok(Some((number, line))) if !self.over => self.hear(number, &line).await,
            Err(bad) if !self.over => Err(Break::invalid(&bad)),
            _ => Ok(()),
        }
    }

    async fn hear(&mut self, number: usize, line: &str) -> Result<(), Break> {
        let says =
            says::read(line).map_err(|reason| Break::invalid(&format_args!("line {number} {reason}")))?;
        if self.over {
            tracing::warn!(target: "exec", { task.id = %self.turn.task_id(), line = number }, "said after the task's end");
            return Ok(());
        }
        match says {
            Says::Progress(parts) => self.status(TaskState::Working, parts).await?,
            Says::Artifact(piece) => {
                let laid = self.artifacts.lay(&self.turn, piece).await;
                laid.map_err(|stop| stop.at_line(number))?;
            }
            Says::InputRequired(text) => {
                self.go_on().await?;
                self.note(vec![Part::text(text.as_str())]);
                let question = self.turn.ask(text);
                self.wait_for(question);
            }
            Says::AuthRequired(text) => {
                self.go_on().await?;
                self.note(vec![Part::text(text.as_str())]);
                let question = self.turn.require_auth(text);
                self.wait_for(question);
            }
            Says::Reject(parts) => self.end(TaskState::Rejected, parts).await?,
            Says::Fail(parts) => self.end(TaskState::Failed, parts).await?,
            Says::Complete(parts) => self.end(TaskState::Completed, parts).await?,
        }
        Ok(())
    }

    fn wait_for(&mut self, question: Question) {
        self.interrupted = true;
        self.question = self.answers.then(|| question.into_future());
    }

    /// A task that waits for input can only return to working, or fail. This returns it to working, for a program that
    /// goes on without the answer.
    async fn go_on(&mut self) -> Result<(), AgentError> {
        if std::mem::take(&mut self.interrupted) {
            self.turn.resume().await?;
        }
        Ok(())
    }

    async fn status(&mut self, state: TaskState, parts: Vec<Part>) -> Result<(), AgentError> {
        self.interrupted = false;
        self.note(parts.clone());
        self.turn.status(state, Some(parts.into())).await
    }

    fn note(&mut self, parts: Vec<Part>) {
        // The log gives the message another id; nothing refers to this one.
        if let Ok(id) = MessageId::parse(&format!("said-{}", self.said.len() + 1)) {
            let (task_id, context_id) = (self.turn.task_id().clone(), self.turn.context_id().clone());
            let message = Message::new(id, Role::Agent, parts);
            self.said.push(Message { task_id: Some(task_id), context_id: Some(context_id), ..message });
        }
    }

    async fn end(&mut self, state: TaskState, parts: Vec<Part>) -> Result<(), AgentError> {
        self.go_on().await?;
        self.over = true;
        self.question = None;
        self.status(state, parts).await
    }
}
