//! Calls about webhooks, and their answers: nothing in them is secret.

use baton_protocol::domain::Timestamp;
use baton_server::store::WebhookState;
use baton_server::{
    Replayed, SwitchedOff, WebhookError, WebhookFilter, WebhookGroup, WebhookName, WebhookStatus, Webhooks,
};
use serde::{Deserialize, Serialize};

use super::calls::time_text;

/// How many webhooks one answer lists.
const PAGE: usize = 500;

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhook {
    /// `TASK/ID`.
    pub(crate) name: String,
    pub(crate) task: String,
    pub(crate) id: String,
    pub(crate) agent: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) tenant: String,
    pub(crate) owner: String,
    /// Without user, password and query.
    pub(crate) url: String,
    pub(crate) host: String,
    /// The version of the protocol in which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// RFC 3339, like the other times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    /// `open`, `failing` (open, and the last call has failed), `failed`, `gone` (its receiver answered 410) or `disabled` (by
    /// the operator).
    pub(crate) state: String,
    /// A call is under way, or waits for its host.
    pub(crate) busy: bool,
    /// Number of the task's last event; missing if the task is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_event: Option<u64>,
    /// Number of the first event that was not delivered.
    pub(crate) next_event: u64,
    /// Failed attempts at it.
    pub(crate) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failing_since: Option<String>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<String>,
    /// When it failed for good or was switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// Why, or why the last call of an open one has failed, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The task was kept when the webhook failed: it can be sent even if the task is gone.
    pub(crate) kept: bool,
}

impl Webhook {
    fn of(status: WebhookStatus) -> Self {
        let state = match status.state {
            WebhookState::Open if status.attempts > 0 => "failing",
            WebhookState::Open => "open",
            WebhookState::Finished => "finished",
            WebhookState::Failed => "failed",
            WebhookState::Disabled if status.off == Some(SwitchedOff::Operator) => "disabled",
            WebhookState::Disabled => "gone",
        };
        let time = |at: Option<Timestamp>| at.map(time_text);
        Webhook {
            name: format!("{}/{}", status.task, status.id),
            task: status.task.to_string(),
            id: status.id.to_string(),
            agent: status.agent,
            tenant: status.tenant,
            owner: status.owner,
            url: status.url,
            host: status.host,
            protocol: status.generation.map(|generation| generation.version().to_owned()),
            created: time(status.created_at),
            state: state.to_owned(),
            busy: status.is_busy,
            last_event: status.version,
            next_event: status.next,
            attempts: status.attempts,
            failing_since: time(status.failing_since),
            due: time(status.due),
            failed: time(status.failed_at),
            reason: status.reason,
            kept: status.has_last_task,
        }
    }
}

/// Which webhooks to list or to replay, and the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WhichWebhooks {
    pub(crate) state: Option<Group>,
    pub(crate) owner: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) host: Option<String>,
    /// `next` of the answer before.
    pub(crate) after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Open,
    /// Open ones whose last call has failed.
    Failing,
    Failed,
}

/// Where a webhook is, if its name alone does not say it.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Whose {
    /// The owner, if several have tasks with this id.
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// The id of the agent, if several have tasks with this id.
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The tenant, if several have tasks with this id.
    #[arg(long)]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ListedWebhooks {
    pub(crate) webhooks: Vec<Webhook>,
    /// Whether a server with webhooks runs.
    pub(crate) delivering: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReplayedWebhooks {
    pub(crate) results: Vec<ReplayedWebhook>,
    pub(crate) delivering: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A webhook as it was, and what a replay did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReplayedWebhook {
    pub(crate) webhook: Webhook,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Done>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Done {
    /// It is open again.
    Reopened,
    /// It was open, and is tried now.
    Due,
    /// A call was under way already.
    Busy,
    /// What was kept of its task was sent.
    Sent,
    /// Nothing is left to deliver.
    Nothing,
}

pub(crate) async fn list(webhooks: &Webhooks, which: &WhichWebhooks) -> Result<ListedWebhooks, WebhookError> {
    let page = webhooks.list(&which.filter(), which.after.as_deref(), PAGE).await?;
    let delivering = webhooks.is_delivering();
    Ok(ListedWebhooks {
        webhooks: page.webhooks.into_iter().map(Webhook::of).collect(),
        delivering,
        next: page.next,
    })
}

pub(crate) async fn show(webhooks: &Webhooks, name: &str, whose: &Whose) -> Result<Webhook, WebhookError> {
    webhooks.find(&whose.name(name)).await.map(Webhook::of)
}

pub(crate) async fn replay(
    webhooks: &Webhooks,
    name: &str,
    whose: &Whose,
) -> Result<ReplayedWebhooks, WebhookError> {
    let status = webhooks.find(&whose.name(name)).await?;
    let replayed = webhooks.replay(&status.name()).await?;
    let results = vec![ReplayedWebhook::of(status, Ok(replayed))];
    Ok(ReplayedWebhooks { results, delivering: webhooks.is_delivering(), next: None })
}

pub(crate) async fn replay_failed(
    webhooks: &Webhooks,
    which: &WhichWebhooks,
) -> Result<ReplayedWebhooks, WebhookError> {
    let page = webhooks.replay_failed(&which.filter(), which.after.as_deref()).await?;
    let results = page.results.into_iter().map(|(status, done)| ReplayedWebhook::of(status, done)).collect();
    Ok(ReplayedWebhooks { results, delivering: webhooks.is_delivering(), next: page.next })
}

pub(crate) async fn disable(webhooks: &Webhooks, name: &str, whose: &Whose) -> Result<Webhook, WebhookError> {
    webhooks.disable(&whose.name(name)).await.map(Webhook::of)
}

impl ReplayedWebhook {
    fn of(status: WebhookStatus, replayed: Result<Replayed, WebhookError>) -> Self {
        let (done, error) = match replayed {
            Ok(replayed) => (Some(Done::of(replayed)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        ReplayedWebhook { webhook: Webhook::of(status), done, error }
    }
}

impl Done {
    fn of(replayed: Replayed) -> Self {
        match replayed {
            Replayed::Reopened => Done::Reopened,
            Replayed::Due => Done::Due,
            Replayed::UnderWay => Done::Busy,
            Replayed::LastTaskSent => Done::Sent,
            _ => Done::Nothing,
        }
    }
}

/// The parameters of a query, as they came.
pub(crate) type Parameters = Vec<(String, String)>;

/// Reads a query with these parameters, each at most once. `Err` is a sentence for whoever made the call.
fn read_query(parameters: Parameters, known: &mut [(&str, &mut Option<String>)]) -> Result<(), String> {
    for (name, value) in parameters {
        let Some(at) = known.iter().position(|(known, _)| *known == name) else {
            let names: Vec<_> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(format!("`{name}` is not a parameter of this call, which has {}", names.join(", ")));
        };
        if known[at].1.replace(value).is_some() {
            return Err(format!("the parameter `{name}` is there twice"));
        }
    }
    Ok(())
}

impl WhichWebhooks {
    /// No filter: all webhooks.
    pub(crate) fn is_all(&self) -> bool {
        let WhichWebhooks { state, owner, task, host, after: _ } = self;
        state.is_none() && owner.is_none() && task.is_none() && host.is_none()
    }

    pub(crate) fn from_query(parameters: Parameters) -> Result<Self, String> {
        let (mut which, mut state) = (Self::default(), None);
        let known = &mut [
            ("state", &mut state),
            ("owner", &mut which.owner),
            ("task", &mut which.task),
            ("host", &mut which.host),
            ("after", &mut which.after),
        ];
        read_query(parameters, known)?;
        which.state = state.as_deref().map(Group::from_name).transpose()?;
        Ok(which)
    }

    /// As a query.
    pub(crate) fn query(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("state", self.state.map(Group::name)),
            ("owner", self.owner.as_deref()),
            ("task", self.task.as_deref()),
            ("host", self.host.as_deref()),
            ("after", self.after.as_deref()),
        ]
    }

    fn filter(&self) -> WebhookFilter {
        let mut filter = WebhookFilter::default();
        filter.group = match self.state {
            None => WebhookGroup::All,
            Some(Group::Open | Group::Failing) => WebhookGroup::Open,
            Some(Group::Failed) => WebhookGroup::Failed,
        };
        filter.failing = self.state == Some(Group::Failing);
        (filter.owner, filter.task, filter.host) = (self.owner.clone(), self.task.clone(), self.host.clone());
        filter
    }
}

impl Group {
    const ALL: [Group; 3] = [Group::Open, Group::Failing, Group::Failed];

    fn from_name(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|group| group.name() == text);
        found.ok_or_else(|| {
            let [open, failing, failed] = Self::ALL.map(Self::name);
            format!("`state` is `{open}`, `{failing}` or `{failed}`, not `{text}`")
        })
    }

    fn name(self) -> &'static str {
        match self {
            Group::Open => "open",
            Group::Failing => "failing",
            Group::Failed => "failed",
        }
    }
}

impl Whose {
    pub(crate) fn from_query(parameters: Parameters) -> Result<Self, String> {
        let mut whose = Self::default();
        let known =
            &mut [("owner", &mut whose.owner), ("agent", &mut whose.agent), ("tenant", &mut whose.tenant)];
        read_query(parameters, known)?;
        Ok(whose)
    }

    /// As a query.
    pub(crate) fn query(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("owner", self.owner.as_deref()),
            ("agent", self.agent.as_deref()),
            ("tenant", self.tenant.as_deref()),
        ]
    }

    fn name(&self, name: &str) -> WebhookName {
        let mut name = WebhookName::new(name);
        (name.owner, name.agent, name.tenant) = (self.owner.clone(), self.agent.clone(), self.tenant.clone());
        name
    }
}
