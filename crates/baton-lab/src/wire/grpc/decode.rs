//! Protobuf as ProtoJSON. What a reader of protobuf passes over in silence is noted: fields that the message does not
//! have, wire types that a field cannot have, members of a oneof beside each other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::protobuf::{Malformed, Wire, next};
use super::schema::{Field, Kind, Many, Schema};
use super::well_known::{read_struct, read_value, utf8, written};

/// Deepest messages that are read.
const DEEPEST: usize = 100;

/// A message as ProtoJSON, and what is odd about its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    pub(crate) odd: Vec<Odd>,
}

/// Something that readers pass over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Odd {
    /// A newer `.proto` may have it.
    UnknownField(String),
    WrongType(String),
}

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownField(what) | Self::WrongType(what) => f.write_str(what),
        }
    }
}

pub(crate) fn message(schema: &Schema, name: &str, bytes: &[u8]) -> Result<Decoded, Malformed> {
    let mut odd = Vec::new();
    let value = Reader { schema, odd: &mut odd }.message(name, bytes, 0)?;
    Ok(Decoded { value, odd })
}

struct Reader<'a> {
    schema: &'a Schema,
    odd: &'a mut Vec<Odd>,
}

impl Reader<'_> {
    fn message(&mut self, name: &str, mut bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
        if depth > DEEPEST {
            return Err(Malformed(format!("{name} is deeper than {DEEPEST} messages")));
        }
        let within = |error: Malformed| Malformed(format!("{name}: {error}"));
        let schema = self.schema;
        let fields = schema.fields(name);
        let mut members = Map::new();
        while let Some((number, wire)) = next(&mut bytes).map_err(within)? {
            let Some(field) = fields.iter().find(|field| field.number == number) else {
                self.odd.push(Odd::UnknownField(format!("{name} has no field {number}")));
                continue;
            };
            let read = match field.many {
                Many::Map => self.entry(field, wire, depth),
                Many::One | Many::List => self.one(field, wire, depth),
            };
            let Some(value) = read.map_err(|error| Malformed(format!("{name}.{}: {error}", field.name)))?
            else {
                let what = format!("{name}.{} (field {number}) comes as {}", field.name, wire.name());
                self.odd.push(Odd::WrongType(what));
                continue;
            };
            if field.choice {
                let others: Vec<_> =
                    fields.iter().filter(|other| other.choice && other.name != field.name).collect();
                for other in others {
                    if members.remove(other.name).is_some() {
                        let what = format!("{name} holds both `{}` and `{}`", other.name, field.name);
                        self.odd.push(Odd::WrongType(what));
                    }
                }
            }
            put(&mut members, field, value);
        }
        // A default value that was written is the same as none.
        members.retain(|name, value| {
            let field = fields.iter().find(|field| field.name == name).expect("members are fields");
            field.presence || field.choice || self.default(field).as_ref() != Some(value)
        });
        self.fill(fields, &mut members);
        Ok(Value::Object(members))
    }

    /// Required fields that have the value of an absent one are told all the same, as JSON has to.
    fn fill(&self, fields: &[Field], members: &mut Map<String, Value>) {
        for field in fields.iter().filter(|field| field.required) {
            if let Some(default) = self.default(field).filter(|_| !members.contains_key(field.name)) {
                members.insert(field.name.to_owned(), default);
            }
        }
    }

    /// The value of a field that is absent; `None` where that is no value.
    fn default(&self, field: &Field) -> Option<Value> {
        Some(match (field.many, field.kind) {
            (Many::List, _) => json!([]),
            (Many::One, Kind::Text | Kind::Bytes) => json!(""),
            (Many::One, Kind::Int32) => json!(0),
            (Many::One, Kind::Bool) => json!(false),
            (Many::One, Kind::Enum(name)) => json!(self.schema.names(name)[0]),
            _ => return None,
        })
    }

    /// `None`: the field cannot have this wire type.
    fn one(&mut self, field: &Field, wire: Wire<'_>, depth: usize) -> Result<Option<Value>, Malformed> {
        Ok(Some(match (field.kind, wire) {
            (Kind::Text, Wire::Bytes(bytes)) => Value::String(utf8(bytes)?),
            (Kind::Bytes, Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
            (Kind::Bool, Wire::Varint(flag)) => json!(flag != 0),
            #[allow(clippy::cast_possible_truncation, reason = "the upper half of an int32 repeats its sign")]
            (Kind::Int32, Wire::Varint(number)) => json!(number as i32),
            (Kind::Enum(name), Wire::Varint(number)) => {
                let known = usize::try_from(number).ok().and_then(|at| self.schema.names(name).get(at));
                known.map_or_else(|| json!(number), |name| json!(name))
            }
            (Kind::Message(name), Wire::Bytes(bytes)) => self.message(name, bytes, depth + 1)?,
            (Kind::Struct, Wire::Bytes(bytes)) => read_struct(bytes)?,
            (Kind::Value, Wire::Bytes(bytes)) => read_value(bytes)?,
            (Kind::Timestamp, Wire::Bytes(bytes)) => time(bytes)?,
            (Kind::Any, Wire::Bytes(bytes)) => self.any(bytes, depth + 1)?,
            _ => return Ok(None),
        }))
    }

    fn entry(&mut self, field: &Field, wire: Wire<'_>, depth: usize) -> Result<Option<Value>, Malformed> {
        let Wire::Bytes(mut bytes) = wire else { return Ok(None) };
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, wire)) = next(&mut bytes)? {
            match (number, wire) {
                (1, Wire::Bytes(text)) => key = utf8(text)?,
                (2, wire) => value = self.one(field, wire, depth)?,
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.one(field, Wire::Bytes(&[]), depth)?.unwrap_or_default(),
        };
        Ok(Some(json!({ key: value })))
    }

    /// A detail of google.rpc in its JSON; of another type with its bytes.
    fn any(&mut self, mut bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
        let (mut kind, mut held) = (String::new(), &[][..]);
        while let Some(field) = next(&mut bytes)? {
            match field {
                (1, Wire::Bytes(text)) => kind = utf8(text)?,
                (2, Wire::Bytes(inner)) => held = inner,
                _ => {}
            }
        }
        let name = kind.rsplit_once("google.rpc.").map(|(_, name)| name).filter(|name| self.schema.has(name));
        let mut value = match name {
            Some(name) => self.message(name, held, depth)?,
            None => json!({"value": STANDARD.encode(held)}),
        };
        value["@type"] = json!(kind);
        Ok(value)
    }
}

fn put(members: &mut Map<String, Value>, field: &Field, value: Value) {
    match field.many {
        Many::One => {
            members.insert(field.name.to_owned(), value);
        }
        Many::List => {
            let list = members.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut().expect("it was made as one").push(value);
        }
        Many::Map => {
            let map = members.entry(field.name).or_insert_with(|| json!({}));
            let entry = if let Value::Object(entry) = value { entry } else { Map::new() };
            map.as_object_mut().expect("it was made as one").extend(entry);
        }
    }
}

fn time(mut bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut seconds, mut nanos) = (0_i64, 0_i64);
    while let Some(field) = next(&mut bytes)? {
        match field {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanos = number.cast_signed(),
            _ => {}
        }
    }
    let text = i32::try_from(nanos).ok().and_then(|nanos| written(seconds, nanos));
    text.map(Value::String).ok_or_else(|| Malformed(format!("{seconds} s and {nanos} ns are no time")))
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::super::protobuf::{put_bytes, put_number};
    use super::*;
    use crate::generation::Generation;

    fn v1() -> &'static Schema {
        Schema::of(Generation::V1).unwrap()
    }

    #[test]
    fn messages_come_back() {
        let task = json!({
            "id": "t", "contextId": "c",
            "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-31T12:00:00.500Z",
                "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": ""}, {"data": null},
                    {"raw": "YQ==", "mediaType": "text/plain"}], "extensions": ["x", "y"]}},
            "metadata": {"a": {"b": [1, "2", null]}}});
        let bytes = encode::message(v1(), "Task", &task).unwrap();
        assert_eq!(message(v1(), "Task", &bytes), Ok(Decoded { value: task, odd: Vec::new() }));
        let card = json!({"security": [{"schemes": {"token": {"list": ["a"]}}}],
            "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}});
        let schema = Schema::of(Generation::V0_3).unwrap();
        let bytes = encode::message(schema, "AgentCard", &card).unwrap();
        let read = message(schema, "AgentCard", &bytes).unwrap().value;
        assert_eq!(
            (&read["security"], &read["securitySchemes"]),
            (&card["security"], &card["securitySchemes"])
        );
    }

    #[test]
    fn absent_required_fields_are_told() {
        let read = message(v1(), "ListTasksResponse", &[]).unwrap().value;
        assert_eq!(read, json!({"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0}));
        let read = message(v1(), "TaskStatus", &[]).unwrap().value;
        assert_eq!(read, json!({"state": "TASK_STATE_UNSPECIFIED"}));
        assert_eq!(
            message(v1(), "GetTaskRequest", &[0x18, 0]).unwrap().value,
            json!({"id": "", "historyLength": 0})
        );
    }

    #[test]
    fn odd_bytes_are_noted() {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, b"t");
        put_number(&mut bytes, 2, 1);
        put_number(&mut bytes, 99, 1);
        let read = message(v1(), "Task", &bytes).unwrap();
        assert_eq!(read.value, json!({"id": "t"}));
        assert_eq!(
            read.odd,
            [
                Odd::WrongType("Task.contextId (field 2) comes as a varint".to_owned()),
                Odd::UnknownField("Task has no field 99".to_owned())
            ]
        );
        let mut both = Vec::new();
        put_bytes(&mut both, 1, b"a");
        put_bytes(&mut both, 3, b"b");
        let read = message(v1(), "Part", &both).unwrap();
        assert_eq!((read.value, read.odd.len()), (json!({"url": "b"}), 1));
        message(v1(), "Task", &[0x0a, 0x05, b'a']).unwrap_err();
        message(v1(), "Task", &[0x0a, 0x01, 0xff]).unwrap_err();
    }

    #[test]
    fn what_protobuf_cannot_say_is_not_sent() {
        for (name, value) in [
            ("Message", json!({"parts": "text"})),
            ("Message", json!({"kind": "message"})),
            ("Message", json!({"role": "ROLE_CAT"})),
            ("GetTaskRequest", json!({"historyLength": 1.5})),
            ("GetTaskRequest", json!({"id": 7})),
            ("ListTasksRequest", json!({"statusTimestampAfter": "yesterday"})),
            ("Part", json!({"raw": "?"})),
            ("Task", json!([])),
        ] {
            encode::message(v1(), name, &value).expect_err(&format!("{name} {value}"));
        }
    }
}
