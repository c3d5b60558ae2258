//! Two agents: the one beside the agent under test is wrong, or both are, or their wires are crossed.

use baton_lab::wire::request::Operation;

use super::{USUAL, V0_3, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{ALWAYS, Defect, Fault, Quirk, What};

/// What the agents answer with, and so what is passed on to the other.
const PASSED_ON: &str = "hello";
/// How the many begin.
const MANY: &str = "tck-complete-task between two agents";

const READ: &[Operation] = &[Operation::GetTask];
const SEND: &[Operation] = &[Operation::SendMessage];

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "second-card-leads-nowhere",
        wrong: "The second agent's card declares an address where nobody is.",
        second: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Map("supportedInterfaces.*.url", |url| *url = nowhere(url))],
        )],
        caught_by: &["V1-TWO-001", "V03-TWO-001"],
        related: &["V1-TWO-*", "V03-TWO-*"],
        ..USUAL
    },
    Defect {
        name: "second-changes-words",
        wrong: "The second agent's history holds other words than were sent.",
        second: &[Fault::Edit(What::Reply, V1.of(READ).saying(PASSED_ON), OTHER_WORDS)],
        caught_by: &["V1-TWO-002"],
        ..USUAL
    },
    Defect {
        name: "second-changes-words-0.3",
        wrong: "The second agent's history holds other words than were sent, in 0.3.",
        second: &[Fault::Edit(What::Reply, V0_3.of(READ).saying(PASSED_ON), OTHER_WORDS)],
        caught_by: &["V03-TWO-002"],
        ..USUAL
    },
    Defect {
        name: "changes-words-of-agents",
        wrong: "The history holds other words than another agent had written.",
        faults: &[Fault::Edit(What::Reply, V1.of(READ).saying(PASSED_ON), OTHER_WORDS)],
        caught_by: &["V1-TWO-003"],
        ..USUAL
    },
    Defect {
        name: "changes-words-of-agents-0.3",
        wrong: "The history holds other words than another agent had written, in 0.3.",
        faults: &[Fault::Edit(What::Reply, V0_3.of(READ).saying(PASSED_ON), OTHER_WORDS)],
        caught_by: &["V03-TWO-003"],
        ..USUAL
    },
    Defect {
        name: "one-store-for-two",
        wrong: "Two agents keep their tasks in one place, and answer for each other.",
        second: &[Fault::Quirk(Quirk::SharesAll, ALWAYS)],
        caught_by: &["V1-TWO-004", "V1-TWO-006", "V03-TWO-004"],
        related: &["V1-LIST-*"],
        ..USUAL
    },
    Defect {
        name: "crossed-wires",
        wrong: "An answer of the one agent goes to a client of the other.",
        faults: &[Fault::Quirk(Quirk::CrossedAnswers, V1.of(SEND).saying(MANY))],
        second: &[
            Fault::Quirk(Quirk::SharesAll, ALWAYS),
            Fault::Quirk(Quirk::CrossedAnswers, V1.of(SEND).saying(MANY)),
        ],
        caught_by: &["V1-TWO-005"],
        related: &["V1-TWO-004", "V1-TWO-006", "V03-TWO-004", "V1-LIST-*"],
        ..USUAL
    },
    Defect {
        name: "crossed-wires-0.3",
        wrong: "An answer of the one agent goes to a client of the other, in 0.3.",
        faults: &[Fault::Quirk(Quirk::CrossedAnswers, V0_3.of(SEND).saying(MANY))],
        second: &[
            Fault::Quirk(Quirk::SharesAll, ALWAYS),
            Fault::Quirk(Quirk::CrossedAnswers, V0_3.of(SEND).saying(MANY)),
        ],
        caught_by: &["V03-TWO-005"],
        related: &["V1-TWO-004", "V1-TWO-006", "V03-TWO-004", "V1-LIST-*"],
        ..USUAL
    },
    Defect {
        name: "calls-nobody",
        wrong: "An agent that is told to call another says it has, and has not.",
        faults: &[Fault::Quirk(Quirk::CallsNobody, V1)],
        caught_by: &["V1-TWO-007"],
        ..USUAL
    },
];

const OTHER_WORDS: &[Edit] = &[Edit::Set("history.0.parts.0.text", r#""goodbye""#)];

/// The same path on a port that nobody listens at: the discard service, which no test starts.
fn nowhere(url: &serde_json::Value) -> serde_json::Value {
    let path = url.as_str().and_then(|url| url.splitn(4, '/').nth(3)).unwrap_or_default();
    serde_json::json!(format!("http://127.0.0.1:9/{path}"))
}
