//! Values for display. All output goes through this type, so what a type hides here stays hidden.

use serde_json::{Map, Number, Value as Json};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shown {
    /// An optional value that is not set.
    Absent,
    Text(String),
    Whole(u64),
    Real(f64),
    Flag(bool),
    List(Vec<Shown>),
    Table(Vec<(String, Shown)>),
}

impl Shown {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Shown::Text(text.into())
    }

    /// As TOML; an absent value is written as an empty text, which is read as absent.
    pub(crate) fn toml(&self) -> String {
        match self {
            Shown::Absent => "\"\"".to_owned(),
            // The TOML writer would use several lines; here a value is one line.
            Shown::Text(text) if text.contains(char::is_control) => escaped(text),
            Shown::Text(text) => toml::Value::String(text.clone()).to_string(),
            Shown::Whole(number) => number.to_string(),
            Shown::Real(number) => toml::Value::Float(*number).to_string(),
            Shown::Flag(flag) => flag.to_string(),
            Shown::List(items) => {
                format!("[{}]", items.iter().map(Shown::toml).collect::<Vec<_>>().join(", "))
            }
            Shown::Table(entries) if entries.is_empty() => "{}".to_owned(),
            Shown::Table(entries) => {
                let entry = |(name, value): &(String, Shown)| format!("{} = {}", key(name), value.toml());
                format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    pub(crate) fn json(&self) -> Json {
        match self {
            Shown::Absent => Json::Null,
            Shown::Text(text) => Json::from(text.as_str()),
            Shown::Whole(number) => Json::from(*number),
            Shown::Real(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Shown::Flag(flag) => Json::from(*flag),
            Shown::List(items) => items.iter().map(Shown::json).collect(),
            Shown::Table(entries) => Json::Object(
                entries.iter().map(|(name, value)| (name.clone(), value.json())).collect::<Map<_, _>>(),
            ),
        }
    }
}

/// A text with control characters, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Without quotes where TOML allows it.
fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { Shown::text(name).toml() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read_again() {
        let shown = Shown::Table(vec![
            ("a".to_owned(), Shown::List(vec![Shown::text("x\"y\n\\\u{7f}"), Shown::text("'")])),
            ("b c".to_owned(), Shown::Real(1.0)),
            ("d".to_owned(), Shown::Table(Vec::new())),
        ]);
        let text = format!("k = {}", shown.toml());
        assert_eq!(text.lines().count(), 1);
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(serde_json::to_value(&read["k"]).unwrap(), shown.json(), "{text}");
    }
}
