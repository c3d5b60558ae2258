//! An agent's card: a JSON file of any generation, or what `[card]` says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_protocol::domain::security::SecurityRequirement;
use baton_protocol::domain::{AgentCard, AgentProvider, AgentSkill};
use baton_server::card;

use super::file;
use super::schema::{Card, Skill};
use super::setting::{Place, Setting};
use super::value::Requirement;
use crate::agents::DEFAULT_VERSION;

/// A card file, with its text to find lines in it.
#[derive(Debug, Clone)]
pub(crate) struct CardFile {
    path: PathBuf,
    text: String,
    pub(crate) card: AgentCard,
}

/// Why a card file cannot be used.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The file could not be read: a mistake where it is named.
    File(String),
    /// The file was read, but is not a card: a mistake in the file.
    Card(String),
}

impl CardFile {
    pub(crate) fn read(path: &Path) -> Result<Self, Unreadable> {
        let text = file::text_of(path).map_err(Unreadable::File)?;
        let card = card::read(&text).map_err(|error| Unreadable::Card(error.to_string()))?;
        Ok(CardFile { path: path.to_owned(), text, card })
    }

    /// The line of a member that a refusal begins with: `capabilities.pushNotifications: …`.
    pub(crate) fn place_of_refusal(&self, refusal: &str) -> Place {
        let path = refusal.split(':').next().unwrap_or_default();
        self.place_of(path.rsplit('.').next().unwrap_or_default())
    }

    /// Whether it has a member of this name.
    pub(crate) fn names(&self, member: &str) -> bool {
        self.text.contains(&format!("\"{member}\""))
    }

    /// The line that contains a quoted text: a member's name or an id. Line 0, the whole file, if there is none.
    pub(crate) fn place_of(&self, quoted: &str) -> Place {
        let wanted = serde_json::Value::from(quoted).to_string();
        let line = self.text.lines().position(|line| !quoted.is_empty() && line.contains(&wanted));
        Place { file: Arc::from(self.path.display().to_string()), line: line.map_or(0, |line| line + 1) }
    }
}

/// The card from the `[card]` table, without skills. If there is one skill, its name and description are the default.
pub(crate) fn written(card: &Card, skills: &[Skill]) -> Result<AgentCard, Vec<(&'static str, &'static str)>> {
    let only = match skills {
        [only] => Some(only),
        _ => None,
    };
    let name = card.name.as_deref().or_else(|| only.and_then(name_of));
    let description = card.description.as_deref().or_else(|| only.and_then(description_of));
    let (Some(name), Some(description)) = (name, description) else {
        let missing = [("card.name", name.is_none()), ("card.description", description.is_none())];
        let reason = "missing; an agent with several skills needs one";
        return Err(missing
            .into_iter()
            .filter(|(_, missing)| *missing)
            .map(|(key, _)| (key, reason))
            .collect());
    };
    let mut made = AgentCard::new(name, description, card.version.as_deref().unwrap_or(DEFAULT_VERSION));
    if let (Some(organization), Some(url)) = (card.provider.as_ref(), card.provider_url.as_ref()) {
        made.provider = Some(AgentProvider { organization: organization.clone(), url: url.clone() });
    }
    made.documentation_url = card.documentation_url.as_deref().map(str::to_owned);
    made.icon_url = card.icon_url.as_deref().map(str::to_owned);
    if let Some(modes) = card.input_modes.as_ref() {
        made.default_input_modes = modes.clone();
    }
    if let Some(modes) = card.output_modes.as_ref() {
        made.default_output_modes = modes.clone();
    }
    made.capabilities.streaming = *card.streaming;
    made.capabilities.state_transition_history = *card.state_history;
    Ok(made)
}

/// A skill's entry on the card, from the `[[skill]]` table.
pub(crate) fn skill(skill: &Skill) -> AgentSkill {
    let id = skill.id.as_deref().unwrap_or_default();
    let mut made =
        AgentSkill::new(id, name_of(skill).unwrap_or_default(), description_of(skill).unwrap_or_default());
    // Clients look for skills by their tags, and validators often require at least one.
    made.tags = skill.tags.as_ref().cloned().unwrap_or_else(|| vec![id.to_owned()]);
    let list = |setting: &Setting<Option<Vec<String>>>| setting.as_ref().cloned().unwrap_or_default();
    made.examples = list(&skill.examples);
    made.input_modes = list(&skill.input_modes);
    made.output_modes = list(&skill.output_modes);
    made.security_requirements = required(&skill.require);
    made
}

/// What the card says about a list of requirements; none if the list is not there.
pub(crate) fn required(list: &Option<Vec<Requirement>>) -> Vec<SecurityRequirement> {
    list.iter().flatten().map(Requirement::on_card).collect()
}

fn name_of(skill: &Skill) -> Option<&str> {
    skill.name.as_deref().or(skill.id.as_deref())
}

fn description_of(skill: &Skill) -> Option<&str> {
    skill.description.as_deref().or_else(|| name_of(skill))
}
