//! Lists of tasks, page by page or task by task.

use std::collections::VecDeque;

use baton_protocol::domain::{Task, TaskPage};
use baton_protocol::operation::{Call, ListTasks, Reply};
use baton_protocol::wire::peer_state::FromPeer;
use futures_util::Stream;

use crate::client::Client;
use crate::error::Error;

/// The tasks that match a filter, newest first. Pages are asked for as they are needed.
#[derive(Debug)]
pub struct TaskPages {
    client: Client,
    list: ListTasks,
    waiting: VecDeque<Task>,
    unknown_states: Vec<Option<String>>,
    finished: bool,
}

impl TaskPages {
    pub(crate) fn new(client: Client, list: ListTasks) -> Self {
        TaskPages { client, list, waiting: VecDeque::new(), unknown_states: Vec::new(), finished: false }
    }

    /// The next page, or `None` after the last.
    pub async fn next_page(&mut self) -> Option<Result<TaskPage, Error>> {
        if self.finished {
            return None;
        }
        let page = match self.client.call_peer(Call::ListTasks(self.list.clone())).await {
            Ok(FromPeer { value: Reply::Tasks(page), unknown_states }) => {
                self.unknown_states = unknown_states;
                page
            }
            Ok(_) => unreachable!("a list is answered with tasks"),
            Err(error) => {
                self.finished = true;
                return Some(Err(error));
            }
        };
        let token = Some(page.next_page_token.clone()).filter(|token| !token.is_empty());
        // The same token again would go on for ever.
        self.finished = token.is_none() || token == self.list.page_token;
        self.list.page_token = token;
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
    pub fn into_stream(self) -> impl Stream<Item = Result<Task, Error>> + Send {
        futures_util::stream::unfold(self, |mut pages| async { Some((pages.next().await?, pages)) })
    }
}
