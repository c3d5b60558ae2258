//! The objects of 0.3, member by member, according to its JSON schema. Written separately on purpose: the lab must not
//! use the types of the server that it tests.

use crate::native::shape::{Kind, shapes};

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

shapes! {
    TEXT_PART {
        There text Text;
        May metadata Free;
    }

    FILE_PART {
        There file (FILE);
        May metadata Free;
    }

    DATA_PART {
        There data Free;
        May metadata Free;
    }

    FILE = bytes | uri {
        May name Text, mimeType Text, bytes Bytes, uri Text;
    }

    pub(super) MESSAGE {
        Filled messageId Text;
        There kind (= &["message"]), role (= &["user", "agent"]), parts [(as PART)];
        May taskId Text, contextId Text, metadata Free, extensions [Text], referenceTaskIds [Text];
    }

    STATUS {
        There state (= STATES);
        May message (MESSAGE), timestamp Iso;
    }

    ARTIFACT {
        Filled artifactId Text;
        There parts [(as PART)];
        May name Text, description Text, metadata Free, extensions [Text];
    }

    pub(in crate::native) TASK {
        Filled id Text, contextId Text;
        There kind (= &["task"]), status (STATUS);
        May artifacts [(ARTIFACT)], history [(MESSAGE)], metadata Free;
    }

    STATUS_UPDATE {
        Filled taskId Text, contextId Text;
        There status (STATUS), final Flag;
        May metadata Free;
    }

    ARTIFACT_UPDATE {
        Filled taskId Text, contextId Text;
        There artifact (ARTIFACT);
        May append Flag, lastChunk Flag, metadata Free;
    }
}

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

shapes! {
    pub(super) PUSH_CONFIG {
        Filled taskId Text;
        There pushNotificationConfig (WEBHOOK);
    }

    WEBHOOK {
        Filled url Text;
        May id Text, token Text, authentication (WEBHOOK_AUTHENTICATION);
    }

    WEBHOOK_AUTHENTICATION {
        There schemes [Text];
        May credentials Text;
    }

    /// The card itself; skills, interfaces and security have shapes and cases of their own.
    pub(super) CARD {
        Filled protocolVersion Text, name Text, url Text, version Text;
        There description Text, capabilities (CAPABILITIES), defaultInputModes [Text],
            defaultOutputModes [Text], skills [Free];
        May preferredTransport Text, additionalInterfaces [Free], provider (PROVIDER), documentationUrl Text,
            iconUrl Text, securitySchemes Free, security [{[Text]}], supportsAuthenticatedExtendedCard Flag,
            signatures [(SIGNATURE)];
    }

    PROVIDER {
        Filled organization Text;
        There url Text;
    }

    CAPABILITIES {
        May streaming Flag, pushNotifications Flag, stateTransitionHistory Flag, extensions [(EXTENSION)];
    }

    EXTENSION {
        Filled uri Text;
        May description Text, required Flag, params Free;
    }

    SIGNATURE {
        Filled protected Text, signature Text;
        May header Free;
    }

    pub(super) INTERFACE {
        Filled url Text, transport Text;
    }

    pub(super) SKILL {
        Filled id Text, name Text;
        There description Text, tags [Text];
        May examples [Text], inputModes [Text], outputModes [Text], security [{[Text]}];
    }
}

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

shapes! {
    API_KEY {
        Filled name Text;
        There in (= &["query", "header", "cookie"]);
    }

    HTTP {
        Filled scheme Text;
        May bearerFormat Text;
    }

    OPEN_ID {
        Filled openIdConnectUrl Text;
    }

    MUTUAL_TLS {
        May description Text;
    }

    OAUTH2 {
        There flows (FLOWS);
        May oauth2MetadataUrl Text;
    }

    /// There may be several.
    FLOWS {
        May authorizationCode (AUTHORIZATION_CODE), clientCredentials (TOKEN_ONLY), implicit (IMPLICIT),
            password (TOKEN_ONLY);
    }

    AUTHORIZATION_CODE {
        Filled authorizationUrl Text, tokenUrl Text;
        There scopes {Text};
        May refreshUrl Text;
    }

    TOKEN_ONLY {
        Filled tokenUrl Text;
        There scopes {Text};
        May refreshUrl Text;
    }

    IMPLICIT {
        Filled authorizationUrl Text;
        There scopes {Text};
        May refreshUrl Text;
    }
}
