//! The objects of 0.3 over HTTP+JSON: ProtoJSON of `a2a.v1`, which all SDKs read and write there.

use crate::native::shape::shapes;

const STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    // `CANCELLED` has two `L` in this generation.
    "TASK_STATE_CANCELLED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

shapes! {
    PART = text | file | data {
        May text Text, file (FILE), data (DATA), metadata Free;
    }

    FILE = fileWithUri | fileWithBytes {
        May fileWithUri Text, fileWithBytes Bytes, mimeType Text, name Text;
    }

    DATA {
        May data Free;
    }

    MESSAGE {
        Filled messageId Text;
        There role (= &["ROLE_USER", "ROLE_AGENT"]);
        May contextId Text, taskId Text, content [(PART)], metadata Free, extensions [Text];
    }

    STATUS {
        There state (= STATES);
        May message (MESSAGE), timestamp Iso;
    }

    ARTIFACT {
        Filled artifactId Text;
        May name Text, description Text, parts [(PART)], metadata Free, extensions [Text];
    }

    pub(super) TASK {
        Filled id Text, contextId Text;
        There status (STATUS);
        May artifacts [(ARTIFACT)], history [(MESSAGE)], metadata Free;
    }

    STATUS_UPDATE {
        Filled taskId Text, contextId Text;
        There status (STATUS);
        May final Flag, metadata Free;
    }

    ARTIFACT_UPDATE {
        Filled taskId Text, contextId Text;
        There artifact (ARTIFACT);
        May append Flag, lastChunk Flag, metadata Free;
    }

    pub(super) SEND_RESPONSE = task | message {
        May task (TASK), message (MESSAGE);
    }

    pub(super) STREAM_RESPONSE = task | message | statusUpdate | artifactUpdate {
        May task (TASK), message (MESSAGE), statusUpdate (STATUS_UPDATE), artifactUpdate (ARTIFACT_UPDATE);
    }
}
