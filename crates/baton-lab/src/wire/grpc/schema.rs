//! The fields of every message, read from tables that follow those of the specification.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::generation::Generation;

/// The messages and enums of one package.
#[derive(Debug)]
pub(crate) struct Schema {
    messages: BTreeMap<&'static str, Vec<Field>>,
    enums: BTreeMap<&'static str, Vec<&'static str>>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// As in JSON.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) many: Many,
    /// Said even if it has the value of an absent one.
    pub(crate) required: bool,
    pub(crate) presence: bool,
    /// At most one of these is there.
    pub(crate) choice: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bytes,
    Bool,
    Int32,
    Enum(&'static str),
    Message(&'static str),
    Struct,
    Value,
    Timestamp,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Many {
    One,
    List,
    /// A map with texts as keys.
    Map,
}

static V1: LazyLock<Schema> = LazyLock::new(|| Schema::parse(include_str!("v1.fields")));
static V0_3: LazyLock<Schema> = LazyLock::new(|| Schema::parse(include_str!("v0_3.fields")));
static ERRORS: LazyLock<Schema> = LazyLock::new(|| Schema::parse(include_str!("errors.fields")));

impl Schema {
    /// `None` for 0.1, which has no gRPC.
    pub(crate) fn of(generation: Generation) -> Option<&'static Self> {
        match generation {
            Generation::V1 => Some(&V1),
            Generation::V0_3 => Some(&V0_3),
            Generation::V0_1 => None,
        }
    }

    /// The messages of google.rpc.
    pub(crate) fn errors() -> &'static Self {
        &ERRORS
    }

    /// The tables are part of this program: a mistake in one shows in every test.
    pub(crate) fn fields(&self, message: &str) -> &[Field] {
        self.messages.get(message).expect("every message has a line in its table")
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn messages(&self) -> impl Iterator<Item = &'static str> {
        self.messages.keys().copied()
    }

    pub(crate) fn has(&self, message: &str) -> bool {
        self.messages.contains_key(message)
    }

    /// The names of an enum, from 0 on.
    pub(crate) fn names(&self, of: &str) -> &[&'static str] {
        self.enums.get(of).expect("every enum has a line in its table")
    }

    fn parse(table: &'static str) -> Self {
        let lines = || {
            let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(|line| line.split_once(':').expect("a line is a name, a colon and fields"))
        };
        let named = lines().filter_map(|(head, names)| Some((head.strip_prefix("enum ")?, names)));
        let enums: BTreeMap<_, Vec<_>> =
            named.map(|(name, names)| (name, names.split_whitespace().collect())).collect();
        let messages = lines().filter(|(head, _)| !head.starts_with("enum "));
        let fields = |text: &'static str| {
            text.split(';').filter(|field| !field.trim().is_empty()).map(|text| field(text, &enums)).collect()
        };
        let messages = messages.map(|(name, text)| (name, fields(text))).collect();
        Schema { messages, enums }
    }
}

/// `4 parts ![]Part`
fn field(text: &'static str, enums: &BTreeMap<&'static str, Vec<&'static str>>) -> Field {
    let mut words = text.split_whitespace();
    let mut word = || words.next().expect("a field is a number, a name and a type");
    let number = word().parse().expect("a field begins with its number");
    let (name, written) = (word(), word());
    let marked = |mark: &str, text: &'static str| match text.strip_prefix(mark) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (required, written) = marked("!", written);
    let (presence, written) = marked("?", written);
    let (choice, written) = marked("|", written);
    let (is_list, written) = marked("[]", written);
    let (is_map, written) = marked("{}", written);
    let kind = match written {
        "text" => Kind::Text,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "Struct" => Kind::Struct,
        "Value" => Kind::Value,
        "Timestamp" => Kind::Timestamp,
        "Any" => Kind::Any,
        name if enums.contains_key(name) => Kind::Enum(name),
        name => Kind::Message(name),
    };
    let many = match (is_list, is_map) {
        (true, _) => Many::List,
        (_, true) => Many::Map,
        _ => Many::One,
    };
    Field { number, name, kind, many, required, presence, choice }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_tables_are_whole() {
        for schema in [Schema::of(Generation::V1), Schema::of(Generation::V0_3), Some(&*ERRORS)] {
            let schema = schema.unwrap();
            for (message, fields) in &schema.messages {
                let numbers: BTreeSet<u32> = fields.iter().map(|field| field.number).collect();
                let names: BTreeSet<&str> = fields.iter().map(|field| field.name).collect();
                assert_eq!((numbers.len(), names.len()), (fields.len(), fields.len()), "{message}");
                for field in fields {
                    if let Kind::Message(name) = field.kind {
                        assert!(schema.has(name), "{message}.{}: {name} is nowhere", field.name);
                    }
                }
            }
        }
    }
}
