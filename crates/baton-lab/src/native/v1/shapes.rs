//! The objects of 1.0, member by member, according to its `.proto`. Written separately on purpose: the lab must not use
//! the types of the server that it tests.

use super::shape::shapes;

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

shapes! {
    pub(super) PART = text | raw | url | data {
        May text Text, raw Bytes, url Text, metadata Free, filename Text, mediaType Text;
    }

    pub(super) MESSAGE {
        Filled messageId Text, parts [(PART)];
        There role (= &["ROLE_USER", "ROLE_AGENT"]);
        May contextId Text, taskId Text, metadata Free, extensions [Text], referenceTaskIds [Text];
    }

    pub(super) STATUS {
        There state (= STATES);
        May message (MESSAGE), timestamp Time;
    }

    pub(super) ARTIFACT {
        Filled artifactId Text, parts [(PART)];
        May name Text, description Text, metadata Free, extensions [Text];
    }

    pub(in crate::native) TASK {
        Filled id Text;
        There status (STATUS);
        May contextId Text, artifacts [(ARTIFACT)], history [(MESSAGE)], metadata Free;
    }

    STATUS_UPDATE {
        Filled taskId Text, contextId Text;
        There status (STATUS);
        May metadata Free;
    }

    ARTIFACT_UPDATE {
        Filled taskId Text, contextId Text;
        There artifact (ARTIFACT);
        May append Flag, lastChunk Flag, metadata Free;
    }

    pub(super) STREAM_RESPONSE = task | message | statusUpdate | artifactUpdate {
        May task (TASK), message (MESSAGE), statusUpdate (STATUS_UPDATE), artifactUpdate (ARTIFACT_UPDATE);
    }

    pub(super) SEND_RESPONSE = task | message {
        May task (TASK), message (MESSAGE);
    }

    pub(super) LIST_RESPONSE {
        There tasks [(TASK)], nextPageToken Text, pageSize Number, totalSize Number;
    }

    pub(super) PUSH_CONFIG {
        Filled id Text, url Text;
        May taskId Text, tenant Text, token Text, authentication (AUTHENTICATION);
    }

    AUTHENTICATION {
        Filled scheme Text;
        May credentials Text;
    }

    /// The card itself; interfaces, skills and security have shapes and cases of their own.
    pub(super) CARD {
        Filled name Text, description Text, version Text, supportedInterfaces [Free], defaultInputModes [Text],
            defaultOutputModes [Text];
        // One section says that REQUIRED lists are not empty; another shows a card with `skills: []`.
        There capabilities (CAPABILITIES), skills [Free];
        May provider (PROVIDER), documentationUrl Text, iconUrl Text, securitySchemes Free,
            securityRequirements [Free], signatures [Free];
    }

    PROVIDER {
        Filled url Text, organization Text;
    }

    CAPABILITIES {
        May streaming Flag, pushNotifications Flag, extendedAgentCard Flag, extensions [(EXTENSION)];
    }

    EXTENSION {
        Filled uri Text;
        May description Text, required Flag, params Free;
    }

    pub(super) INTERFACE {
        Filled url Text, protocolBinding Text, protocolVersion Text;
        May tenant Text;
    }

    pub(super) SKILL {
        Filled id Text, name Text, description Text;
        There tags [Text];
        May examples [Text], inputModes [Text], outputModes [Text], securityRequirements [(REQUIREMENT)];
    }

    pub(super) REQUIREMENT {
        May schemes {(TEXTS)};
    }

    TEXTS {
        May list [Text];
    }

    pub(super) SECURITY_SCHEME = apiKeySecurityScheme | httpAuthSecurityScheme | oauth2SecurityScheme | openIdConnectSecurityScheme | mtlsSecurityScheme {
        May apiKeySecurityScheme (API_KEY), httpAuthSecurityScheme (HTTP_AUTH), oauth2SecurityScheme (OAUTH2),
            openIdConnectSecurityScheme (OPEN_ID), mtlsSecurityScheme Free;
    }

    API_KEY {
        Filled name Text;
        There location (= &["query", "header", "cookie"]);
    }

    HTTP_AUTH {
        Filled scheme Text;
        May bearerFormat Text;
    }

    OPEN_ID {
        Filled openIdConnectUrl Text;
    }

    OAUTH2 {
        There flows (FLOWS);
        May oauth2MetadataUrl Text;
    }

    FLOWS = authorizationCode | clientCredentials | deviceCode | implicit | password {
        May authorizationCode (AUTHORIZATION_CODE), clientCredentials (CLIENT_CREDENTIALS),
            deviceCode (DEVICE_CODE), implicit (IMPLICIT), password (PASSWORD);
    }

    AUTHORIZATION_CODE {
        Filled authorizationUrl Text, tokenUrl Text;
        May refreshUrl Text, scopes {Text}, pkceRequired Flag;
    }

    CLIENT_CREDENTIALS {
        Filled tokenUrl Text;
        May refreshUrl Text, scopes {Text};
    }

    DEVICE_CODE {
        Filled deviceAuthorizationUrl Text, tokenUrl Text;
        May refreshUrl Text, scopes {Text};
    }

    IMPLICIT {
        May authorizationUrl Text, scopes {Text};
    }

    PASSWORD {
        Filled tokenUrl Text;
        May scopes {Text};
    }

    pub(super) SIGNATURE {
        Filled protected Text, signature Text;
        May header Free;
    }
}
