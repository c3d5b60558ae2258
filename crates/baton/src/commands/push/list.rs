//! `baton push list`.

use super::{Form, Reached, second};
use crate::admin::webhooks::{Group, ListedWebhooks, Webhook, WhichWebhooks};
use crate::commands::key::Place;
use crate::exit::Failure;
use crate::output::safe;

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those that failed for good or were switched off.
    #[arg(long, conflicts_with_all = ["open", "failing"])]
    failed: bool,
    /// Only those that have something to deliver, now or later.
    #[arg(long, conflicts_with = "failing")]
    open: bool,
    /// Only open ones whose last call has failed.
    #[arg(long)]
    failing: bool,
    /// Only those of this owner.
    #[arg(long)]
    owner: Option<String>,
    /// Only those of tasks with this id.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only those that call this host, with its port as the list shows it.
    #[arg(long)]
    host: Option<String>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

pub(super) async fn run(args: List) -> Result<(), Failure> {
    let List { failed, open, failing, owner, task, host, form, place } = args;
    let state = [(failed, Group::Failed), (open, Group::Open), (failing, Group::Failing)];
    let state = state.into_iter().find_map(|(is_wanted, group)| is_wanted.then_some(group));
    let mut which = WhichWebhooks { state, owner, task, host, after: None };
    let reached = Reached::of(place).await?;
    let mut all = ListedWebhooks::default();
    loop {
        let page = reached.list(&which).await?;
        all.webhooks.extend(page.webhooks);
        all.delivering = page.delivering;
        which.after = page.next;
        if which.after.is_none() {
            break;
        }
    }
    form.print(&all, || table(&all, &which))
}

/// One line for each webhook, in columns.
fn table(listed: &ListedWebhooks, which: &WhichWebhooks) -> String {
    let warning = match listed.delivering {
        true => "",
        false => "Nothing is delivered now: no server with webhooks runs\n",
    };
    if listed.webhooks.is_empty() {
        let none = if which.is_all() { "No webhook is open or failed" } else { "There are no such webhooks" };
        return format!("{none}\n{warning}");
    }
    let heading = ["WEBHOOK", "OWNER", "HOST", "STATE", "NEXT", "ATTEMPTS", "SINCE", "REASON"];
    let rows: Vec<[String; 8]> =
        std::iter::once(heading.map(str::to_owned)).chain(listed.webhooks.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect::<String>() + warning
}

fn row(webhook: &Webhook) -> [String; 8] {
    // Of how many: a task that is gone has none.
    let next = match webhook.last_event {
        Some(last) if webhook.next_event > last => "-".to_owned(),
        Some(last) => format!("{}/{last}", webhook.next_event),
        None => "gone".to_owned(),
    };
    let since = webhook.failed.as_deref().or(webhook.failing_since.as_deref());
    [
        safe::line(&webhook.name),
        safe::line(&webhook.owner),
        safe::line(&webhook.host),
        webhook.state.clone(),
        next,
        webhook.attempts.to_string(),
        since.map_or_else(|| "-".to_owned(), second),
        webhook.reason.as_deref().map(safe::line).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_webhooks_are_listed_in_columns() {
        let webhook = |name: &str, state: &str, last_event: Option<u64>| Webhook {
            name: name.to_owned(),
            task: "t".to_owned(),
            id: "w".to_owned(),
            agent: "demo".to_owned(),
            tenant: String::new(),
            owner: "größer".to_owned(),
            url: "https://example.org/hook?***".to_owned(),
            host: "example.org".to_owned(),
            protocol: Some("1.0".to_owned()),
            created: None,
            state: state.to_owned(),
            busy: false,
            last_event,
            next_event: 3,
            attempts: 0,
            failing_since: None,
            due: None,
            failed: (state == "failed").then(|| "2026-11-16T21:35:16.000Z".to_owned()),
            reason: (state == "failed").then(|| "the webhook answered with status 500".to_owned()),
            kept: false,
        };
        let webhooks = vec![
            webhook("t/w", "open", Some(2)),
            webhook("t\u{1b}[2J/w", "failed", Some(7)),
            webhook("t/x", "failed", None),
        ];
        assert_eq!(
            table(&ListedWebhooks { webhooks, delivering: false, next: None }, &WhichWebhooks::default()),
            "WEBHOOK       OWNER   HOST         STATE   NEXT  ATTEMPTS  SINCE                    REASON\n\
             t/w           größer  example.org  open    -     0         -\n\
             t\\u{1b}[2J/w  größer  example.org  failed  3/7   0         2026-11-16 21:35:16 UTC  the webhook \
             answered with status 500\n\
             t/x           größer  example.org  failed  gone  0         2026-11-16 21:35:16 UTC  the webhook \
             answered with status 500\n\
             Nothing is delivered now: no server with webhooks runs\n"
        );
        let none = ListedWebhooks { delivering: true, ..ListedWebhooks::default() };
        let of_bob = WhichWebhooks { owner: Some("bob".to_owned()), ..WhichWebhooks::default() };
        assert_eq!(table(&none, &of_bob), "There are no such webhooks\n");
        assert_eq!(table(&none, &WhichWebhooks::default()), "No webhook is open or failed\n");
    }
}
