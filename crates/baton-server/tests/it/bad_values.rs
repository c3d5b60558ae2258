//! The type of each member of a send in each generation, and values that are invalid for it.

use serde_json::{Value, json};

use crate::faces::Face;

/// The type of a member; `bad` gives invalid values for it.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Object,
    Id,
    Texts,
    Flag,
    Count,
    Role,
    Parts,
    Part,
    Webhook,
}

impl Kind {
    pub(crate) fn bad(self, face: Face) -> Vec<Value> {
        let long = "x".repeat(300);
        match self {
            Kind::Object => vec![json!(1), json!("x"), json!([]), json!(true)],
            Kind::Id => {
                vec![json!(1), json!([]), json!({}), json!(true), json!(long), json!("a\nb"), json!("\0")]
            }
            Kind::Texts => vec![json!(1), json!("x"), json!({}), json!([1]), json!([null]), json!([[]])],
            Kind::Flag => vec![json!("yes"), json!(1), json!([]), json!({})],
            Kind::Count => {
                vec![json!(-1), json!(1.5), json!("x"), json!([]), json!({}), json!(true), json!(1e10)]
            }
            Kind::Role => vec![
                json!("system"),
                json!(""),
                json!(-1),
                json!(3),
                json!([]),
                json!({}),
                json!(true),
                json!("USER"),
                if matches!(face, Face::V03Rpc | Face::V01Rpc) {
                    json!("ROLE_USER")
                } else {
                    json!("ROLE_UNSPECIFIED")
                },
                if matches!(face, Face::V03Rpc | Face::V01Rpc) {
                    json!("agent")
                } else {
                    json!("ROLE_AGENT")
                },
            ],
            Kind::Parts => {
                vec![json!(1), json!("x"), json!({}), json!([]), json!([1]), json!([null]), json!([[]])]
            }
            Kind::Part => {
                let mut bad = vec![
                    json!({}),
                    json!("x"),
                    json!({"text": 1}),
                    json!({"text": ["a"]}),
                    json!({"text": {"a": 1}}),
                    json!({"text": "a", "metadata": []}),
                    json!({"text": "a", "metadata": "x"}),
                    json!({"kind": "text", "type": "text"}),
                ];
                if face.is_v1() {
                    bad.extend([
                        json!({"text": "a", "url": "https://example.com"}),
                        json!({"raw": "***"}),
                        json!({"raw": [1]}),
                        json!({"url": 1}),
                        json!({"text": "a", "filename": 1}),
                        json!({"text": "a", "mediaType": {}}),
                    ]);
                } else {
                    let kind = if face == Face::V01Rpc { "type" } else { "kind" };
                    bad.extend([
                        json!({kind: "text"}),
                        json!({kind: "file", "text": "a"}),
                        json!({kind: "sound", "text": "a"}),
                        json!({kind: "data"}),
                        json!({kind: "file", "file": {}}),
                        json!({kind: "file", "file": {"bytes": "***"}}),
                        json!({kind: "file", "file": {"bytes": "AA==", "uri": "https://example.com"}}),
                        json!({kind: "file", "file": {"uri": 1}}),
                        json!({kind: "file", "file": [1]}),
                        json!({kind: 1, "text": "a"}),
                    ]);
                    // 0.1 does not define the type of data, so anything is valid.
                    if face != Face::V01Rpc {
                        bad.push(json!({kind: "data", "data": [1]}));
                    }
                }
                bad
            }
            Kind::Webhook => {
                vec![json!(1), json!("x"), json!([]), json!({}), json!({"url": 1}), json!({"token": "a"})]
            }
        }
    }
}

/// The members of a send: path, kind, and whether it may be missing.
pub(crate) fn members(face: Face) -> Vec<(&'static str, Kind, bool)> {
    let parts = if face == Face::V03Http { "/message/content" } else { "/message/parts" };
    let first = if face == Face::V03Http { "/message/content/0" } else { "/message/parts/0" };
    let mut all = vec![
        ("/message", Kind::Object, false),
        ("/message/role", Kind::Role, false),
        (parts, Kind::Parts, false),
        (first, Kind::Part, true),
        ("/message/metadata", Kind::Object, true),
        ("/metadata", Kind::Object, true),
    ];
    if face == Face::V01Rpc {
        all.extend([
            ("/id", Kind::Id, false),
            ("/sessionId", Kind::Id, true),
            ("/historyLength", Kind::Count, true),
            ("/acceptedOutputModes", Kind::Texts, true),
            ("/pushNotification", Kind::Webhook, true),
        ]);
        return all;
    }
    let webhook = match face {
        Face::V03Rpc => "/configuration/pushNotificationConfig",
        Face::V03Http => "/configuration/pushNotification",
        _ => "/configuration/taskPushNotificationConfig",
    };
    all.extend([
        ("/message/messageId", Kind::Id, false),
        ("/message/contextId", Kind::Id, true),
        ("/message/taskId", Kind::Id, true),
        ("/message/extensions", Kind::Texts, true),
        ("/configuration", Kind::Object, true),
        ("/configuration/historyLength", Kind::Count, true),
        ("/configuration/acceptedOutputModes", Kind::Texts, true),
        ("/configuration/blocking", Kind::Flag, true),
        (webhook, Kind::Webhook, true),
    ]);
    if face.is_v1() {
        all.retain(|(place, ..)| *place != "/configuration/blocking");
        all.push(("/configuration/returnImmediately", Kind::Flag, true));
    }
    all
}
