//! The names in each dialect for what error texts mention.

use super::dialect::Dialect;
use crate::operation::Operation;

/// A member, value or header of a request whose name depends on the generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// The task that a message is for.
    TaskId,
    /// The context that a message belongs to.
    ContextId,
    /// The id of a message.
    MessageId,
    /// A message's parts.
    Parts,
    /// The role of a user, as the value of `message.role`.
    UserRole,
    /// The media types that a caller accepts.
    AcceptedOutputModes,
    /// The header that names extensions.
    Extensions,
}

impl Member {
    /// All members, in order.
    pub const ALL: [Self; 7] = [
        Self::TaskId,
        Self::ContextId,
        Self::MessageId,
        Self::Parts,
        Self::UserRole,
        Self::AcceptedOutputModes,
        Self::Extensions,
    ];
}

#[rustfmt::skip]
pub(crate) fn member(member: Member, reader: Dialect) -> &'static str {
    let [v1, v0_3, v0_3_rest, v0_1] = match member {
        //                               1.0                                 0.3                                 0.3 HTTP+JSON                       0.1
        Member::TaskId              => ["message.taskId",                    "message.taskId",                   "message.taskId",                   "id"],
        Member::ContextId           => ["message.contextId",                 "message.contextId",                "message.contextId",                "sessionId"],
        // Messages of 0.1 have no id; the task's id is used.
        Member::MessageId           => ["messageId",                         "messageId",                        "messageId",                        "id"],
        Member::Parts               => ["message.parts",                     "message.parts",                    "message.content",                  "message.parts"],
        Member::UserRole            => ["ROLE_USER",                         "user",                             "ROLE_USER",                        "user"],
        Member::AcceptedOutputModes => ["configuration.acceptedOutputModes", "configuration.acceptedOutputModes", "configuration.acceptedOutputModes", "acceptedOutputModes"],
        // 0.1 has no extensions; an error about a required one uses the later name.
        Member::Extensions          => ["A2A-Extensions",                    "X-A2A-Extensions",                 "X-A2A-Extensions",                 "A2A-Extensions"],
    };
    match reader {
        Dialect::V1 => v1,
        Dialect::V0_3 => v0_3,
        Dialect::V0_3Rest => v0_3_rest,
        Dialect::V0_1 => v0_1,
    }
}

/// The method of an operation. If the generation has no such method, the name of the next generation.
pub(crate) fn method(operation: Operation, reader: Dialect) -> &'static str {
    let facts = operation.facts();
    match reader {
        Dialect::V1 => facts.v1,
        Dialect::V0_3 | Dialect::V0_3Rest => facts.v0_3.unwrap_or(facts.v1),
        Dialect::V0_1 => facts.v0_1.or(facts.v0_3).unwrap_or(facts.v1),
    }
}
