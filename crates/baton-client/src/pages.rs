//! Lists of tasks, page by page or task by task.

use std::collections::VecDeque;

use baton_protocol::domain::{Task, TaskPage};
use baton_protocol::operation::{Call, ListTasks, Reply};
use baton_protocol::wire::peer_state::FromPeer;
use futures_util::Stream;

use crate::client::Client;
use crate::error::{Error, TransportError, TransportKind};
use crate::page_tokens::PageTokens;
use crate::transport::Received;

/// The tasks that match a filter, newest first. Pages are asked for as they are needed. A list that leads back to a page of its
/// own, or has one empty page after the other, ends with an error.
#[derive(Debug)]
pub struct TaskPages {
    client: Client,
    list: ListTasks,
    tokens: PageTokens,
    waiting: VecDeque<Task>,
    unknown_states: Vec<Option<String>>,
    /// Why there is no page behind the last one.
    failed: Option<Error>,
    finished: bool,
}

impl TaskPages {
    pub(crate) fn new(client: Client, list: ListTasks) -> Self {
        TaskPages {
            client,
            tokens: PageTokens::new(list.page_token.as_deref()),
            list,
            waiting: VecDeque::new(),
            unknown_states: Vec::new(),
            failed: None,
            finished: false,
        }
    }

    /// The next page, or `None` after the last.
    pub async fn next_page(&mut self) -> Option<Result<TaskPage, Error>> {
        if self.finished {
            return self.failed.take().map(Err);
        }
        let call = Call::ListTasks(self.list.clone());
        let page = match self.client.call_peer(&call, self.client.retries()).await {
            Ok(Received { reply: FromPeer { value: Reply::Tasks(page), unknown_states }, .. }) => {
                self.unknown_states = unknown_states;
                page
            }
            Ok(_) => unreachable!("a list is answered with tasks"),
            Err(error) => {
                self.finished = true;
                return Some(Err(error));
            }
        };
        let followed = self.tokens.follow(&page.next_page_token, page.tasks.is_empty());
        self.finished = !matches!(followed, Ok(Some(_)));
        match followed {
            Ok(token) => self.list.page_token = token,
            Err(endless) => {
                let url = self.client.interface().shown_url();
                let (kind, message) = (TransportKind::Malformed, endless.to_string());
                self.failed = Some(TransportError { kind, url, message, reached: true }.into());
            }
        }
        Some(Ok(page))
    }

    /// For each task of the last page, the name of a state that is none of the eight, as it was received; the task says
    /// `Working` then. Empty if there are none.
    pub fn unknown_states(&self) -> &[Option<String>] {
        &self.unknown_states
    }

    /// The next task, or `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Task, Error>> {
        loop {
            if let Some(task) = self.waiting.pop_front() {
                return Some(Ok(task));
            }
            match self.next_page().await? {
                Ok(page) => self.waiting.extend(page.tasks),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The tasks as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Task, Error>> + Send + Unpin {
        let next = |mut pages: TaskPages| async { Some((pages.next().await?, pages)) };
        Box::pin(futures_util::stream::unfold(self, next))
    }
}
