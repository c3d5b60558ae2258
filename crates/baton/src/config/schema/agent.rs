//! Cards, skills, and agents at paths of their own.

use std::path::PathBuf;
use std::time::Duration;

use super::AgentLimits;
use crate::config::setting::{Field, Section, Sections, Setting, Source, Visit, Written};
use crate::config::value::{
    AgentPath, Builtin, CardGrpc, CommandLine, Environment, ExecInput, ExecOutput, Id, Replies, Requirement,
    Shown, Size, Tenant, Word,
};

/// A card: a JSON file, or its members written here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Card {
    pub(crate) file: Setting<Option<PathBuf>>,
    pub(crate) name: Setting<Option<String>>,
    pub(crate) description: Setting<Option<String>>,
    pub(crate) version: Setting<Option<String>>,
    pub(crate) provider: Setting<Option<String>>,
    pub(crate) provider_url: Setting<Option<String>>,
    pub(crate) documentation_url: Setting<Option<String>>,
    pub(crate) icon_url: Setting<Option<String>>,
    pub(crate) input_modes: Setting<Option<Vec<String>>>,
    pub(crate) output_modes: Setting<Option<Vec<String>>>,
    pub(crate) streaming: Setting<Option<bool>>,
    pub(crate) state_history: Setting<Option<bool>>,
    /// How the card tells the address of gRPC.
    pub(crate) grpc: Setting<Option<CardGrpc>>,
    /// A card file with more than the public card, for authenticated callers.
    pub(crate) extended: Setting<Option<PathBuf>>,
}

/// A skill: what the card says about it, and the logic behind it.
#[derive(Debug, Clone)]
pub(crate) struct Skill {
    pub(crate) id: Setting<Option<Word>>,
    pub(crate) name: Setting<Option<String>>,
    pub(crate) description: Setting<Option<String>>,
    pub(crate) tags: Setting<Option<Vec<String>>>,
    pub(crate) examples: Setting<Option<Vec<String>>>,
    pub(crate) input_modes: Setting<Option<Vec<String>>>,
    pub(crate) output_modes: Setting<Option<Vec<String>>>,
    pub(crate) default: Setting<bool>,
    pub(crate) require: Setting<Option<Vec<Requirement>>>,
    pub(crate) replies: Setting<Replies>,
    pub(crate) builtin: Setting<Option<Builtin>>,
    pub(crate) exec: Setting<Option<CommandLine>>,
    pub(crate) exec_input: Setting<Option<ExecInput>>,
    pub(crate) exec_output: Setting<Option<ExecOutput>>,
    pub(crate) directory: Setting<Option<PathBuf>>,
    pub(crate) environment: Setting<Environment>,
    pub(crate) chunk: Setting<Option<String>>,
    pub(crate) max_output: Setting<Option<Size>>,
    pub(crate) timeout: Setting<Option<Duration>>,
    pub(crate) kill_grace: Setting<Option<Duration>>,
    pub(crate) rerunnable: Setting<Option<bool>>,
    pub(crate) show_stderr: Setting<Option<bool>>,
    pub(crate) written: Written,
}

/// One of several agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agent {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) path: Setting<Option<AgentPath>>,
    pub(crate) tenant: Setting<Option<Tenant>>,
    pub(crate) require: Setting<Option<Vec<Requirement>>>,
    pub(crate) card: Card,
    pub(crate) limits: AgentLimits,
    pub(crate) skills: Vec<Skill>,
    pub(crate) written: Written,
}

impl Card {
    /// True if any key of the public card is set.
    pub(crate) fn is_set(&self) -> bool {
        let mut set = AnySet(false);
        self.clone().visit(&mut set);
        set.0
    }
}

struct AnySet(bool);

impl Visit for AnySet {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        let of_the_card = !matches!(name, "extended" | "grpc");
        self.0 |= of_the_card && *field.source() != Source::Default && field.show() != Shown::Absent;
    }

    fn table(&mut self, _name: &'static str, _section: &mut dyn Section) {}

    fn list(&mut self, _name: &'static str, _sections: &mut dyn Sections) {}
}

/// The address of an agent on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentAddress {
    Root,
    Path(String),
    Tenant(String),
}

impl AgentAddress {
    /// The agent's path; an agent with a tenant has one, too, for clients that cannot send a tenant.
    pub(crate) fn path(&self) -> String {
        match self {
            AgentAddress::Root => "/".to_owned(),
            AgentAddress::Path(path) => path.clone(),
            AgentAddress::Tenant(tenant) => format!("/{tenant}"),
        }
    }
}

impl Agent {
    /// As configured; default: a path with the agent's id.
    pub(crate) fn address(&self) -> AgentAddress {
        match (self.path.as_ref(), self.tenant.as_ref()) {
            (_, Some(tenant)) => AgentAddress::Tenant(tenant.as_str().to_owned()),
            (Some(path), None) if path.as_str() == "/" => AgentAddress::Root,
            (Some(path), None) => AgentAddress::Path(path.as_str().to_owned()),
            (None, None) => AgentAddress::Path(format!("/{}", self.id.as_ref().map_or("", |id| id.as_str()))),
        }
    }
}

impl Default for Skill {
    fn default() -> Self {
        Skill {
            id: Setting::default(),
            name: Setting::default(),
            description: Setting::default(),
            tags: Setting::default(),
            examples: Setting::default(),
            input_modes: Setting::default(),
            output_modes: Setting::default(),
            default: Setting::default(),
            require: Setting::default(),
            replies: Setting::new(Replies::Task),
            builtin: Setting::default(),
            exec: Setting::default(),
            exec_input: Setting::default(),
            exec_output: Setting::default(),
            directory: Setting::default(),
            environment: Setting::default(),
            chunk: Setting::default(),
            max_output: Setting::default(),
            timeout: Setting::default(),
            kill_grace: Setting::default(),
            rerunnable: Setting::default(),
            show_stderr: Setting::default(),
            written: Written::default(),
        }
    }
}

impl Section for Card {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("file", &mut self.file);
        visit.field("name", &mut self.name);
        visit.field("description", &mut self.description);
        visit.field("version", &mut self.version);
        visit.field("provider", &mut self.provider);
        visit.field("provider_url", &mut self.provider_url);
        visit.field("documentation_url", &mut self.documentation_url);
        visit.field("icon_url", &mut self.icon_url);
        visit.field("input_modes", &mut self.input_modes);
        visit.field("output_modes", &mut self.output_modes);
        visit.field("streaming", &mut self.streaming);
        visit.field("state_history", &mut self.state_history);
        visit.field("grpc", &mut self.grpc);
        visit.field("extended", &mut self.extended);
    }

    fn short_for(&self) -> Option<&'static str> {
        Some("file")
    }
}

impl Section for Skill {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("name", &mut self.name);
        visit.field("description", &mut self.description);
        visit.field("tags", &mut self.tags);
        visit.field("examples", &mut self.examples);
        visit.field("input_modes", &mut self.input_modes);
        visit.field("output_modes", &mut self.output_modes);
        visit.field("default", &mut self.default);
        visit.field("require", &mut self.require);
        visit.field("replies", &mut self.replies);
        visit.field("builtin", &mut self.builtin);
        visit.field("exec", &mut self.exec);
        visit.field("exec_input", &mut self.exec_input);
        visit.field("exec_output", &mut self.exec_output);
        visit.field("directory", &mut self.directory);
        visit.field("environment", &mut self.environment);
        visit.field("chunk", &mut self.chunk);
        visit.field("max_output", &mut self.max_output);
        visit.field("timeout", &mut self.timeout);
        visit.field("kill_grace", &mut self.kill_grace);
        visit.field("rerunnable", &mut self.rerunnable);
        visit.field("show_stderr", &mut self.show_stderr);
    }

    fn label(&self) -> Option<String> {
        self.id.as_deref().map(str::to_owned)
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }
}

impl Section for Agent {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("path", &mut self.path);
        visit.field("tenant", &mut self.tenant);
        visit.field("require", &mut self.require);
        visit.table("card", &mut self.card);
        visit.table("limits", &mut self.limits);
        visit.list("skill", &mut self.skills);
    }

    fn label(&self) -> Option<String> {
        self.id.as_ref().map(|id| id.as_str().to_owned())
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }
}
