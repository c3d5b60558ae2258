//! The objects of 0.3 over HTTP+JSON: ProtoJSON of `a2a.v1`, which is what every SDK reads and writes there.

use crate::native::shape::{Kind, Need, Shape};

const STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    // With two Ls in this generation.
    "TASK_STATE_CANCELLED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

static PART: Shape = Shape {
    members: &[
        ("text", Need::May, Kind::Text),
        ("file", Need::May, Kind::Object(&FILE)),
        ("data", Need::May, Kind::Object(&DATA)),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &["text", "file", "data"],
};

static FILE: Shape = Shape {
    members: &[
        ("fileWithUri", Need::May, Kind::Text),
        ("fileWithBytes", Need::May, Kind::Bytes),
        ("mimeType", Need::May, Kind::Text),
        ("name", Need::May, Kind::Text),
    ],
    one_of: &["fileWithUri", "fileWithBytes"],
};

static DATA: Shape = Shape { members: &[("data", Need::May, Kind::Free)], one_of: &[] };

static MESSAGE: Shape = Shape {
    members: &[
        ("messageId", Need::Filled, Kind::Text),
        ("contextId", Need::May, Kind::Text),
        ("taskId", Need::May, Kind::Text),
        ("role", Need::There, Kind::Word(&["ROLE_USER", "ROLE_AGENT"])),
        ("content", Need::May, Kind::List(&Kind::Object(&PART))),
        ("metadata", Need::May, Kind::Free),
        ("extensions", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

static STATUS: Shape = Shape {
    members: &[
        ("state", Need::There, Kind::Word(STATES)),
        ("message", Need::May, Kind::Object(&MESSAGE)),
        ("timestamp", Need::May, Kind::Iso),
    ],
    one_of: &[],
};

static ARTIFACT: Shape = Shape {
    members: &[
        ("artifactId", Need::Filled, Kind::Text),
        ("name", Need::May, Kind::Text),
        ("description", Need::May, Kind::Text),
        ("parts", Need::May, Kind::List(&Kind::Object(&PART))),
        ("metadata", Need::May, Kind::Free),
        ("extensions", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

pub(super) static TASK: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("contextId", Need::Filled, Kind::Text),
        ("status", Need::There, Kind::Object(&STATUS)),
        ("artifacts", Need::May, Kind::List(&Kind::Object(&ARTIFACT))),
        ("history", Need::May, Kind::List(&Kind::Object(&MESSAGE))),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &[],
};

static STATUS_UPDATE: Shape = Shape {
    members: &[
        ("taskId", Need::Filled, Kind::Text),
        ("contextId", Need::Filled, Kind::Text),
        ("status", Need::There, Kind::Object(&STATUS)),
        ("final", Need::May, Kind::Flag),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &[],
};

static ARTIFACT_UPDATE: Shape = Shape {
    members: &[
        ("taskId", Need::Filled, Kind::Text),
        ("contextId", Need::Filled, Kind::Text),
        ("artifact", Need::There, Kind::Object(&ARTIFACT)),
        ("append", Need::May, Kind::Flag),
        ("lastChunk", Need::May, Kind::Flag),
        ("metadata", Need::May, Kind::Free),
    ],
    one_of: &[],
};

pub(super) static SEND_RESPONSE: Shape = Shape {
    members: &[("task", Need::May, Kind::Object(&TASK)), ("message", Need::May, Kind::Object(&MESSAGE))],
    one_of: &["task", "message"],
};

pub(super) static STREAM_RESPONSE: Shape = Shape {
    members: &[
        ("task", Need::May, Kind::Object(&TASK)),
        ("message", Need::May, Kind::Object(&MESSAGE)),
        ("statusUpdate", Need::May, Kind::Object(&STATUS_UPDATE)),
        ("artifactUpdate", Need::May, Kind::Object(&ARTIFACT_UPDATE)),
    ],
    one_of: &["task", "message", "statusUpdate", "artifactUpdate"],
};
