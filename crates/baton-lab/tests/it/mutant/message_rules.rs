//! Is a message one that can be read? Everything is checked in 1.0's words, whatever generation it came in.

use baton_lab::generation::Generation;
use serde_json::Value;

use super::agent::Agent;
use super::fault::{Place, Rule};
use super::refusal::Refusal;

type Checked = Result<(), Refusal>;

/// What the agent can read.
pub(super) const MEDIA_TYPES: &[&str] = &["text/plain", "application/json", "image/png"];

const PARAMS: &[&str] = &["tenant", "message", "configuration", "metadata"];
const MESSAGE: &[&str] =
    &["messageId", "contextId", "taskId", "role", "parts", "metadata", "extensions", "referenceTaskIds"];
const PART: &[&str] = &["text", "raw", "url", "data", "metadata", "filename", "mediaType"];
const CONFIGURATION: &[&str] =
    &["acceptedOutputModes", "taskPushNotificationConfig", "historyLength", "returnImmediately"];

impl Agent {
    pub(super) fn check_send(&self, params: &Value, place: &Place) -> Checked {
        let Some(message) = params.get("message") else {
            return self.check(Rule::MessageMissing, place, "`message` is missing");
        };
        if !message.is_object() {
            return self.check(Rule::WrongType, place, "`message` has to be an object");
        }
        if message.get("messageId").and_then(Value::as_str).is_none_or(str::is_empty) {
            self.check(Rule::NoMessageId, place, "`message.messageId` is missing")?;
        }
        let role = message.get("role").and_then(Value::as_str);
        if !matches!(role, Some("ROLE_USER" | "ROLE_AGENT")) {
            self.check(Rule::NoRole, place, "`message.role` has to be ROLE_USER or ROLE_AGENT")?;
        }
        if place.generation == Generation::V0_1 && message["taskId"].as_str().is_none_or(str::is_empty) {
            self.check(Rule::NoId, place, "`id` is missing")?;
        }
        self.check_parts(message.get("parts"), place)?;
        if message.get("extensions").is_some() {
            self.check(Rule::MessageExtensions, place, "`message.extensions` are not known here")?;
        }
        if message.get("referenceTaskIds").is_some() {
            self.check(Rule::Refers, place, "`message.referenceTaskIds` are not known here")?;
        }
        let configuration = &params["configuration"];
        self.check_history_length(configuration.get("historyLength"), place)?;
        if configuration.get("acceptedOutputModes").is_some() {
            self.check(Rule::OutputModes, place, "the output cannot be chosen")?;
        }
        let parts = message["parts"].as_array().into_iter().flatten();
        let mut all = vec![(params, PARAMS), (message, MESSAGE), (configuration, CONFIGURATION)];
        all.extend(parts.map(|part| (part, PART)));
        let odd = |(value, names): &(&Value, &[&str])| {
            value
                .as_object()
                .is_some_and(|members| members.keys().any(|name| !names.contains(&name.as_str())))
        };
        if all.iter().any(odd) {
            self.check(Rule::UnknownMember, place, "there is a member nobody knows")?;
        }
        if message.to_string().contains("\\u0000") {
            self.check(Rule::OddLetters, place, "there is a NUL in the message")?;
        }
        Ok(())
    }

    fn check_parts(&self, parts: Option<&Value>, place: &Place) -> Checked {
        let list = match parts {
            Some(Value::Array(list)) if !list.is_empty() => list,
            None | Some(Value::Array(_)) => {
                return self.check(Rule::NoParts, place, "`message.parts` has to hold something");
            }
            Some(_) => return self.check(Rule::WrongType, place, "`message.parts` has to be a list"),
        };
        for part in list {
            self.check_part(part, place)?;
        }
        Ok(())
    }

    fn check_part(&self, part: &Value, place: &Place) -> Checked {
        let texts = ["text", "raw", "url", "mediaType", "filename"];
        let odd = |name: &&str| part.get(*name).is_some_and(|value| !value.is_string());
        if !part.is_object() || texts.iter().any(odd) {
            self.check(Rule::WrongType, place, "a part has a member of the wrong type")?;
        }
        let contents =
            ["text", "raw", "url", "data"].iter().filter(|name| part.get(**name).is_some()).count();
        if contents != 1 {
            self.check(Rule::EmptyPart, place, "a part has to hold one of text, raw, url and data")?;
        }
        if part.get("data").is_some_and(|data| !data.is_object()) {
            self.check(Rule::DataNotObject, place, "`data` has to be an object")?;
        }
        let kind = part["mediaType"].as_str();
        if kind.is_some_and(|kind| !MEDIA_TYPES.contains(&kind)) {
            self.check(Rule::MediaType, place, "this media type cannot be read")?;
        }
        Ok(())
    }

    pub(super) fn check_history_length(&self, length: Option<&Value>, place: &Place) -> Checked {
        match length {
            None | Some(Value::Null) => Ok(()),
            Some(length) => match length.as_i64() {
                Some(0..) => Ok(()),
                Some(_) => self.check(Rule::NegativeHistory, place, "`historyLength` must not be negative"),
                None => self.check(Rule::HistoryNumber, place, "`historyLength` has to be a whole number"),
            },
        }
    }
}
