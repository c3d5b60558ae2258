//! Error texts for callers of all generations must not contain names of a single generation.

use super::Fault;
use super::tree::{File, Tree, code};

/// Files that make texts for callers. Codecs are not included: each has one generation.
const PLACES: &[(&str, &[&str])] = &[
    ("baton-server", &["src/service/", "src/engine/", "src/binding/", "src/site.rs", "src/auth.rs"]),
    ("baton-protocol", &["src/error.rs", "src/generation.rs", "src/wire/jsonrpc.rs", "src/wire/read.rs"]),
];

/// Methods, members and values whose names depend on the generation.
const WORDS: &[&str] = &[
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "message/send",
    "message/stream",
    "tasks/send",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "tasks/resubscribe",
    "contextId",
    "sessionId",
    "messageId",
    "taskId",
    "acceptedOutputModes",
    "message.parts",
    "ROLE_USER",
    "ROLE_AGENT",
    "TASK_STATE_",
    "A2A-Extensions",
];

/// Keys of `ErrorInfo.metadata`, which is the same in every generation that has it, and an agent's own input errors,
/// which are part of its answer.
const EXEMPT: &[&str] = &[".with_info(", "#[error("];

/// An error text is made before the reader's generation is known: names that depend on the generation must be
/// `baton_protocol::Name`.
pub fn error_texts_name_nothing_of_one_generation(tree: &Tree, faults: &mut Vec<Fault>) {
    let is_place = |file: &&File| {
        file.crate_path().is_some_and(|(name, rest)| {
            let places = PLACES.iter().filter(|(place, _)| *place == name);
            places.flat_map(|(_, folders)| folders.iter()).any(|folder| rest.starts_with(folder))
                && !rest.contains("fuzz")
                && !rest.contains("tests")
        })
    };
    for file in tree.sources().filter(is_place) {
        for (number, line) in file.shipped_lines() {
            let line = code(line);
            if EXEMPT.iter().any(|exempt| line.contains(exempt)) {
                continue;
            }
            // Every second piece is inside quotation marks.
            for text in line.split('"').skip(1).step_by(2) {
                for word in WORDS.iter().filter(|word| text.contains(**word)) {
                    let message =
                        format!("{word:?} in a text for callers of every generation; use `Name` instead");
                    faults.push(Fault::new(&file.path, number, message));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn words_of_one_generation_are_refused_in_texts_for_all() {
        let text = "let a = Error::new(kind, \"poll with GetTask\");\n\
                    let b = Error::invalid(\"message.contextId\", \"is wrong\");\n\
                    let c = Error::of(kind).with_info(\"taskId\", id);\n\
                    // \"GetTask\" in a comment\n\
                    let d = Operation::GetTask;\n\
                    let e = format!(\"poll with {}\", Name::Method(Operation::GetTask));\n";
        check(
            &[
                ("crates/baton-protocol/src/wire/v1/methods.rs", text),
                ("crates/baton-server/src/engine/stream.rs", text),
                ("crates/baton-server/src/store/record.rs", text),
                ("crates/baton-server/tests/it/main.rs", text),
            ],
            &["crates/baton-server/src/engine/stream.rs:1", "crates/baton-server/src/engine/stream.rs:2"],
        );
    }
}
