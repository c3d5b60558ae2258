//! Webhooks for whoever operates the server: which are open, which failed for good, and what can be done about them.
//!
//! The cursor in the store is the truth: a change compares its revision, as a delivery does, and the registry follows.
//!
//! | file | holds |
//! |---|---|
//! | `status` | what operators see of a webhook |
//! | `list` | finds them, page by page or by name |
//! | `replay`, `disable` | change one |

mod disable;
mod list;
mod replay;
mod status;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

pub use super::failed::SwitchedOff;
pub use list::{WebhookFilter, WebhookGroup, WebhookPage};
pub use replay::{ReplayPage, Replayed};
pub use status::{WebhookName, WebhookStatus};

use super::options::PushOptions;
use super::{Push, Shared};
use crate::engine::WatchedStore;
use crate::engine::clock::{Clock, SystemClock};
use crate::store::{IntoStore, StoreError};
use crate::telemetry::{Callers, MetricsAccess, Telemetry};

/// How often a change is tried while deliveries move the same cursor.
const TRIES: usize = 50;

/// Lists webhooks, replays those that failed, and switches them off: see [`Server::webhooks`](crate::Server::webhooks). A cheap
/// handle; while it is held, the store stays open.
#[derive(Clone)]
pub struct Webhooks {
    store: WatchedStore,
    clock: Arc<dyn Clock>,
    max_failed: u32,
    delivery: Delivery,
    /// Held while the last state of a task that is gone is sent: such calls are outside of the limits of deliveries.
    sending: Arc<Mutex<()>>,
}

#[derive(Clone)]
enum Delivery {
    Running(Push),
    /// The server has webhooks switched off.
    Off,
    /// No server runs on the store.
    NoServer,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// No webhook has the name.
    #[error("there is no webhook `{0}` that is open or failed")]
    Unknown(String),
    /// Several webhooks have the name.
    #[error("several webhooks are called `{name}`: {}; name one of them, with its owner, agent or tenant", among.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Some of them.
        among: Vec<String>,
    },
    /// The position of a page was not given by [`WebhookPage::next`].
    #[error("the page does not exist; begin again without `after`")]
    BadPosition,
    /// It is not open, for this reason.
    #[error("the webhook is not open: {0}")]
    NotOpen(String),
    /// It changed while it was being changed.
    #[error("the webhook is changing all the time; try again")]
    Changing,
    /// Its owner has removed it.
    #[error("the webhook was removed by its owner")]
    Removed,
    /// The server does not deliver.
    #[error("webhooks are switched off on this server ([push] enabled = false)")]
    Off,
    /// What is left can be sent by a server only.
    #[error("the task is gone, and only a running server can send what was kept of it")]
    NoServer,
    /// There is nothing to send.
    #[error("the task is gone, and nothing was kept of it")]
    NothingKept,
    /// The call was made and failed.
    #[error("the task is gone; what was kept of it was sent, but {0}")]
    NotDelivered(String),
    /// Another webhook of the same host has just failed, so this one was not tried.
    #[error("not tried, since its host has failed a moment ago")]
    HostFailed,
    /// Its record cannot be read.
    #[error("the record of the webhook cannot be read")]
    Unreadable,
    /// There are too many open webhooks.
    #[error("the server has as many open webhooks as it can have")]
    Full,
    /// The store failed. The change may have been stored all the same.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Webhooks {
    pub(crate) fn of_server(store: WatchedStore, clock: Arc<dyn Clock>, push: Option<Push>) -> Self {
        let of_push = push.as_ref().map(|Push(shared)| shared.options.max_failed);
        let max_failed = of_push.unwrap_or(PushOptions::default().max_failed);
        let delivery = push.map_or(Delivery::Off, Delivery::Running);
        Webhooks { store, clock, max_failed, delivery, sending: Arc::default() }
    }

    /// The webhooks of a store on which no server runs. The next server goes on with what is changed here. `max_failed` is
    /// [`PushOptions::max_failed`](crate::PushOptions::max_failed).
    pub fn in_store(store: impl IntoStore, max_failed: u32) -> Self {
        let telemetry = Telemetry::new([], Callers::new(Vec::new()), MetricsAccess::Off, false);
        Webhooks {
            store: WatchedStore::new(store.into_store(), telemetry),
            clock: Arc::new(SystemClock),
            max_failed,
            delivery: Delivery::NoServer,
            sending: Arc::default(),
        }
    }

    /// Whether a server with webhooks runs, so that what is due is delivered now.
    pub fn is_delivering(&self) -> bool {
        matches!(self.delivery, Delivery::Running(_))
    }

    /// Ends deliveries: see [`Push::stop`].
    pub(crate) async fn stop(&self, within: Duration) {
        if let Delivery::Running(push) = &self.delivery {
            push.stop(within).await;
        }
    }

    /// What delivers; `None` if nothing does.
    fn running(&self) -> Option<&Arc<Shared>> {
        match &self.delivery {
            Delivery::Running(Push(shared)) => Some(shared),
            Delivery::Off | Delivery::NoServer => None,
        }
    }
}
