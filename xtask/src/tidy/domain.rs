//! The protocol's domain and lifecycle use no serde, clock, randomness or async: time and ids are arguments.

use super::Fault;
use super::tree::{Tree, words};

const PURE: &[&str] = &["src/domain/", "src/domain.rs", "src/lifecycle/", "src/lifecycle.rs"];
const FORBIDDEN: &[&str] =
    &["serde", "Serialize", "Deserialize", "SystemTime", "Instant", "rand", "uuid", "tokio", "async"];

pub fn stays_pure(tree: &Tree, faults: &mut Vec<Fault>) {
    for file in tree.sources() {
        let Some(("baton-protocol", rest)) = file.crate_path() else { continue };
        if !PURE.iter().any(|pure| rest.starts_with(pure)) {
            continue;
        }
        for (number, line) in file.shipped_lines() {
            let impure = words(line).find(|word| FORBIDDEN.iter().any(|name| belongs_to(word, name)));
            if let Some(word) = impure {
                let message =
                    format!("`{word}` in the domain, which must not use serde, clock, randomness or async");
                faults.push(Fault::new(&file.path, number, message));
            }
        }
    }
}

/// `serde_json` belongs to `serde`; `random` does not belong to `rand`.
fn belongs_to(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn an_impure_domain_is_refused() {
        let text = "//! No serde here.\nuse serde_json::Value;\nuse std::time::SystemTime;\nuse std::time::Instant;\n\
                    let a = rand::random();\nuse uuid::Uuid;\nuse tokio::sync;\nasync fn a() {}\n\
                    fn operand(random: u8) {}\n#[cfg(test)]\nmod tests {\n    use serde_json::json;\n}\n";
        let places = |path: &str| (2..=8).map(|line| format!("{path}:{line}")).collect::<Vec<_>>();
        let expected = ["domain/task.rs", "lifecycle.rs"]
            .iter()
            .flat_map(|file| places(&format!("crates/baton-protocol/src/{file}")))
            .collect::<Vec<_>>();
        check(
            &[
                ("crates/baton-protocol/src/domain/task.rs", text),
                ("crates/baton-protocol/src/lifecycle.rs", text),
                ("crates/baton-protocol/src/wire/mod.rs", text),
                ("crates/baton-server/src/domain/task.rs", text),
            ],
            &expected.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
}
