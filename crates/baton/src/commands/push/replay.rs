//! `baton push replay`.

use super::{Form, One, Reached, called};
use crate::admin::webhooks::{Done, Group, ReplayedWebhook, ReplayedWebhooks, WhichWebhooks, Whose};
use crate::commands::key::Place;
use crate::exit::Failure;
use crate::output::safe;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["name", "all_failed"]))]
pub(crate) struct Replay {
    /// The webhook as `list` shows it, `TASK/ID`; the task alone if it has one webhook.
    #[arg(value_name = "TASK/ID")]
    name: Option<String>,
    /// All that failed for good; those of `--owner`, if that is given. What `disable` has switched off stays off.
    #[arg(long, conflicts_with_all = ["agent", "tenant"])]
    all_failed: bool,
    /// With --all-failed: only those that call this host, with its port as `list` shows it.
    #[arg(long, conflicts_with = "name")]
    host: Option<String>,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

pub(super) async fn run(args: Replay) -> Result<(), Failure> {
    let Replay { name, all_failed: _, host, whose, form, place } = args;
    let reached = Reached::of(place).await?;
    let Some(name) = name else {
        let which = WhichWebhooks {
            state: Some(Group::Failed),
            owner: whose.owner,
            host,
            ..WhichWebhooks::default()
        };
        return all(&reached, which, &form).await;
    };
    let replayed = reached.replay(&One { name, whose }).await?;
    form.print(&replayed, || text(&replayed))
}

async fn all(reached: &Reached, mut which: WhichWebhooks, form: &Form) -> Result<(), Failure> {
    let mut all = ReplayedWebhooks::default();
    loop {
        let page = reached.replay_failed(&which).await?;
        all.results.extend(page.results);
        all.delivering = page.delivering;
        which.after = page.next;
        if which.after.is_none() {
            break;
        }
    }
    form.print(&all, || match all.results.is_empty() {
        true => "There are no such webhooks\n".to_owned(),
        false => text(&all),
    })?;
    match all.results.iter().filter(|result| result.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::failed(format!("{failed} of {} were not replayed", all.results.len()))),
    }
}

fn text(replayed: &ReplayedWebhooks) -> String {
    replayed.results.iter().map(|result| line(result, replayed.delivering)).collect()
}

fn line(result: &ReplayedWebhook, delivering: bool) -> String {
    let webhook = called(&result.webhook);
    let when = if delivering { "" } else { ", once a server runs" };
    match (result.done, &result.error) {
        (Some(Done::Reopened), _) => {
            format!("{webhook} is open again; it goes on with event {}{when}\n", result.webhook.next_event)
        }
        (Some(Done::Due), _) => format!("{webhook} is tried now{when}\n"),
        (Some(Done::Busy), _) => format!("{webhook} is being called already\n"),
        (Some(Done::Sent), _) => format!("{webhook} got what was kept of its task, which is gone\n"),
        (Some(Done::Nothing), _) => format!("{webhook} has got everything\n"),
        (None, error) => {
            let error = error.as_deref().unwrap_or("it was not replayed");
            format!("{webhook}: {}\n", safe::line(error))
        }
    }
}
