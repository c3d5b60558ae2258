//! Differences between generations that are allowed: each row is a path in the result of a scenario in `scenario.rs`, and
//! the reason.

use crate::faces::Face;

/// Scenario, faces, JSON pointer into the result, the value there, the reason. A row that is not needed makes the test fail.
pub(crate) const ALLOWED: &[(&str, &[Face], &str, &str, &str)] = &[
    (
        "get_with_history_lengths",
        &[Face::V03Http],
        "/1/task/history",
        r#"[{"parts":[{"text":"ask one"}],"role":"user"},{"parts":[{"text":"what else?"}],"role":"agent"},
            {"parts":[{"text":"ask two"}],"role":"user"}]"#,
        "in the protobuf of 0.3 a history length of 0 is the same as absent",
    ),
    (
        "a_conversation",
        &[Face::V01Rpc],
        "/1",
        r#"[{"opens":"working"},{"says":[{"text":"what else?"}],"state":"input-required"}]"#,
        "in 0.1 a stream begins with a status, and input-required would close it, so it begins with working",
    ),
    (
        "cancel_a_working_task",
        &[Face::V03Rpc, Face::V03Http, Face::V01Rpc],
        "/2",
        r#"{"error":"TASK_NOT_CANCELABLE"}"#,
        "a second cancel is an error before 1.0 (ruling 5)",
    ),
    (
        "unknown_tasks",
        &[Face::V01Rpc],
        "/4",
        r#"{"task":{"artifacts":[],"history":[{"parts":[{"text":"ask"}],"role":"user"}],
            "says":[{"text":"what else?"}],"state":"input-required"}}"#,
        "in 0.1 clients choose the ids: an unknown task is created",
    ),
    (
        "a_message_to_an_ended_task",
        &[Face::V01Rpc],
        "/0/error",
        r#""TASK_NOT_CANCELABLE""#,
        "-32002 is every invalid transition in 0.1 (ruling 3)",
    ),
    (
        "a_message_to_an_ended_task",
        &[Face::V01Rpc],
        "/1/error",
        r#""TASK_NOT_CANCELABLE""#,
        "the same in a stream",
    ),
    (
        "a_message_for_an_answer",
        &[Face::V01Rpc],
        "",
        r#"[{"task":{"artifacts":[],"history":[{"metadata":{"skillId":"talk"},"parts":[{"text":"hello"}],"role":"user"}],
              "says":[{"text":"you said: hello"}],"state":"completed"}},
            {"opens":"submitted"},{"says":null,"state":"working"},
            {"says":[{"text":"you said: hello"}],"state":"completed"}]"#,
        "0.1 has no message replies: the reply completes a task, with a stream and without",
    ),
    (
        "parts_only_one_generation_has",
        &[Face::V03Rpc, Face::V03Http],
        "/0",
        r##"[{"data":{"value":[1]},"metadata":{"data_part_compat":true}},
            {"data":{"value":"two"},"metadata":{"data_part_compat":true}},
            {"data":{"value":3.5},"metadata":{"data_part_compat":true}},
            {"data":{"value":null},"metadata":{"data_part_compat":true}},
            {"data":{"value":true},"metadata":{"data_part_compat":true}},{"text":"# a"}]"##,
        "data must be an object in 0.3, so other values are wrapped in one; text has no file name and no media type",
    ),
    (
        "parts_only_one_generation_has",
        &[Face::V01Rpc],
        "/0",
        r##"[{"data":[1]},{"data":{"value":"two"}},{"data":{"value":3.5}},{"data":{"value":null}},
            {"data":{"value":true}},{"text":"# a"}]"##,
        "data must be an object or an array in 0.1, so other values are wrapped in an object",
    ),
    ("rejected_tasks", &[Face::V01Rpc], "/0/task/state", r#""failed""#, "0.1 has no such state"),
    ("rejected_tasks", &[Face::V01Rpc], "/1/2/state", r#""failed""#, "the same in a stream"),
    (
        "authorisation_required",
        &[Face::V01Rpc],
        "/0",
        r#"[{"opens":"submitted"},{"says":null,"state":"working"},
            {"says":[{"text":"who are you?"}],"state":"input-required"}]"#,
        "0.1 has no such state: it is shown as input-required, which closes the stream",
    ),
    ("lists_with_pages", &[Face::V01Rpc], "", "[]", "0.1 has no list"),
    #[cfg(feature = "grpc")]
    ("lists_with_pages", &[Face::V03Grpc], "", "[]", "the service of 0.3 has no list"),
    #[cfg(feature = "grpc")]
    (
        "lists_with_pages",
        &[Face::V1Grpc],
        "/7/error",
        r#""unsayable""#,
        "in protobuf a state is one of those that there are",
    ),
    #[cfg(feature = "grpc")]
    ("lists_with_pages", &[Face::V1Grpc], "/8/error", r#""unsayable""#, "and a time is a number"),
];
