//! The agents that a configuration asks for: each with its card read and its skills matched, ready to be mounted.

use std::collections::HashSet;

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::service::Limits;
use baton_server::{Mount, Server, Skill, StartError};

use super::card::{self, CardFile, Unreadable};
use super::handler::{handler_of, missing_script};
use super::problem::{Problem, Problems};
use super::schema::{self, AgentLimits, Card, Config, Whereabouts};
use super::setting::{Place, Source};
use crate::agents::demo::{self, Profile};
use crate::agents::exec::flags::ExecFlags;
use crate::agents::exec::{self, MOST_PROGRAMS};

/// The agent at the root, by its name in stores. Tasks are kept under it, so it stays.
pub(crate) const ROOT: &str = "default";

/// One agent, ready to be mounted.
#[derive(Debug, Clone)]
pub(crate) struct AgentPlan {
    pub(crate) id: String,
    pub(crate) card: AgentCard,
    pub(crate) limits: Limits,
    whereabouts: Whereabouts,
    /// None: the demo agent's own.
    skills: Option<Vec<SkillPlan>>,
    /// Where things stand, for what is found out later.
    card_file: Option<CardFile>,
    source: Source,
}

#[derive(Debug, Clone)]
struct SkillPlan {
    skill: Skill,
    /// Takes the messages that fit no other.
    default: bool,
}

/// Reads the cards and matches the skills. What is wrong is added to the problems, and that agent left out.
pub(crate) fn plan(
    config: &Config,
    profile: Option<Profile>,
    exec: &ExecFlags,
    problems: &mut Problems,
    warnings: &mut Vec<String>,
) -> Vec<AgentPlan> {
    let mut plans = Vec::new();
    let mut planner = Planner { config, problems, warnings, prefix: "" };
    if config.has_root_agent() || exec.exec.is_some() {
        plans.extend(planner.root(profile, exec));
    }
    planner.prefix = "agent.";
    plans.extend(config.agents.iter().filter_map(|agent| planner.agent(agent)));
    plans
}

struct Planner<'a> {
    config: &'a Config,
    problems: &'a mut Problems,
    warnings: &'a mut Vec<String>,
    /// Of the keys: empty, or `agent.`.
    prefix: &'static str,
}

impl Planner<'_> {
    fn refuse(&mut self, source: &Source, key: &str, text: impl Into<String>) {
        self.problems.add(Problem::new(source.clone(), format!("{}{key}", self.prefix), text));
    }

    fn warn(&mut self, source: &Source, key: &str, text: Option<String>) {
        let line = |text| Problem::new(source.clone(), format!("{}{key}", self.prefix), text).to_string();
        self.warnings.extend(text.map(line));
    }

    fn root(&mut self, profile: Option<Profile>, exec: &ExecFlags) -> Option<AgentPlan> {
        let Config { card, skills, .. } = self.config;
        let limits = self.limits(&AgentLimits::default());
        let base =
            Base { id: ROOT.to_owned(), limits, whereabouts: Whereabouts::Root, source: Source::Default };
        if let (Some(_), true) = (profile, card.is_set() || !skills.is_empty()) {
            let text = "only for the demo agent's own card, and this agent is configured";
            self.refuse(&Source::Flag("--profile"), "", text);
            return None;
        }
        if let Some(typed) = &exec.exec {
            return self.program(base, exec, typed);
        }
        if !skills.is_empty() {
            return self.configured(base, card, skills);
        }
        // The demo agent, under its own card or somebody's.
        let card_file = self.card_file(card)?;
        let card = match &card_file {
            Some(file) => file.card.clone(),
            None if card.is_set() => {
                let text = "an agent needs a skill; give it a [[skill]]";
                self.refuse(&first_source(card), "card", text);
                return None;
            }
            None => demo::card(profile.unwrap_or(Profile::Full)),
        };
        let Base { id, limits, whereabouts, source } = base;
        Some(AgentPlan { id, card, limits, whereabouts, skills: None, card_file, source })
    }

    /// The program of `--exec`, under its own card or the card file's.
    fn program(&mut self, base: Base, flags: &ExecFlags, typed: &str) -> Option<AgentPlan> {
        let Config { card, skills, .. } = self.config;
        let flag = Source::Flag("--exec");
        if !skills.is_empty() {
            self.refuse(&flag, "", "the file has a [[skill]] for this agent; leave out one of the two");
            return None;
        }
        let card_file = self.card_file(card)?;
        if card_file.is_none() && card.is_set() {
            self.refuse(
                &flag,
                "",
                "the file has a [card] for this agent; use --name and --description, or --card",
            );
            return None;
        }
        let made = flags.agent(typed, card_file.as_ref().map(|file| file.card.clone()));
        let (card, skill) = made.map_err(|reason| self.refuse(&flag, "", reason)).ok()?;
        self.warn(&flag, "", exec::missing_script(&exec::parse(typed), None));
        let Base { mut limits, whereabouts, .. } = base;
        self.few_programs(&mut limits);
        let id = flags.agent_id(typed);
        let skills = Some(vec![SkillPlan { skill, default: true }]);
        Some(AgentPlan { id, card, limits, whereabouts, skills, card_file, source: flag })
    }

    fn agent(&mut self, agent: &schema::Agent) -> Option<AgentPlan> {
        let id = agent.id.as_ref().filter(|_| !agent.broken)?.as_str().to_owned();
        let place = agent.place.clone().map_or(Source::Default, Source::File);
        let source =
            [agent.path.source(), agent.tenant.source()].into_iter().find(|it| **it != Source::Default);
        let source = source.cloned().unwrap_or(place);
        let limits = self.limits(&agent.limits);
        let base = Base { id, limits, whereabouts: agent.whereabouts(), source };
        self.configured(base, &agent.card, &agent.skills)
    }

    /// An agent with skills from the configuration.
    fn configured(&mut self, base: Base, card: &Card, skills: &[schema::Skill]) -> Option<AgentPlan> {
        // What these lack was said already.
        let incomplete = |skill: &schema::Skill| {
            skill.broken || skill.id.is_none() || skill.exec.is_some() == skill.builtin.is_some()
        };
        if skills.is_empty() || skills.iter().any(incomplete) {
            return None;
        }
        let card_file = self.card_file(card)?;
        let Base { id, mut limits, whereabouts, source } = base;
        if skills.iter().any(|skill| skill.exec.is_some()) {
            self.few_programs(&mut limits);
        }
        let (card, skills) = match &card_file {
            Some(file) => self.matched(file, skills)?,
            None => self.written(card, skills, &source)?,
        };
        // That an id is there twice was said already, too.
        let ids: HashSet<_> = skills.iter().map(|plan| &plan.skill.card.id).collect();
        if ids.len() < skills.len() {
            return None;
        }
        Some(AgentPlan { id, card, limits, whereabouts, skills: Some(skills), card_file, source })
    }

    /// The card's file, if it is one. `None` outside when it was named and is not usable.
    fn card_file(&mut self, card: &Card) -> Option<Option<CardFile>> {
        let Some(path) = card.file.as_ref() else { return Some(None) };
        match CardFile::read(path) {
            Ok(file) => Some(Some(file)),
            Err(Unreadable::File(reason)) => {
                self.refuse(card.file.source(), "card.file", format!("{}: {reason}", path.display()));
                None
            }
            Err(Unreadable::Card(reason)) => {
                let place = Place { file: path.display().to_string().into(), line: 0 };
                self.problems.add(Problem::in_file(place, "", reason));
                None
            }
        }
    }

    fn written(
        &mut self,
        card: &Card,
        skills: &[schema::Skill],
        source: &Source,
    ) -> Option<(AgentCard, Vec<SkillPlan>)> {
        let mut made = match card::written(card, skills) {
            Ok(made) => made,
            Err(missing) => {
                let skill = skills.first().and_then(|skill| skill.place.clone()).map(Source::File);
                let source =
                    if *source == Source::Default { skill.as_ref().unwrap_or(source) } else { source };
                missing.into_iter().for_each(|(key, reason)| self.refuse(source, key, reason));
                return None;
            }
        };
        made.skills = skills.iter().map(card::skill).collect();
        let plans: Vec<_> =
            skills.iter().zip(&made.skills).filter_map(|(skill, card)| self.skill(skill, card)).collect();
        (plans.len() == skills.len()).then_some((made, plans))
    }

    /// A skill with its logic, if that can be had.
    fn skill(&mut self, skill: &schema::Skill, card: &AgentSkill) -> Option<SkillPlan> {
        match handler_of(skill) {
            Ok(logic) => {
                self.warn(skill.exec.source(), "skill.exec", missing_script(skill));
                Some(SkillPlan { skill: Skill { card: card.clone(), logic }, default: *skill.default })
            }
            Err(reason) => {
                self.refuse(skill.exec.source(), "skill.exec", reason);
                None
            }
        }
    }

    /// A card that lists skills and the skills that have logic must be the same ones.
    fn matched(&mut self, file: &CardFile, skills: &[schema::Skill]) -> Option<(AgentCard, Vec<SkillPlan>)> {
        let mut card = file.card.clone();
        if card.skills.is_empty() {
            card.skills = skills.iter().map(card::skill).collect();
        }
        let before = self.problems.count();
        for listed in &file.card.skills {
            if !skills.iter().any(|skill| skill.id.as_deref() == Some(&listed.id)) {
                let text =
                    format!("`{}` is on the card, but no [[{}skill]] is behind it", listed.id, self.prefix);
                self.problems.add(Problem::in_file(file.place_of(&listed.id), "skills", text));
            }
        }
        let mut plans = Vec::new();
        for skill in skills {
            let id = skill.id.as_deref().unwrap_or_default();
            match card.skills.iter().find(|listed| listed.id == id) {
                Some(listed) => plans.extend(self.skill(skill, listed)),
                None => {
                    let known: Vec<_> = card.skills.iter().map(|skill| format!("`{}`", skill.id)).collect();
                    let text = format!("`{id}` is not on the card, which lists {}", known.join(", "));
                    self.refuse(skill.id.source(), "skill.id", text);
                }
            }
            if !file.card.skills.is_empty() {
                self.said_on_the_card(skill);
            }
        }
        if self.problems.count() > before {
            // These were told; what else is wrong with the card is still to be found.
            card.skills.clear();
        }
        (!plans.is_empty()).then_some((card, plans))
    }

    /// Said in two places, one of them would be ignored.
    fn said_on_the_card(&mut self, skill: &schema::Skill) {
        let said: [(&str, &Source); 6] = [
            ("skill.name", skill.name.source()),
            ("skill.description", skill.description.source()),
            ("skill.tags", skill.tags.source()),
            ("skill.examples", skill.examples.source()),
            ("skill.input_modes", skill.input_modes.source()),
            ("skill.output_modes", skill.output_modes.source()),
        ];
        for (key, source) in said {
            if *source != Source::Default {
                self.refuse(source, key, "the card's file lists the skills; write it there");
            }
        }
    }

    /// A process costs far more than a future: unless somebody said how many may run, fewer do.
    fn few_programs(&self, limits: &mut Limits) {
        if !self.config.limits.max_running.is_set() {
            limits.max_running.get_or_insert(MOST_PROGRAMS);
        }
    }

    /// The server's bounds, and what the agent has of its own.
    fn limits(&self, own: &AgentLimits) -> Limits {
        let all = &self.config.limits;
        let mut limits = Limits::default();
        limits.max_body_bytes = own.max_body.unwrap_or(*all.max_body).bytes();
        limits.default_page = own.default_page.unwrap_or(*all.default_page);
        limits.max_page = own.max_page.unwrap_or(*all.max_page);
        limits.max_page_bytes = all.max_page_bytes.bytes();
        limits.legacy_wait = own.legacy_wait.unwrap_or(*all.legacy_wait);
        limits.keep_alive = own.keep_alive.unwrap_or(*all.keep_alive);
        limits.max_running = *own.max_running;
        limits.max_queued = *own.max_queued;
        limits
    }
}

/// What an agent has beside its card and skills.
struct Base {
    id: String,
    limits: Limits,
    whereabouts: Whereabouts,
    source: Source,
}

fn first_source(card: &Card) -> Source {
    let sources = [card.name.source(), card.description.source(), card.version.source()];
    sources.into_iter().find(|source| **source != Source::Default).cloned().unwrap_or(Source::Default)
}

impl AgentPlan {
    /// The agent as the server takes it.
    pub(crate) fn mount(&self) -> Mount {
        let mount = Mount::new(&self.id, self.card.clone()).limits(self.limits.clone());
        let mount = match &self.whereabouts {
            Whereabouts::Root => mount,
            Whereabouts::Path(path) => mount.path(path),
            Whereabouts::Tenant(tenant) => mount.tenant(tenant),
        };
        let Some(skills) = &self.skills else { return demo::skills(mount) };
        skills.iter().fold(mount, |mount, plan| {
            let mount = if plan.default { mount.default_skill(&plan.skill.card.id) } else { mount };
            mount.skill(plan.skill.clone())
        })
    }

    /// Words to try the agent with: the first example of its default skill, else of whichever has one.
    pub(crate) fn example(&self) -> Option<&str> {
        let default = self.skills.iter().flatten().find(|plan| plan.default);
        let skills = default.map(|plan| &plan.skill.card).into_iter().chain(&self.card.skills);
        skills.flat_map(|skill| &skill.examples).map(String::as_str).find(|words| !words.trim().is_empty())
    }

    /// The program of `--exec` goes by the name that every agent at the root once had in stores.
    pub(crate) fn share_scope(&mut self) {
        if self.is_program() {
            ROOT.clone_into(&mut self.id);
        }
    }

    pub(crate) fn is_program(&self) -> bool {
        self.source == Source::Flag("--exec")
    }

    /// Has the other the same skills? A card can only be replaced by one for the same.
    pub(crate) fn has_skills_of(&self, other: &AgentPlan) -> bool {
        let ids = |plan: &AgentPlan| {
            let skills = plan.skills.as_ref()?;
            let mut ids: Vec<_> = skills.iter().map(|plan| plan.skill.card.id.clone()).collect();
            ids.sort();
            Some(ids)
        };
        ids(self) == ids(other)
    }

    /// Where clients find it, below the server's address; none by path when it is at the root.
    pub(crate) fn path(&self) -> String {
        self.whereabouts.path()
    }

    pub(crate) fn is_demo(&self) -> bool {
        self.skills.is_none()
    }
}

/// Makes each agent once, on a store that is thrown away: what the server would refuse, it refuses here.
pub(crate) async fn prove(plans: &[AgentPlan], problems: &mut Problems) {
    for plan in plans {
        let Err(error) = Server::host().mount(plan.mount()).build().await else { continue };
        match (error, &plan.card_file) {
            (StartError::Card(refusals), Some(file)) => {
                for refusal in refusals {
                    problems.add(Problem::in_file(file.place_of_refusal(&refusal), "", refusal));
                }
            }
            (StartError::Card(refusals), None) => {
                for refusal in refusals {
                    let text = format!("agent `{}`: {refusal}", plan.id);
                    problems.add(Problem::new(plan.source.clone(), "", text));
                }
            }
            (error, _) => problems.add(Problem::new(plan.source.clone(), "", error.to_string())),
        }
    }
}
