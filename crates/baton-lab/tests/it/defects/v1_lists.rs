//! ListTasks.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "list-ignores-context",
        wrong: "A list does not keep to the context.",
        faults: &[Fault::Quirk(Quirk::ListIgnoresContext, V1)],
        caught_by: &["V1-LIST-001"],
        related: &["V1-LIST-*", "V1-EQUIV-002", "V1-LIFE-013"],
        ..USUAL
    },
    Defect {
        name: "list-shows-artifacts",
        wrong: "Lists show artifacts nobody asked for.",
        faults: &[Fault::Quirk(Quirk::ListShowsArtifacts, V1)],
        caught_by: &["V1-LIST-002"],
        ..USUAL
    },
    Defect {
        name: "list-of-20",
        wrong: "A page has 20 tasks when nobody says how many.",
        faults: &[Fault::Quirk(Quirk::ShortPages, V1)],
        caught_by: &["V1-LIST-003"],
        ..USUAL
    },
    Defect {
        name: "list-drops-empty-token",
        wrong: "The last page has no `nextPageToken`.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::ListTasks]),
            &[Edit::Map("", |page| {
                page.as_object_mut().into_iter().for_each(|page| page.retain(|_, value| value != ""))
            })],
        )],
        caught_by: &["V1-LIST-004"],
        related: &["V1-LIST-003", "V1-LIST-005", "V1-LIST-006", "V1-LIST-015"],
        ..USUAL
    },
    Defect {
        name: "list-drops-empty-tasks",
        wrong: "An empty page has no `tasks`.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::ListTasks]),
            &[Edit::Map("", |page| {
                page.as_object_mut()
                    .into_iter()
                    .for_each(|page| page.retain(|_, value| *value != serde_json::json!([])))
            })],
        )],
        caught_by: &["V1-LIST-005"],
        related: &["V1-LIST-009"],
        ..USUAL
    },
    Defect {
        name: "pages-overlap",
        wrong: "A page begins with the last task of the page before.",
        faults: &[Fault::Quirk(Quirk::PagesOverlap, V1)],
        caught_by: &["V1-LIST-006"],
        ..USUAL
    },
    Defect {
        name: "list-oldest-first",
        wrong: "The oldest task comes first.",
        faults: &[Fault::Quirk(Quirk::OldestFirst, V1)],
        caught_by: &["V1-LIST-007"],
        related: &["V1-LIST-006"],
        ..USUAL
    },
    Defect {
        name: "page-size-zero-taken",
        wrong: "A `pageSize` of 0 or less is taken.",
        faults: &[Fault::Rule(Rule::PageSizeSmall, V1, Instead::Allow)],
        caught_by: &["V1-LIST-008"],
        ..USUAL
    },
    Defect {
        name: "page-size-100-refused",
        wrong: "A `pageSize` over 50 is refused.",
        faults: &[Fault::Rule(Rule::PageSizeOver50, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-LIST-009"],
        ..USUAL
    },
    Defect {
        name: "any-page-token-taken",
        wrong: "A `pageToken` that nobody made gives the first page.",
        faults: &[Fault::Rule(Rule::PageToken, V1, Instead::Allow)],
        caught_by: &["V1-LIST-010"],
        ..USUAL
    },
    Defect {
        name: "list-ignores-state",
        wrong: "A list does not keep to the state.",
        faults: &[Fault::Quirk(Quirk::ListIgnoresState, V1)],
        caught_by: &["V1-LIST-011"],
        ..USUAL
    },
    Defect {
        name: "unknown-state-taken",
        wrong: "A `status` that is no state is taken.",
        faults: &[Fault::Rule(Rule::StatusWord, V1, Instead::Allow)],
        caught_by: &["V1-LIST-012"],
        ..USUAL
    },
    Defect {
        name: "time-is-exclusive",
        wrong: "`statusTimestampAfter` leaves out tasks of that very time.",
        faults: &[Fault::Quirk(Quirk::TimeIsExclusive, V1)],
        caught_by: &["V1-LIST-013"],
        ..USUAL
    },
    Defect {
        name: "unknown-time-taken",
        wrong: "A `statusTimestampAfter` that is no time is taken.",
        faults: &[Fault::Rule(Rule::TimeWord, V1, Instead::Allow)],
        caught_by: &["V1-LIST-014"],
        ..USUAL
    },
    Defect {
        name: "listed-messages-without-id",
        wrong: "Messages in lists have no id.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::ListTasks]),
            &[Edit::Remove("tasks.*.history.*.messageId")],
        )],
        caught_by: &["V1-LIST-015"],
        ..USUAL
    },
];
