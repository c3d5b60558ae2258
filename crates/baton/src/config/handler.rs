//! The logic behind a skill, as its configuration says.

use std::sync::Arc;

use baton_server::Logic;

use super::schema::Skill;
use super::value::{Builtin, Replies};
use crate::agents::{demo, echo};

/// `exec` or `builtin`, answering with tasks or messages; the reason if that cannot be.
pub(crate) fn handler_of(skill: &Skill) -> Result<Logic, String> {
    let Some(builtin) = *skill.builtin else {
        return Err("programs as agents are not built in yet".to_owned());
    };
    Ok(match (builtin, *skill.replies) {
        (Builtin::Demo, Replies::Task) => Logic::Task(Arc::new(demo::Demo)),
        (Builtin::Demo, Replies::Message) => Logic::Message(Arc::new(demo::Answer)),
        (Builtin::Echo, Replies::Task) => Logic::Task(Arc::new(echo::Echo)),
        (Builtin::Echo, Replies::Message) => Logic::Message(Arc::new(echo::Echo)),
    })
}
