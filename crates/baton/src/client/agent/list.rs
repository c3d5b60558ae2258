//! Lists: page by page, as the agent sent them, and no more of them than fit.

use std::collections::BTreeMap;

use baton_client::PageTokens;
use baton_protocol::domain::TaskId;
use baton_protocol::operation::{Call as Operation, ListTasks};
use serde_json::value::RawValue;

use super::Agent;
use crate::client::error::{CallError, Code};
use crate::output::view;

/// What is listed.
#[derive(Debug, Clone)]
pub(crate) enum Listing {
    Tasks(ListTasks),
    PushConfigs { task_id: TaskId, page_token: Option<String> },
}

/// As many bytes as one answer of an agent may have.
const MOST_BYTES: usize = 64 << 20;

impl Listing {
    fn page_token(&mut self) -> &mut Option<String> {
        match self {
            Self::Tasks(list) => &mut list.page_token,
            Self::PushConfigs { page_token, .. } => page_token,
        }
    }

    /// The members that a page always has, with their values if the agent leaves them out. The first has the items.
    fn members(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Tasks(_) => {
                &[("tasks", "[]"), ("nextPageToken", "\"\""), ("pageSize", "0"), ("totalSize", "0")]
            }
            Self::PushConfigs { .. } => &[("configs", "[]")],
        }
    }

    fn read(&self, json: String) -> Result<Page, CallError> {
        let mut members: BTreeMap<String, Box<RawValue>> = view::read(&json)?;
        for (other, usual) in
            [("next_page_token", "nextPageToken"), ("page_size", "pageSize"), ("total_size", "totalSize")]
        {
            if let Some(value) = members.remove(other) {
                members.insert(usual.to_owned(), value);
            }
        }
        let known = self.members();
        let is_whole = known.iter().all(|(name, _)| members.contains_key(*name));
        let items: Option<Vec<Box<RawValue>>> =
            members.remove(known[0].0).map_or(Ok(None), |items| view::read(items.get()))?;
        let items = items.unwrap_or_default();
        if matches!(self, Self::Tasks(_)) {
            items.iter().try_for_each(|item| view::read::<Identified>(item.get()).map(|_| ()))?;
        }
        let text = |name: &str| members.get(name).and_then(|value| view::read::<String>(value.get()).ok());
        let next = text("nextPageToken").unwrap_or_default();
        let bytes = json.len();
        Ok(Page { as_it_came: is_whole.then_some(json), kind: self.clone(), items, next, members, bytes })
    }
}

/// A task without an id cannot be shown or asked for.
#[derive(serde::Deserialize)]
struct Identified {
    #[serde(rename = "id")]
    _id: String,
}

/// One page, or several as one.
#[derive(Debug)]
pub(crate) struct Page {
    /// Unless something is missing, or was added.
    as_it_came: Option<String>,
    kind: Listing,
    /// The tasks or webhooks, each as it came.
    pub(crate) items: Vec<Box<RawValue>>,
    /// Empty on the last page.
    pub(crate) next: String,
    /// All others.
    members: BTreeMap<String, Box<RawValue>>,
    bytes: usize,
}

impl Page {
    /// Adds the page behind this one.
    pub(crate) fn append(&mut self, page: Page) -> Result<(), CallError> {
        self.as_it_came = None;
        self.items.extend(page.items);
        self.next = page.next;
        self.bytes += page.bytes;
        if self.bytes > MOST_BYTES {
            return Err(not_valid(format!("the list has more than {} MiB", MOST_BYTES >> 20))
                .with_hint("ask for single pages (--page-token), or with -o json --stream"));
        }
        Ok(())
    }

    pub(crate) fn total(&self) -> Option<u64> {
        self.members.get("totalSize").and_then(|total| total.get().parse().ok())
    }

    /// Members that nobody knows come last.
    pub(crate) fn json(&self) -> String {
        if let Some(json) = &self.as_it_came {
            return json.clone();
        }
        let known = self.kind.members();
        let items = self.items.iter().map(|item| item.get()).collect::<Vec<_>>().join(",");
        let next = serde_json::Value::from(self.next.as_str()).to_string();
        let value = |name: &str, default: &str| match name {
            "nextPageToken" => next.clone(),
            name => self.members.get(name).map_or(default, |value| value.get()).to_owned(),
        };
        let mut members = vec![format!("\"{}\":[{items}]", known[0].0)];
        members
            .extend(known[1..].iter().map(|(name, default)| format!("\"{name}\":{}", value(name, default))));
        let others = self.members.iter().filter(|(name, _)| !known.iter().any(|(known, _)| name == known));
        members.extend(
            others.map(|(name, value)| format!("{}:{}", serde_json::Value::from(name.as_str()), value.get())),
        );
        format!("{{{}}}", members.join(","))
    }
}

/// The pages of a list, one after the other.
pub(crate) struct Pages<'a> {
    agent: &'a Agent,
    listing: Listing,
    tokens: PageTokens,
    finished: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(agent: &'a Agent, mut listing: Listing) -> Self {
        let tokens = PageTokens::new(listing.page_token().as_deref());
        Pages { agent, listing, tokens, finished: false }
    }

    /// `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, CallError> {
        if self.finished {
            return Ok(None);
        }
        let page = self.listing.read(self.agent.page(&self.listing).await?)?;
        let token = self.tokens.follow(&page.next, page.items.is_empty());
        *self.listing.page_token() = token.map_err(|endless| not_valid(endless.to_string()))?;
        self.finished = self.listing.page_token().is_none();
        Ok(Some(page))
    }

    /// All pages as one.
    pub(crate) async fn all(mut self) -> Result<Page, CallError> {
        let Some(mut whole) = self.next().await? else {
            return Err(CallError::internal("the agent sent no page"));
        };
        while let Some(page) = self.next().await? {
            whole.append(page)?;
        }
        Ok(whole)
    }
}

fn not_valid(message: String) -> CallError {
    CallError::new(Code::Protocol("InvalidAgentResponseError".to_owned()), message)
}

impl Agent {
    pub(crate) fn tasks(&self, list: ListTasks) -> Pages<'_> {
        Pages::new(self, Listing::Tasks(list))
    }

    /// The webhooks of a task.
    pub(crate) fn push_configs(&self, task_id: &TaskId) -> Result<Pages<'_>, CallError> {
        self.needs_push()?;
        Ok(Pages::new(self, Listing::PushConfigs { task_id: task_id.clone(), page_token: None }))
    }

    /// One page, as 1.0 spells it.
    async fn page(&self, listing: &Listing) -> Result<String, CallError> {
        self.raw(match listing.clone() {
            Listing::Tasks(list) => Operation::ListTasks(list),
            Listing::PushConfigs { task_id, page_token } => {
                Operation::ListPushConfigs { task_id, page_size: None, page_token }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Page {
        Listing::Tasks(ListTasks::default()).read(json.to_owned()).unwrap()
    }

    #[test]
    fn cli_task_list_001_a_whole_page_stays_as_it_came() {
        let json = r#"{"x":1,"tasks":[{"y":2.0,"id":"t"}],"pageSize":1,"totalSize":3,"nextPageToken":"n"}"#;
        let page = read(json);
        assert_eq!((page.json().as_str(), page.total(), page.next.as_str()), (json, Some(3), "n"));
    }

    #[test]
    fn cli_task_list_001_pages_as_one_have_everything_that_came() {
        let mut whole = read(r#"{"x":1,"tasks":[{"id":"a","y":2.0}],"next_page_token":"n"}"#);
        whole.append(read(r#"{"tasks":[{"id":"b"}]}"#)).unwrap();
        let expected = r#"{"tasks":[{"id":"a","y":2.0},{"id":"b"}],"nextPageToken":"","pageSize":0,"totalSize":0,"x":1}"#;
        assert_eq!(whole.json(), expected);
        assert_eq!(read("{}").json(), r#"{"tasks":[],"nextPageToken":"","pageSize":0,"totalSize":0}"#);
    }

    #[test]
    fn p09_what_is_no_list_of_tasks_is_refused() {
        for json in ["[]", "7", r#"{"tasks":7}"#, r#"{"tasks":[7]}"#, r#"{"tasks":[{"status":{}}]}"#] {
            let error = Listing::Tasks(ListTasks::default()).read(json.to_owned()).unwrap_err();
            assert_eq!(error.code.as_str(), "InvalidAgentResponseError", "{json}");
        }
    }
}
