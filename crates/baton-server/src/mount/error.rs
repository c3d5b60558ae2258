//! Why an agent cannot be mounted.

/// Why an agent cannot be mounted: its id, path, tenant or skills are not valid, or two agents conflict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The server has none.
    #[error("there is no agent to serve")]
    NoAgent,
    /// No agent has this id.
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    /// The id has characters that an id must not have, or is too long.
    #[error("agent `{0}`: an id is 1 to 64 of the characters A-Z a-z 0-9 . _ -")]
    BadId(String),
    /// Two agents have this id.
    #[error("agent `{0}` is there twice")]
    SameId(String),
    /// Two agents have the same path.
    #[error("agents `{one}` and `{other}` are both at `{prefix}/`")]
    SamePath {
        /// The id of one.
        one: String,
        /// The id of the other.
        other: String,
        /// Their path, without the slash at its end.
        prefix: String,
    },
    /// The path is not one that an agent can have.
    #[error(
        "agent `{agent}`: path `{path}` must be segments such as `/agents/weather`, none of which is a name that the \
         protocol's own paths begin with"
    )]
    BadPath {
        /// The agent's id.
        agent: String,
        /// Its path.
        path: String,
    },
    /// The tenant is not one that an agent can have.
    #[error(
        "agent `{agent}`: tenant `{tenant}` must be 1 to 64 of the characters A-Z a-z 0-9 . _ ~ - and no name that the \
         protocol's own paths begin with"
    )]
    BadTenant {
        /// The agent's id.
        agent: String,
        /// Its tenant.
        tenant: String,
    },
    /// A skill was added by its id, and the card lists no such skill.
    #[error(
        "agent `{agent}`: `{skill}` has logic, but is not on the card, whose skills are {}",
        if listed.is_empty() { "none".to_owned() } else { quoted(listed) }
    )]
    UnlistedSkill {
        /// The agent's id.
        agent: String,
        /// The skill's id.
        skill: String,
        /// The ids of the skills on the card.
        listed: Vec<String>,
    },
    /// The default skill is not one of the agent's.
    #[error("agent `{agent}`: the default skill `{skill}` is none of its skills: {}", quoted(skills))]
    UnknownDefaultSkill {
        /// The agent's id.
        agent: String,
        /// The default skill's id.
        skill: String,
        /// The ids of the agent's skills.
        skills: Vec<String>,
    },
}

fn quoted(ids: &[String]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}
