//! The objects of 0.3, member by member, as its JSON schema has them. Written down here once more on purpose: the
//! server's own types must not be able to vouch for themselves.

use crate::native::shape::{Kind, Need, Shape};

pub(super) const STATES: &[&str] = &[
    "submitted",
    "working",
    "input-required",
    "completed",
    "canceled",
    "failed",
    "rejected",
    "auth-required",
    "unknown",
];

const PART: Kind = Kind::Tagged("kind", &[("text", &TEXT_PART), ("file", &FILE_PART), ("data", &DATA_PART)]);

static TEXT_PART: Shape =
    Shape { members: &[("text", Need::There, Kind::Text), ("metadata", Need::May, Kind::Free)], one_of: &[] };

static FILE_PART: Shape = Shape {
    members: &[("file", Need::There, Kind::Object(&FILE)), ("metadata", Need::May, Kind::Free)],
    one_of: &[],
};

static DATA_PART: Shape =
    Shape { members: &[("data", Need::There, Kind::Free), ("metadata", Need::May, Kind::Free)], one_of: &[] };

static FILE: Shape = Shape {
    members: &[
        ("name", Need::May, Kind::Text),
        ("mimeType", Need::May, Kind::Text),
        ("bytes", Need::May, Kind::Bytes),
        ("uri", Need::May, Kind::Text),
    ],
    one_of: &["bytes", "uri"],
};

pub(super) static MESSAGE: Shape = Shape {
    members: &[
        ("kind", Need::There, Kind::Word(&["message"])),
        ("messageId", Need::Filled, Kind::Text),
        ("role", Need::There, Kind::Word(&["user", "agent"])),
        ("parts", Need::There, Kind::List(&PART)),
        ("taskId", Need::May, Kind::Text),
        ("contextId", Need::May, Kind::Text),
        ("metadata", Need::May, Kind::Free),
        ("extensions", Need::May, Kind::List(&Kind::Text)),
        ("referenceTaskIds", Need::May, Kind::List(&Kind::Text)),
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
        ("parts", Need::There, Kind::List(&PART)),
        ("metadata", Need::May, Kind::Free),
        ("extensions", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

pub(in crate::native) static TASK: Shape = Shape {
    members: &[
        ("kind", Need::There, Kind::Word(&["task"])),
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
        ("final", Need::There, Kind::Flag),
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

/// What an event of a stream may be.
pub(super) const EVENT: Kind = Kind::Tagged(
    "kind",
    &[
        ("task", &TASK),
        ("message", &MESSAGE),
        ("status-update", &STATUS_UPDATE),
        ("artifact-update", &ARTIFACT_UPDATE),
    ],
);

/// What a send may be answered with.
pub(super) const REPLY: Kind = Kind::Tagged("kind", &[("task", &TASK), ("message", &MESSAGE)]);

pub(super) static PUSH_CONFIG: Shape = Shape {
    members: &[
        ("taskId", Need::Filled, Kind::Text),
        ("pushNotificationConfig", Need::There, Kind::Object(&WEBHOOK)),
    ],
    one_of: &[],
};

static WEBHOOK: Shape = Shape {
    members: &[
        ("id", Need::May, Kind::Text),
        ("url", Need::Filled, Kind::Text),
        ("token", Need::May, Kind::Text),
        ("authentication", Need::May, Kind::Object(&WEBHOOK_AUTHENTICATION)),
    ],
    one_of: &[],
};

static WEBHOOK_AUTHENTICATION: Shape = Shape {
    members: &[("schemes", Need::There, Kind::List(&Kind::Text)), ("credentials", Need::May, Kind::Text)],
    one_of: &[],
};

/// The card itself; skills, interfaces and security have shapes, and cases, of their own.
pub(super) static CARD: Shape = Shape {
    members: &[
        ("protocolVersion", Need::Filled, Kind::Text),
        ("name", Need::Filled, Kind::Text),
        ("description", Need::There, Kind::Text),
        ("url", Need::Filled, Kind::Text),
        ("version", Need::Filled, Kind::Text),
        ("capabilities", Need::There, Kind::Object(&CAPABILITIES)),
        ("defaultInputModes", Need::There, Kind::List(&Kind::Text)),
        ("defaultOutputModes", Need::There, Kind::List(&Kind::Text)),
        ("skills", Need::There, Kind::List(&Kind::Free)),
        ("preferredTransport", Need::May, Kind::Text),
        ("additionalInterfaces", Need::May, Kind::List(&Kind::Free)),
        ("provider", Need::May, Kind::Object(&PROVIDER)),
        ("documentationUrl", Need::May, Kind::Text),
        ("iconUrl", Need::May, Kind::Text),
        ("securitySchemes", Need::May, Kind::Free),
        ("security", Need::May, Kind::List(&Kind::Map(&Kind::List(&Kind::Text)))),
        ("supportsAuthenticatedExtendedCard", Need::May, Kind::Flag),
        ("signatures", Need::May, Kind::List(&Kind::Object(&SIGNATURE))),
    ],
    one_of: &[],
};

static PROVIDER: Shape = Shape {
    members: &[("organization", Need::Filled, Kind::Text), ("url", Need::There, Kind::Text)],
    one_of: &[],
};

static CAPABILITIES: Shape = Shape {
    members: &[
        ("streaming", Need::May, Kind::Flag),
        ("pushNotifications", Need::May, Kind::Flag),
        ("stateTransitionHistory", Need::May, Kind::Flag),
        ("extensions", Need::May, Kind::List(&Kind::Object(&EXTENSION))),
    ],
    one_of: &[],
};

static EXTENSION: Shape = Shape {
    members: &[
        ("uri", Need::Filled, Kind::Text),
        ("description", Need::May, Kind::Text),
        ("required", Need::May, Kind::Flag),
        ("params", Need::May, Kind::Free),
    ],
    one_of: &[],
};

static SIGNATURE: Shape = Shape {
    members: &[
        ("protected", Need::Filled, Kind::Text),
        ("signature", Need::Filled, Kind::Text),
        ("header", Need::May, Kind::Free),
    ],
    one_of: &[],
};

pub(super) static INTERFACE: Shape = Shape {
    members: &[("url", Need::Filled, Kind::Text), ("transport", Need::Filled, Kind::Text)],
    one_of: &[],
};

pub(super) static SKILL: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("name", Need::Filled, Kind::Text),
        ("description", Need::There, Kind::Text),
        ("tags", Need::There, Kind::List(&Kind::Text)),
        ("examples", Need::May, Kind::List(&Kind::Text)),
        ("inputModes", Need::May, Kind::List(&Kind::Text)),
        ("outputModes", Need::May, Kind::List(&Kind::Text)),
        ("security", Need::May, Kind::List(&Kind::Map(&Kind::List(&Kind::Text)))),
    ],
    one_of: &[],
};

pub(super) const SECURITY_SCHEME: Kind = Kind::Tagged(
    "type",
    &[
        ("apiKey", &API_KEY),
        ("http", &HTTP),
        ("oauth2", &OAUTH2),
        ("openIdConnect", &OPEN_ID),
        ("mutualTLS", &MUTUAL_TLS),
    ],
);

static API_KEY: Shape = Shape {
    members: &[
        ("in", Need::There, Kind::Word(&["query", "header", "cookie"])),
        ("name", Need::Filled, Kind::Text),
    ],
    one_of: &[],
};

static HTTP: Shape = Shape {
    members: &[("scheme", Need::Filled, Kind::Text), ("bearerFormat", Need::May, Kind::Text)],
    one_of: &[],
};

static OPEN_ID: Shape = Shape { members: &[("openIdConnectUrl", Need::Filled, Kind::Text)], one_of: &[] };

static MUTUAL_TLS: Shape = Shape { members: &[("description", Need::May, Kind::Text)], one_of: &[] };

static OAUTH2: Shape = Shape {
    members: &[("flows", Need::There, Kind::Object(&FLOWS)), ("oauth2MetadataUrl", Need::May, Kind::Text)],
    one_of: &[],
};

/// Several may stand side by side.
static FLOWS: Shape = Shape {
    members: &[
        ("authorizationCode", Need::May, Kind::Object(&AUTHORIZATION_CODE)),
        ("clientCredentials", Need::May, Kind::Object(&TOKEN_ONLY)),
        ("implicit", Need::May, Kind::Object(&IMPLICIT)),
        ("password", Need::May, Kind::Object(&TOKEN_ONLY)),
    ],
    one_of: &[],
};

static AUTHORIZATION_CODE: Shape = Shape {
    members: &[
        ("authorizationUrl", Need::Filled, Kind::Text),
        ("tokenUrl", Need::Filled, Kind::Text),
        ("refreshUrl", Need::May, Kind::Text),
        ("scopes", Need::There, Kind::Map(&Kind::Text)),
    ],
    one_of: &[],
};

static TOKEN_ONLY: Shape = Shape {
    members: &[
        ("tokenUrl", Need::Filled, Kind::Text),
        ("refreshUrl", Need::May, Kind::Text),
        ("scopes", Need::There, Kind::Map(&Kind::Text)),
    ],
    one_of: &[],
};

static IMPLICIT: Shape = Shape {
    members: &[
        ("authorizationUrl", Need::Filled, Kind::Text),
        ("refreshUrl", Need::May, Kind::Text),
        ("scopes", Need::There, Kind::Map(&Kind::Text)),
    ],
    one_of: &[],
};
