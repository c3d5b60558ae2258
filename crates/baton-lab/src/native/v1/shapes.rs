//! The objects of 1.0, member by member, as its `.proto` has them. Written down here once more on purpose: the server's
//! own types must not be able to vouch for themselves.

use super::shape::{Kind, Need, Shape};

const STATES: &[&str] = &[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

pub(super) static PART: Shape = Shape {
    members: &[
        ("text", Need::May, Kind::Text),
        ("raw", Need::May, Kind::Bytes),
        ("url", Need::May, Kind::Text),
        ("metadata", Need::May, Kind::Free),
        ("filename", Need::May, Kind::Text),
        ("mediaType", Need::May, Kind::Text),
    ],
    one_of: &["text", "raw", "url", "data"],
};

pub(super) static MESSAGE: Shape = Shape {
    members: &[
        ("messageId", Need::Filled, Kind::Text),
        ("contextId", Need::May, Kind::Text),
        ("taskId", Need::May, Kind::Text),
        ("role", Need::There, Kind::Word(&["ROLE_USER", "ROLE_AGENT"])),
        ("parts", Need::Filled, Kind::List(&Kind::Object(&PART))),
        ("metadata", Need::May, Kind::Free),
        ("extensions", Need::May, Kind::List(&Kind::Text)),
        ("referenceTaskIds", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

pub(super) static STATUS: Shape = Shape {
    members: &[
        ("state", Need::There, Kind::Word(STATES)),
        ("message", Need::May, Kind::Object(&MESSAGE)),
        ("timestamp", Need::May, Kind::Time),
    ],
    one_of: &[],
};

pub(super) static ARTIFACT: Shape = Shape {
    members: &[
        ("artifactId", Need::Filled, Kind::Text),
        ("name", Need::May, Kind::Text),
        ("description", Need::May, Kind::Text),
        ("parts", Need::Filled, Kind::List(&Kind::Object(&PART))),
        ("metadata", Need::May, Kind::Free),
        ("extensions", Need::May, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

pub(in crate::native) static TASK: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("contextId", Need::May, Kind::Text),
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

pub(super) static STREAM_RESPONSE: Shape = Shape {
    members: &[
        ("task", Need::May, Kind::Object(&TASK)),
        ("message", Need::May, Kind::Object(&MESSAGE)),
        ("statusUpdate", Need::May, Kind::Object(&STATUS_UPDATE)),
        ("artifactUpdate", Need::May, Kind::Object(&ARTIFACT_UPDATE)),
    ],
    one_of: &["task", "message", "statusUpdate", "artifactUpdate"],
};

pub(super) static SEND_RESPONSE: Shape = Shape {
    members: &[("task", Need::May, Kind::Object(&TASK)), ("message", Need::May, Kind::Object(&MESSAGE))],
    one_of: &["task", "message"],
};

pub(super) static LIST_RESPONSE: Shape = Shape {
    members: &[
        ("tasks", Need::There, Kind::List(&Kind::Object(&TASK))),
        ("nextPageToken", Need::There, Kind::Text),
        ("pageSize", Need::There, Kind::Number),
        ("totalSize", Need::There, Kind::Number),
    ],
    one_of: &[],
};

pub(super) static PUSH_CONFIG: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("taskId", Need::May, Kind::Text),
        ("tenant", Need::May, Kind::Text),
        ("url", Need::Filled, Kind::Text),
        ("token", Need::May, Kind::Text),
        ("authentication", Need::May, Kind::Object(&AUTHENTICATION)),
    ],
    one_of: &[],
};

static AUTHENTICATION: Shape = Shape {
    members: &[("scheme", Need::Filled, Kind::Text), ("credentials", Need::May, Kind::Text)],
    one_of: &[],
};

/// The card itself; interfaces, skills and security have shapes, and cases, of their own.
pub(super) static CARD: Shape = Shape {
    members: &[
        ("name", Need::Filled, Kind::Text),
        ("description", Need::Filled, Kind::Text),
        ("version", Need::Filled, Kind::Text),
        ("supportedInterfaces", Need::Filled, Kind::List(&Kind::Free)),
        ("capabilities", Need::There, Kind::Object(&CAPABILITIES)),
        ("defaultInputModes", Need::Filled, Kind::List(&Kind::Text)),
        ("defaultOutputModes", Need::Filled, Kind::List(&Kind::Text)),
        // REQUIRED lists are not empty, says one section; another shows a card with `skills: []`.
        ("skills", Need::There, Kind::List(&Kind::Free)),
        ("provider", Need::May, Kind::Object(&PROVIDER)),
        ("documentationUrl", Need::May, Kind::Text),
        ("iconUrl", Need::May, Kind::Text),
        ("securitySchemes", Need::May, Kind::Free),
        ("securityRequirements", Need::May, Kind::List(&Kind::Free)),
        ("signatures", Need::May, Kind::List(&Kind::Free)),
    ],
    one_of: &[],
};

static PROVIDER: Shape = Shape {
    members: &[("url", Need::Filled, Kind::Text), ("organization", Need::Filled, Kind::Text)],
    one_of: &[],
};

static CAPABILITIES: Shape = Shape {
    members: &[
        ("streaming", Need::May, Kind::Flag),
        ("pushNotifications", Need::May, Kind::Flag),
        ("extendedAgentCard", Need::May, Kind::Flag),
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

pub(super) static INTERFACE: Shape = Shape {
    members: &[
        ("url", Need::Filled, Kind::Text),
        ("protocolBinding", Need::Filled, Kind::Text),
        ("protocolVersion", Need::Filled, Kind::Text),
        ("tenant", Need::May, Kind::Text),
    ],
    one_of: &[],
};

pub(super) static SKILL: Shape = Shape {
    members: &[
        ("id", Need::Filled, Kind::Text),
        ("name", Need::Filled, Kind::Text),
        ("description", Need::Filled, Kind::Text),
        ("tags", Need::There, Kind::List(&Kind::Text)),
        ("examples", Need::May, Kind::List(&Kind::Text)),
        ("inputModes", Need::May, Kind::List(&Kind::Text)),
        ("outputModes", Need::May, Kind::List(&Kind::Text)),
        ("securityRequirements", Need::May, Kind::List(&Kind::Object(&REQUIREMENT))),
    ],
    one_of: &[],
};

pub(super) static REQUIREMENT: Shape =
    Shape { members: &[("schemes", Need::May, Kind::Map(&Kind::Object(&TEXTS)))], one_of: &[] };

static TEXTS: Shape = Shape { members: &[("list", Need::May, Kind::List(&Kind::Text))], one_of: &[] };

pub(super) static SECURITY_SCHEME: Shape = Shape {
    members: &[
        ("apiKeySecurityScheme", Need::May, Kind::Object(&API_KEY)),
        ("httpAuthSecurityScheme", Need::May, Kind::Object(&HTTP_AUTH)),
        ("oauth2SecurityScheme", Need::May, Kind::Object(&OAUTH2)),
        ("openIdConnectSecurityScheme", Need::May, Kind::Object(&OPEN_ID)),
        ("mtlsSecurityScheme", Need::May, Kind::Free),
    ],
    one_of: &[
        "apiKeySecurityScheme",
        "httpAuthSecurityScheme",
        "oauth2SecurityScheme",
        "openIdConnectSecurityScheme",
        "mtlsSecurityScheme",
    ],
};

static API_KEY: Shape = Shape {
    members: &[
        ("location", Need::There, Kind::Word(&["query", "header", "cookie"])),
        ("name", Need::Filled, Kind::Text),
    ],
    one_of: &[],
};

static HTTP_AUTH: Shape = Shape {
    members: &[("scheme", Need::Filled, Kind::Text), ("bearerFormat", Need::May, Kind::Text)],
    one_of: &[],
};

static OPEN_ID: Shape = Shape { members: &[("openIdConnectUrl", Need::Filled, Kind::Text)], one_of: &[] };

static OAUTH2: Shape = Shape {
    members: &[("flows", Need::There, Kind::Object(&FLOWS)), ("oauth2MetadataUrl", Need::May, Kind::Text)],
    one_of: &[],
};

static FLOWS: Shape = Shape {
    members: &[
        ("authorizationCode", Need::May, Kind::Object(&AUTHORIZATION_CODE)),
        ("clientCredentials", Need::May, Kind::Object(&CLIENT_CREDENTIALS)),
        ("deviceCode", Need::May, Kind::Object(&DEVICE_CODE)),
        ("implicit", Need::May, Kind::Object(&IMPLICIT)),
        ("password", Need::May, Kind::Object(&PASSWORD)),
    ],
    one_of: &["authorizationCode", "clientCredentials", "deviceCode", "implicit", "password"],
};

static AUTHORIZATION_CODE: Shape = Shape {
    members: &[
        ("authorizationUrl", Need::Filled, Kind::Text),
        ("tokenUrl", Need::Filled, Kind::Text),
        ("refreshUrl", Need::May, Kind::Text),
        ("scopes", Need::May, Kind::Map(&Kind::Text)),
        ("pkceRequired", Need::May, Kind::Flag),
    ],
    one_of: &[],
};

static CLIENT_CREDENTIALS: Shape = Shape {
    members: &[
        ("tokenUrl", Need::Filled, Kind::Text),
        ("refreshUrl", Need::May, Kind::Text),
        ("scopes", Need::May, Kind::Map(&Kind::Text)),
    ],
    one_of: &[],
};

static DEVICE_CODE: Shape = Shape {
    members: &[
        ("deviceAuthorizationUrl", Need::Filled, Kind::Text),
        ("tokenUrl", Need::Filled, Kind::Text),
        ("refreshUrl", Need::May, Kind::Text),
        ("scopes", Need::May, Kind::Map(&Kind::Text)),
    ],
    one_of: &[],
};

static IMPLICIT: Shape = Shape {
    members: &[("authorizationUrl", Need::May, Kind::Text), ("scopes", Need::May, Kind::Map(&Kind::Text))],
    one_of: &[],
};

static PASSWORD: Shape = Shape {
    members: &[("tokenUrl", Need::Filled, Kind::Text), ("scopes", Need::May, Kind::Map(&Kind::Text))],
    one_of: &[],
};

pub(super) static SIGNATURE: Shape = Shape {
    members: &[
        ("protected", Need::Filled, Kind::Text),
        ("signature", Need::Filled, Kind::Text),
        ("header", Need::May, Kind::Free),
    ],
    one_of: &[],
};
