//! The objects of 0.1, member by member, as the text of v0.1.0 has them.
//!
//! Clients and servers of the time wrote `null` for whatever was not there; [`without_nulls`] takes that out first.

use serde_json::Value;

use crate::native::shape::{Kind, Need, Shape};

pub(super) const STATES: &[&str] =
    &["submitted", "working", "input-required", "completed", "canceled", "failed", "unknown"];

const PART: Kind = Kind::Tagged("type", &[("text", &TEXT_PART), ("file", &FILE_PART), ("data", &DATA_PART)]);

static TEXT_PART: Shape =
    Shape { members: &[("text", Need::There, Kind::Text), ("metadata", Need::May, Kind::Free)], one_of: &[] };

static FILE_PART: Shape = Shape {
    members: &[("file", Need::There, Kind::Object(&FILE)), ("metadata", Need::May, Kind::Free)],
    one_of: &[],
};

/// An object in the schema, an object or a list in the prose.
static DATA_PART: Shape = Shape {
    members: &[("data", Need::There, Kind::Structured), ("metadata", Need::May, Kind::Free)],
    one_of: &[],
};

/// A file whose content is carried; one that is only mentioned would have neither.
static FILE: Shape = Shape {
    members: &[
        ("name", Need::May, Kind::Text),
        ("mimeType", Need::May, Kind::Text),
        ("bytes", Need::May, Kind::Bytes),
        ("uri", Need::May, Kind::Text),
    ],
    one_of: &[],
};

pub(super) static MESSAGE: Shape = Shape {
    members: &[
        ("role", Need::There, Kind::Word(&["user", "agent"])),
        ("parts", Need::Filled, Kind::List(&PART)),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &[],
};

/// Also an entry of a history of states.
pub(super) static STATUS: Shape = Shape {
    members: &[
        ("state", Need::There, Kind::Word(STATES)),
        ("message", Need::May, Kind::Object(&MESSAGE)),
        ("timestamp", Need::May, Kind::Iso),
    ],
    one_of: &[],
};

static ARTIFACT: Shape = Shape {
    members: &[
        ("name", Need::May, Kind::Text),
        ("description", Need::May, Kind::Text),
        ("parts", Need::Filled, Kind::List(&PART)),
        ("index", Need::May, Kind::Number),
        ("append", Need::May, Kind::Flag),
        ("lastChunk", Need::May, Kind::Flag),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &[],
};

/// The history has cases of its own: it is a list of messages in one text, of states in another.
pub(super) static TASK: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("sessionId", Need::May, Kind::Text),
        ("status", Need::There, Kind::Object(&STATUS)),
        ("artifacts", Need::May, Kind::List(&Kind::Object(&ARTIFACT))),
        ("history", Need::May, Kind::List(&Kind::Free)),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &[],
};

pub(super) static EVENT: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("status", Need::May, Kind::Object(&STATUS)),
        ("artifact", Need::May, Kind::Object(&ARTIFACT)),
        ("final", Need::May, Kind::Flag),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &["status", "artifact"],
};

pub(super) static PUSH_CONFIG: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("pushNotificationConfig", Need::There, Kind::Object(&WEBHOOK)),
    ],
    one_of: &[],
};

static WEBHOOK: Shape =
    Shape { members: &[("url", Need::Filled, Kind::Text), ("token", Need::May, Kind::Text)], one_of: &[] };

/// What every text of the generation requires of a card.
pub(super) static CARD: Shape = Shape {
    members: &[
        ("name", Need::Filled, Kind::Text),
        ("url", Need::Filled, Kind::Text),
        ("skills", Need::There, Kind::List(&Kind::Free)),
        ("description", Need::May, Kind::Text),
        ("version", Need::May, Kind::Text),
        ("capabilities", Need::May, Kind::Object(&CAPABILITIES)),
        ("provider", Need::May, Kind::Free),
        ("documentationUrl", Need::May, Kind::Text),
        ("authentication", Need::May, Kind::Object(&AUTHENTICATION)),
        ("defaultInputModes", Need::May, Kind::List(&Kind::Text)),
        ("defaultOutputModes", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

/// What one of the texts requires.
pub(super) static WHOLE_CARD: Shape = Shape {
    members: &[
        ("description", Need::Filled, Kind::Text),
        ("version", Need::Filled, Kind::Text),
        ("capabilities", Need::There, Kind::Object(&CAPABILITIES)),
        ("skills", Need::Filled, Kind::List(&Kind::Free)),
    ],
    one_of: &[],
};

static CAPABILITIES: Shape = Shape {
    members: &[
        ("streaming", Need::May, Kind::Flag),
        ("pushNotifications", Need::May, Kind::Flag),
        ("stateTransitionHistory", Need::May, Kind::Flag),
    ],
    one_of: &[],
};

static AUTHENTICATION: Shape =
    Shape { members: &[("schemes", Need::There, Kind::List(&Kind::Text))], one_of: &[] };

pub(super) static SKILL: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("name", Need::Filled, Kind::Text),
        ("description", Need::May, Kind::Text),
        ("tags", Need::May, Kind::List(&Kind::Text)),
        ("examples", Need::May, Kind::List(&Kind::Text)),
        ("inputModes", Need::May, Kind::List(&Kind::Text)),
        ("outputModes", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

pub(super) static WHOLE_SKILL: Shape = Shape {
    members: &[
        ("description", Need::Filled, Kind::Text),
        ("inputModes", Need::Filled, Kind::List(&Kind::Text)),
        ("outputModes", Need::Filled, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

/// Members that are null are not there; what users put into metadata and data is theirs.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null()).map(|(name, member)| {
                let own = matches!(name.as_str(), "metadata" | "data");
                (name.clone(), if own { member.clone() } else { without_nulls(member) })
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::shape::faults;
    use serde_json::json;

    #[test]
    fn nulls_of_the_time_do_no_harm() {
        let event = json!({"id": "t", "status": {"state": "working", "message": null}, "artifact": null,
            "final": false, "metadata": {"mine": null}});
        let plain = without_nulls(&event);
        assert_eq!(
            plain,
            json!({"id": "t", "status": {"state": "working"}, "final": false, "metadata": {"mine": null}})
        );
        assert_eq!(faults(&EVENT, &plain, ""), []);
        assert_eq!(faults(&EVENT, &event, "").len(), 1);
        let list = without_nulls(&json!([{"data": {"a": null}}, {"b": null}]));
        assert_eq!(list, json!([{"data": {"a": null}}, {}]));
    }
}
