//! The configured agents: reads their cards and matches their skills, so that they can be mounted.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::Limits;
use baton_server::card::GrpcAddress;
use baton_server::{Mount, Server, Skill, StartError};

use super::auth::AuthPlan;
use super::card::{self, CardFile, Unreadable};
use super::handler::{handler_of, missing_script};
use super::problem::{Problem, Problems};
use super::schema::{self, AgentAddress, AgentLimits, Card, Config};
use super::setting::{Place, Setting, Source};
use super::value::{CardGrpc, Requirement};
use crate::agents::demo::{self, Profile};
use crate::agents::exec::flags::ExecFlags;
use crate::agents::exec::{self, MOST_PROGRAMS};
use crate::reload::warn_of_version;

/// The id of the agent at the root. Stores keep its tasks under this id, so it must not change.
pub(crate) const ROOT: &str = "default";

/// The member of a card's capabilities that declares webhooks, in both spellings that are read.
const PUSH: [&str; 2] = ["pushNotifications", "push_notifications"];

/// One agent, ready to be mounted.
#[derive(Debug, Clone)]
pub(crate) struct AgentPlan {
    pub(crate) id: String,
    pub(crate) card: AgentCard,
    pub(crate) limits: Limits,
    address: AgentAddress,
    /// `None`: the demo agent's own skills.
    skills: Option<Vec<SkillPlan>>,
    /// The card file and the agent's place in the configuration, for later error messages.
    card_file: Option<CardFile>,
    source: Source,
    extended: Option<ExtendedCard>,
    grpc: GrpcAddress,
}

/// The card for authenticated callers. A reload replaces it.
#[derive(Debug, Clone)]
pub(crate) struct ExtendedCard(Arc<ArcSwap<AgentCard>>);

#[derive(Debug, Clone)]
struct SkillPlan {
    skill: Skill,
    /// Gets the messages that match no other skill.
    default: bool,
}

/// Reads the cards and matches the skills. Mistakes are added to `problems`, and the agent is left out.
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
        let root = planner.root(profile, exec);
        plans.extend(root.and_then(|plan| planner.guarded(plan, &config.card, &Setting::default())));
    } else if config.card.extended.is_some() {
        planner.refuse(config.card.extended.source(), "card.extended", "there is no agent at the root");
    }
    planner.prefix = "agent.";
    for agent in &config.agents {
        let plan = planner.agent(agent);
        plans.extend(plan.and_then(|plan| planner.guarded(plan, &agent.card, &agent.require)));
    }
    planner.prefix = "";
    if *config.grpc {
        planner.without_grpc(&plans);
    }
    if *config.push.enabled == Some(true) {
        warnings.extend(plans.iter().filter_map(without_webhooks));
    }
    plans
}

/// A warning for whoever has switched webhooks on, if the file of the agent's card says nothing of them.
fn without_webhooks(plan: &AgentPlan) -> Option<String> {
    let says_nothing = |file: &&CardFile| !PUSH.iter().any(|member| file.names(member));
    let file = plan.card_file.as_ref().filter(says_nothing).filter(|_| !plan.takes_webhooks())?;
    let [member, _] = PUSH;
    let text = format!(
        "`push.enabled` is on, but this card does not declare webhooks: add `\"{member}\": true` to its `capabilities`, or \
         `\"{member}\": false` if that is meant"
    );
    Some(Problem::in_file(file.place_of("capabilities"), "", text).to_string())
}

struct Planner<'a> {
    config: &'a Config,
    problems: &'a mut Problems,
    warnings: &'a mut Vec<String>,
    /// The prefix of the keys: empty, or `agent.`.
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

    /// A call of gRPC names a method and no path, so it cannot be for an agent that is known by its path.
    fn without_grpc(&mut self, plans: &[AgentPlan]) {
        let (out_of_reach, reached): (Vec<_>, Vec<_>) =
            plans.iter().partition(|plan| matches!(plan.address, AgentAddress::Path(_)));
        if let ([_, ..], []) = (&out_of_reach[..], &reached[..]) {
            let text = "it would reach no agent: all have a `path`, which calls of gRPC do not; give one a `tenant` instead";
            return self.refuse(self.config.grpc.source(), "grpc", text);
        }
        for plan in out_of_reach {
            let text =
                format!("gRPC does not reach {}, since it has a `path`; it would with a `tenant`", plan.id);
            self.warn(&plan.source, "agent.path", Some(text));
        }
    }

    fn root(&mut self, profile: Option<Profile>, exec: &ExecFlags) -> Option<AgentPlan> {
        let Config { card, skills, .. } = self.config;
        let limits = self.limits(&AgentLimits::default());
        let base = Base { id: ROOT.to_owned(), limits, address: AgentAddress::Root, source: Source::Default };
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
        // The demo agent, with its own card or a given one.
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
        Some(AgentPlan::new(base, card, None, card_file))
    }

    /// Adds what callers need, and the card for those who have it.
    fn guarded(
        &mut self,
        mut plan: AgentPlan,
        card: &Card,
        require: &Setting<Option<Vec<Requirement>>>,
    ) -> Option<AgentPlan> {
        if plan.card.security_requirements.is_empty() {
            let all = self.config.auth.require.iter().map(Requirement::on_card);
            plan.card.security_requirements = match &**require {
                Some(_) => card::required(require),
                None => all.collect(),
            };
        } else if require.is_some() {
            let text = "the card's file has `securityRequirements`; write it there";
            self.refuse(require.source(), "require", text);
        }
        plan.grpc = match *card.grpc {
            None | Some(CardGrpc::HostPort) => GrpcAddress::HostPort,
            Some(CardGrpc::Url) => GrpcAddress::Url,
            Some(CardGrpc::Off) => GrpcAddress::Hidden,
        };
        if let Some(path) = card.extended.as_ref() {
            let file = self.read_card(path, card.extended.source(), "card.extended")?;
            plan.extended = Some(ExtendedCard(Arc::new(ArcSwap::from_pointee(file.card))));
        }
        Some(plan)
    }

    /// The program of `--exec`, with its own card or a card file.
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
        let Base { mut limits, address, .. } = base;
        self.limit_programs(&mut limits);
        let id = flags.agent_id(typed);
        let skills = Some(vec![SkillPlan { skill, default: true }]);
        Some(AgentPlan::new(Base { id, limits, address, source: flag }, card, skills, card_file))
    }

    fn agent(&mut self, agent: &schema::Agent) -> Option<AgentPlan> {
        let id = agent.id.as_ref().filter(|_| !agent.written.is_broken)?.as_str().to_owned();
        let place = agent.written.source();
        let source =
            [agent.path.source(), agent.tenant.source()].into_iter().find(|it| **it != Source::Default);
        let source = source.cloned().unwrap_or(place);
        let limits = self.limits(&agent.limits);
        let base = Base { id, limits, address: agent.address(), source };
        self.configured(base, &agent.card, &agent.skills)
    }

    /// An agent with skills from the configuration.
    fn configured(&mut self, base: Base, card: &Card, skills: &[schema::Skill]) -> Option<AgentPlan> {
        // Their mistakes were reported already.
        let incomplete = |skill: &schema::Skill| {
            skill.written.is_broken || skill.id.is_none() || skill.exec.is_some() == skill.builtin.is_some()
        };
        if skills.is_empty() || skills.iter().any(incomplete) {
            return None;
        }
        let card_file = self.card_file(card)?;
        let Base { id, mut limits, address, source } = base;
        if skills.iter().any(|skill| skill.exec.is_some()) {
            self.limit_programs(&mut limits);
        }
        let (card, skills) = match &card_file {
            Some(file) => self.matched(file, skills)?,
            None => self.written(card, skills, &source)?,
        };
        // Duplicate ids were reported already.
        let ids: HashSet<_> = skills.iter().map(|plan| &plan.skill.card.id).collect();
        if ids.len() < skills.len() {
            return None;
        }
        Some(AgentPlan::new(Base { id, limits, address, source }, card, Some(skills), card_file))
    }

    /// `Some(None)`: no card file. `None`: there is one, but it cannot be used.
    fn card_file(&mut self, card: &Card) -> Option<Option<CardFile>> {
        let Some(path) = card.file.as_ref() else { return Some(None) };
        self.read_card(path, card.file.source(), "card.file").map(Some)
    }

    fn read_card(&mut self, path: &Path, source: &Source, key: &str) -> Option<CardFile> {
        match CardFile::read(path) {
            Ok(file) => Some(file),
            Err(Unreadable::File(reason)) => {
                self.refuse(source, key, format!("{}: {reason}", path.display()));
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
                let skill = skills.first().and_then(|skill| skill.written.place.clone()).map(Source::File);
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

    /// A skill with its logic; `None` if the logic cannot be made.
    fn skill(&mut self, skill: &schema::Skill, card: &AgentSkill) -> Option<SkillPlan> {
        match handler_of(skill) {
            Ok(logic) => {
                self.warn(skill.exec.source(), "skill.exec", missing_script(skill));
                Some(SkillPlan { skill: Skill::new(card.clone(), logic), default: *skill.default })
            }
            Err(reason) => {
                self.refuse(skill.exec.source(), "skill.exec", reason);
                None
            }
        }
    }

    /// The skills on the card and the configured skills must be the same.
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
                self.refuse_card_keys(skill);
            }
        }
        if self.problems.count() > before {
            // These mistakes are reported; go on to find others in the card.
            card.skills.clear();
        }
        (!plans.is_empty()).then_some((card, plans))
    }

    /// Refuses keys that the card file has, too: one of the two would be ignored.
    fn refuse_card_keys(&mut self, skill: &schema::Skill) {
        let said: [(&str, &Source); 7] = [
            ("skill.name", skill.name.source()),
            ("skill.description", skill.description.source()),
            ("skill.tags", skill.tags.source()),
            ("skill.examples", skill.examples.source()),
            ("skill.input_modes", skill.input_modes.source()),
            ("skill.output_modes", skill.output_modes.source()),
            ("skill.require", skill.require.source()),
        ];
        for (key, source) in said {
            if *source != Source::Default {
                self.refuse(source, key, "the card's file lists the skills; write it there");
            }
        }
    }

    /// Lowers the default of `max_running` for programs, since a process costs far more than a future.
    fn limit_programs(&self, limits: &mut Limits) {
        if !self.config.limits.max_running.is_set() {
            limits.max_running.get_or_insert(MOST_PROGRAMS);
        }
    }

    /// The server's limits, overridden by the agent's own.
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

/// What an agent has in addition to its card and skills.
struct Base {
    id: String,
    limits: Limits,
    address: AgentAddress,
    source: Source,
}

fn first_source(card: &Card) -> Source {
    let sources = [card.name.source(), card.description.source(), card.version.source()];
    sources.into_iter().find(|source| **source != Source::Default).cloned().unwrap_or(Source::Default)
}

impl AgentPlan {
    fn new(base: Base, card: AgentCard, skills: Option<Vec<SkillPlan>>, card_file: Option<CardFile>) -> Self {
        let Base { id, limits, address, source } = base;
        let (extended, grpc) = (None, GrpcAddress::default());
        AgentPlan { id, card, limits, address, skills, card_file, source, extended, grpc }
    }

    /// The agent for the server's builder.
    pub(crate) fn mount(&self) -> Mount {
        let mount = Mount::new(&self.id, self.card.clone()).limits(self.limits.clone());
        let mount = mount.grpc_address(self.grpc);
        let mount = match &self.address {
            AgentAddress::Root => mount,
            AgentAddress::Path(path) => mount.path(path),
            AgentAddress::Tenant(tenant) => mount.tenant(tenant),
        };
        let mount = match &self.extended {
            Some(ExtendedCard(card)) => {
                let card = Arc::clone(card);
                mount.extended_card_for(move |_, _| AgentCard::clone(&card.load()))
            }
            None => mount,
        };
        let Some(skills) = &self.skills else { return demo::skills(mount) };
        skills.iter().fold(mount, |mount, plan| {
            let mount = if plan.default { mount.default_skill(&plan.skill.card.id) } else { mount };
            mount.skill(plan.skill.clone())
        })
    }

    /// A message to try the agent with: the first example of its default skill, else of any skill.
    pub(crate) fn example(&self) -> Option<&str> {
        let default = self.skills.iter().flatten().find(|plan| plan.default);
        let skills = default.map(|plan| &plan.skill.card).into_iter().chain(&self.card.skills);
        skills.flat_map(|skill| &skill.examples).map(String::as_str).find(|words| !words.trim().is_empty())
    }

    /// Gives the program of `--exec` the id that every agent at the root had in stores of earlier versions.
    pub(crate) fn share_scope(&mut self) {
        if self.is_program() {
            ROOT.clone_into(&mut self.id);
        }
    }

    pub(crate) fn is_program(&self) -> bool {
        self.source == Source::Flag("--exec")
    }

    /// True if both have the same skills. A running card can be replaced only then.
    pub(crate) fn has_skills_of(&self, other: &AgentPlan) -> bool {
        let ids = |plan: &AgentPlan| {
            let skills = plan.skills.as_ref()?;
            let mut ids: Vec<_> = skills.iter().map(|plan| plan.skill.card.id.clone()).collect();
            ids.sort();
            Some(ids)
        };
        ids(self) == ids(other)
    }

    /// Takes over the other's card for authenticated callers. `Err` if only one of them has one, which needs a restart;
    /// else whether it differs.
    pub(crate) fn follow_extended(&self, new: &AgentPlan) -> Result<bool, ()> {
        match (&self.extended, &new.extended) {
            (None, None) => Ok(false),
            (Some(ExtendedCard(old)), Some(ExtendedCard(new))) => {
                let new = new.load_full();
                let old = old.swap(Arc::clone(&new));
                warn_of_version(&self.id, &old, &new);
                Ok(*old != *new)
            }
            _ => Err(()),
        }
    }

    /// The path where clients find the agent; empty for the root.
    pub(crate) fn path(&self) -> String {
        self.address.path()
    }

    /// The tenant by which callers name it, if it has one.
    pub(crate) fn tenant(&self) -> Option<&str> {
        match &self.address {
            AgentAddress::Tenant(tenant) => Some(tenant),
            AgentAddress::Root | AgentAddress::Path(_) => None,
        }
    }

    /// Whether its card leaves webhooks to the server, or declares them.
    pub(crate) fn takes_webhooks(&self) -> bool {
        self.card.capabilities.push_notifications != Some(false)
    }

    pub(crate) fn is_demo(&self) -> bool {
        self.skills.is_none()
    }
}

/// Builds each agent once with a temporary store, to find what the server would refuse.
pub(crate) async fn trial_build(
    config: &Config,
    plans: &[AgentPlan],
    auth: &AuthPlan,
    problems: &mut Problems,
) {
    let host = || {
        let host = Server::host().auth(auth.chain());
        #[cfg(feature = "grpc")]
        let host = if *config.grpc { host.grpc() } else { host };
        // Unless it is said, it depends on the addresses, which are not known yet.
        let may_push = *config.push.enabled != Some(false);
        if may_push { host.push(config.push.options(false)) } else { host }
    };
    let before = problems.count();
    // A scheme that could not be made is missing on every card.
    let is_consequence = {
        let auth_is_wrong = problems.concern_auth();
        move |line: &String| {
            auth_is_wrong && (line.contains("security") || line.contains("extended") || is_unused(line))
        }
    };
    // A scheme that the configuration has no longer need not be on any card.
    let is_gone =
        |line: &String| is_unused(line) && auth.withdrawn().any(|name| line.contains(&format!("`{name}`")));
    let is_own =
        |line: &String| !is_consequence(line) && !is_gone(line) && (plans.len() == 1 || !is_unused(line));
    for plan in plans {
        let builder = host().mount(plan.mount());
        let Err(error) = builder.build().await else { continue };
        match (error, &plan.card_file) {
            (StartError::Card(refusals), Some(file)) => {
                for refusal in refusals.into_iter().filter(is_own) {
                    problems.add(Problem::in_file(file.place_of_refusal(&refusal), "", refusal));
                }
            }
            (StartError::Card(refusals), None) => {
                for refusal in refusals.into_iter().filter(is_own) {
                    let text = format!("agent `{}`: {refusal}", plan.id);
                    problems.add(Problem::new(plan.source.clone(), "", text));
                }
            }
            (error, _) => problems.add(Problem::new(plan.source.clone(), "", error.to_string())),
        }
    }
    // A scheme is in use if one of the agents declares it, so this needs all of them.
    if auth.enforces() && plans.len() > 1 && problems.count() == before && !problems.concern_auth() {
        let builder = plans.iter().fold(host(), |builder, plan| builder.mount(plan.mount()));
        if let Err(StartError::Card(refusals)) = builder.build().await {
            let refusals: Vec<_> = refusals.into_iter().filter(|line| !is_gone(line)).collect();
            if !refusals.is_empty() {
                problems.add(Problem::new(Source::Default, "auth", StartError::Card(refusals).to_string()));
            }
        }
    }
}

/// A card need not declare every scheme, as long as another one does.
fn is_unused(refusal: &str) -> bool {
    refusal.contains("but no card declares it")
}
