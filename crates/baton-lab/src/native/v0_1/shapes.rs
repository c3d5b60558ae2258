//! The objects of 0.1, member by member, according to v0.1.0.
//!
//! 0.1 clients and servers wrote `null` for absent members; [`without_nulls`] removes them first.

use serde_json::Value;

use crate::native::shape::{Kind, shapes};

pub(super) const STATES: &[&str] =
    &["submitted", "working", "input-required", "completed", "canceled", "failed", "unknown"];

const PART: Kind = Kind::Tagged("type", &[("text", &TEXT_PART), ("file", &FILE_PART), ("data", &DATA_PART)]);

shapes! {
    TEXT_PART {
        There text Text;
        May metadata Free;
    }

    FILE_PART {
        There file (FILE);
        May metadata Free;
    }

    /// An object in the schema, an object or a list in the text.
    DATA_PART {
        There data Structured;
        May metadata Free;
    }

    /// A file with content; one that is only mentioned would have neither member.
    FILE {
        May name Text, mimeType Text, bytes Bytes, uri Text;
    }

    pub(super) MESSAGE {
        Filled parts [(as PART)];
        There role (= &["user", "agent"]);
        May metadata Free;
    }

    /// Also an entry of a history of states.
    pub(super) STATUS {
        There state (= STATES);
        May message (MESSAGE), timestamp Iso;
    }

    ARTIFACT {
        Filled parts [(as PART)];
        May name Text, description Text, index Number, append Flag, lastChunk Flag, metadata Free;
    }

    /// The history has cases of its own: it is a list of messages in one document, of states in another.
    pub(super) TASK {
        Filled id Text;
        There status (STATUS);
        May sessionId Text, artifacts [(ARTIFACT)], history [Free], metadata Free;
    }

    pub(super) EVENT = status | artifact {
        Filled id Text;
        May status (STATUS), artifact (ARTIFACT), final Flag, metadata Free;
    }

    pub(super) PUSH_CONFIG {
        Filled id Text;
        There pushNotificationConfig (WEBHOOK);
    }

    WEBHOOK {
        Filled url Text;
        May token Text;
    }

    /// Members of a card that all documents of 0.1 require.
    pub(super) CARD {
        Filled name Text, url Text;
        There skills [Free];
        May description Text, version Text, capabilities (CAPABILITIES), provider Free, documentationUrl Text,
            authentication (AUTHENTICATION), defaultInputModes [Text], defaultOutputModes [Text];
    }

    /// Members that one of the documents requires.
    pub(super) WHOLE_CARD {
        Filled description Text, version Text, skills [Free];
        There capabilities (CAPABILITIES);
    }

    CAPABILITIES {
        May streaming Flag, pushNotifications Flag, stateTransitionHistory Flag;
    }

    AUTHENTICATION {
        There schemes [Text];
    }

    pub(super) SKILL {
        Filled id Text, name Text;
        May description Text, tags [Text], examples [Text], inputModes [Text], outputModes [Text];
    }

    pub(super) WHOLE_SKILL {
        Filled description Text, inputModes [Text], outputModes [Text];
    }
}

/// Removes null members, except in metadata and data, which have free content.
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
