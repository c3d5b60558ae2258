//! `{{name}}` in a document: captured values, the document's variables, the environment, fresh ids.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Names that the official files use without defining them: the user must give their values.
pub const GIVEN_BY_THE_RUNNER: &[&str] =
    &["SUT_BASE_URL", "insufficientAuthToken", "otherUserTaskId", "webhookUrl"];

/// Deepest chain of variables that refer to variables.
const MOST_DEEP: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// Only the user can know the value: the test is skipped.
    Runner(String),
    /// A mistake in the document.
    Unknown(String),
    Cycle(String),
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Runner(name) => write!(f, "`{name}` has to be given with --var {name}=…"),
            Self::Unknown(name) => write!(f, "nothing is called `{{{{{name}}}}}`"),
            Self::Cycle(name) => write!(f, "`{name}` refers to itself"),
        }
    }
}

/// The values of names in one test.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// From the command line; overrides all others.
    pub given: BTreeMap<String, Value>,
    pub document: BTreeMap<String, Value>,
    pub environment: BTreeMap<String, String>,
    /// By step id: what it captured, and its whole result as `response`.
    captured: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Variables {
    pub fn capture(&mut self, step: &str, name: &str, value: Value) {
        self.captured.entry(step.to_owned()).or_default().insert(name.to_owned(), value);
    }

    /// Replaces every reference in a value. A string that is exactly one reference keeps the type of its value.
    pub fn resolve(&self, value: &Value) -> Result<Value, Unresolved> {
        self.resolve_at(value, 0)
    }

    pub fn resolve_text(&self, text: &str) -> Result<String, Unresolved> {
        Ok(match self.text_at(text, 0)? {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    fn resolve_at(&self, value: &Value, depth: usize) -> Result<Value, Unresolved> {
        Ok(match value {
            Value::String(text) => self.text_at(text, depth)?,
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.resolve_at(item, depth)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let mut resolved = Map::new();
                for (name, value) in members {
                    let name = match self.text_at(name, depth)? {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    resolved.insert(name, self.resolve_at(value, depth)?);
                }
                Value::Object(resolved)
            }
            other => other.clone(),
        })
    }

    fn text_at(&self, text: &str, depth: usize) -> Result<Value, Unresolved> {
        if let Some(name) = whole_reference(text) {
            return self.lookup(name, depth);
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else { break };
            out.push_str(before);
            match self.lookup(name.trim(), depth)? {
                Value::String(text) => out.push_str(&text),
                other => out.push_str(&other.to_string()),
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(Value::String(out))
    }

    fn lookup(&self, name: &str, depth: usize) -> Result<Value, Unresolved> {
        if depth > MOST_DEEP {
            return Err(Unresolved::Cycle(name.to_owned()));
        }
        if let Some(value) = self.given.get(name) {
            return Ok(value.clone());
        }
        if let Some((step, member)) = name.split_once('.')
            && let Some(value) = self.captured.get(step).and_then(|captured| captured.get(member))
        {
            return Ok(value.clone());
        }
        if let Some(value) = self.document.get(name) {
            return self.resolve_at(value, depth + 1);
        }
        let environment = name.strip_prefix("env.").unwrap_or(name);
        if let Some(value) = self.environment.get(environment) {
            return Ok(Value::String(value.clone()));
        }
        if name == "$uuid" {
            return Ok(Value::String(uuid::Uuid::new_v4().to_string()));
        }
        if GIVEN_BY_THE_RUNNER.contains(&name) {
            return Err(Unresolved::Runner(name.to_owned()));
        }
        Err(Unresolved::Unknown(name.to_owned()))
    }
}

fn whole_reference(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then(|| inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_found_in_their_order_and_keep_their_type() {
        let document = [("a", "doc"), ("b", "{{a}}-{{a}}"), ("c", "{{c}}")];
        let document = document.map(|(name, value)| (name.to_owned(), json!(value))).into();
        let environment = BTreeMap::from([("HOME".to_owned(), "home".to_owned())]);
        let mut variables = Variables { document, environment, ..Variables::default() };
        variables.capture("send-1", "id", json!("t1"));
        variables.capture("send-1", "n", json!(7));
        variables.capture("send-1", "response", json!({"task": {}}));
        for (text, resolved) in [
            (json!("{{a}}"), json!("doc")),
            (json!("x {{b}} y"), json!("x doc-doc y")),
            (json!("{{send-1.id}}"), json!("t1")),
            (json!("{{send-1.n}}"), json!(7)),
            (json!("n={{send-1.n}}"), json!("n=7")),
            (json!("{{send-1.response}}"), json!({"task": {}})),
            (json!("{{env.HOME}}"), json!("home")),
            (json!({"{{a}}": ["{{send-1.n}}"]}), json!({"doc": [7]})),
            (json!("no {{ end"), json!("no {{ end")),
        ] {
            assert_eq!(variables.resolve(&text), Ok(resolved), "{text}");
        }
        let one = variables.resolve(&json!("{{$uuid}}")).unwrap();
        assert_ne!(one, variables.resolve(&json!("{{$uuid}}")).unwrap());
        assert_eq!(variables.resolve(&json!("{{none}}")), Err(Unresolved::Unknown("none".to_owned())));
        assert_eq!(
            variables.resolve(&json!("{{webhookUrl}}")),
            Err(Unresolved::Runner("webhookUrl".to_owned()))
        );
        assert!(matches!(variables.resolve(&json!("{{c}}")), Err(Unresolved::Cycle(_))));
        variables.given.insert("a".to_owned(), json!("given"));
        assert_eq!(variables.resolve(&json!("{{a}}")), Ok(json!("given")));
    }
}
