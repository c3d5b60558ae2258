//! `baton push show`.

use super::{Form, One, Reached, second};
use crate::admin::webhooks::Webhook;
use crate::commands::key::Place;
use crate::exit::Failure;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    #[command(flatten)]
    which: One,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

pub(super) async fn run(args: Show) -> Result<(), Failure> {
    let Show { which, form, place } = args;
    let webhook = Reached::of(place).await?.show(&which).await?;
    form.print(&webhook, || text(&webhook))
}

fn text(webhook: &Webhook) -> String {
    let mut section = Section::default();
    section.field("Webhook", &webhook.name);
    section.field("Owner", &webhook.owner);
    section.field("Agent", &webhook.agent);
    section.optional("Tenant", Some(&webhook.tenant).filter(|tenant| !tenant.is_empty()));
    section.field("URL", &webhook.url);
    section.optional("Protocol", webhook.protocol.as_ref());
    section.optional("Created", webhook.created.as_deref().map(second));
    section.field("State", if webhook.busy { "being called" } else { &webhook.state });
    section.optional("Reason", webhook.reason.as_ref());
    section.optional(
        if webhook.state == "failed" { "Failed" } else { "Switched off" },
        webhook.failed.as_deref().map(second),
    );
    section.field("Next event", next(webhook));
    section.field("Failed attempts", webhook.attempts.to_string());
    section.optional("Failing since", webhook.failing_since.as_deref().map(second));
    section.optional("Next attempt", webhook.due.as_deref().filter(|_| !webhook.busy).map(second));
    section.end()
}

fn next(webhook: &Webhook) -> String {
    let number = webhook.next_event;
    match (webhook.last_event, webhook.kept) {
        (Some(last), _) if number > last => format!("none yet; the task is at event {last}"),
        (Some(last), _) => format!("{number} of {last}"),
        (None, true) => format!("{number}; the task is gone, and its last state is kept"),
        (None, false) => format!("{number}; the task is gone, and nothing is kept of it"),
    }
}
