//! Rules between keys. The type of each value checks the value itself.

use std::collections::HashMap;

use super::problem::{Problem, Problems};
use super::schema::{Agent, Card, Config, Skill};
use super::setting::{Setting, Source};
use super::value::{ClientCerts, Value as _};

pub(crate) fn rules(config: &Config, problems: &mut Problems) {
    let mut rules = Rules { config, problems, prefix: "" };
    rules.tls();
    rules.grpc();
    rules.pages();
    rules.card(&config.card);
    rules.skills(&config.skills);
    rules.agents();
}

struct Rules<'a> {
    config: &'a Config,
    problems: &'a mut Problems,
    /// The prefix of the keys: empty, or `agent.`.
    prefix: &'static str,
}

impl Rules<'_> {
    fn refuse(&mut self, source: &Source, key: &str, text: impl Into<String>) {
        self.problems.add(Problem::new(source.clone(), format!("{}{key}", self.prefix), text));
    }

    fn tls(&mut self) {
        let tls = &self.config.tls;
        match (tls.cert.as_ref(), tls.key.as_ref()) {
            (Some(_), None) => {
                let text = "a certificate needs its key: set `tls.key` (--tls-key)";
                self.refuse(tls.cert.source(), "tls.cert", text);
            }
            (None, Some(_)) => {
                let text = "a key needs its certificate: set `tls.cert` (--tls-cert)";
                self.refuse(tls.key.source(), "tls.key", text);
            }
            (Some(_), Some(_)) if *tls.self_signed => {
                let text = "there is a certificate already (`tls.cert`); one of the two is enough";
                self.refuse(tls.self_signed.source(), "tls.self_signed", text);
            }
            _ => {}
        }
        let wanted = *tls.client_certs != ClientCerts::Off;
        if wanted && !tls.is_on() {
            let text = "client certificates need TLS: set `tls.cert` and `tls.key`";
            self.refuse(tls.client_certs.source(), "tls.client_certs", text);
        }
        if wanted && tls.client_ca.is_none() {
            let text =
                "set `tls.client_ca`, the authorities that may have signed the certificates of clients";
            self.refuse(tls.client_certs.source(), "tls.client_certs", text);
        }
        if !wanted && tls.client_ca.is_some() {
            let text =
                "without effect: `tls.client_certs` is \"off\"; set it to \"optional\" or \"required\"";
            self.refuse(tls.client_ca.source(), "tls.client_ca", text);
        }
    }

    fn grpc(&mut self) {
        let config = self.config;
        if *config.grpc && cfg!(not(feature = "grpc")) {
            self.refuse(config.grpc.source(), "grpc", "this binary was built without gRPC");
        }
        if *config.grpc {
            return;
        }
        let text = "without effect: `grpc` is off; set `grpc = true` (--grpc)";
        for (key, setting) in
            [("grpc_health", &config.grpc_health), ("grpc_reflection", &config.grpc_reflection)]
        {
            if **setting {
                self.refuse(setting.source(), key, text);
            }
        }
        if config.card.grpc.is_some() {
            self.refuse(config.card.grpc.source(), "card.grpc", text);
        }
        for agent in &config.agents {
            if agent.card.grpc.is_some() {
                self.refuse(agent.card.grpc.source(), "agent.card.grpc", text);
            }
        }
    }

    fn pages(&mut self) {
        let config = self.config;
        let (usual, most) = (&config.limits.default_page, &config.limits.max_page);
        if **usual > **most {
            let source = if usual.is_set() { usual.source() } else { most.source() };
            let text = format!("{} is more than `limits.max_page`, {}", **usual, **most);
            self.refuse(source, "limits.default_page", text);
        }
        for agent in &config.agents {
            let usual = agent.limits.default_page.unwrap_or(*config.limits.default_page);
            let most = agent.limits.max_page.unwrap_or(*config.limits.max_page);
            let said = agent.limits.default_page.is_set() || agent.limits.max_page.is_set();
            if said && usual > most {
                let source = if agent.limits.default_page.is_set() {
                    agent.limits.default_page.source()
                } else {
                    agent.limits.max_page.source()
                };
                let text = format!("{usual} is more than this agent's `max_page`, {most}");
                self.refuse(source, "agent.limits.default_page", text);
            }
        }
    }

    /// A card is a file or written in the configuration, not both: it would be unclear which value wins.
    fn card(&mut self, card: &Card) {
        let Some(file) = card.file.as_ref() else {
            if card.provider.is_some() != card.provider_url.is_some() {
                let (given, missing) = match card.provider.as_ref() {
                    Some(_) => (card.provider.source(), "card.provider_url"),
                    None => (card.provider_url.source(), "card.provider"),
                };
                self.refuse(given, missing, "missing; a provider has a name and a URL");
            }
            return;
        };
        let written: [(&str, &Source, bool); 11] = [
            of("card.name", &card.name),
            of("card.description", &card.description),
            of("card.version", &card.version),
            of("card.provider", &card.provider),
            of("card.provider_url", &card.provider_url),
            of("card.documentation_url", &card.documentation_url),
            of("card.icon_url", &card.icon_url),
            of("card.input_modes", &card.input_modes),
            of("card.output_modes", &card.output_modes),
            of("card.streaming", &card.streaming),
            of("card.state_history", &card.state_history),
        ];
        for (key, source, set) in written {
            if set {
                let text =
                    format!("the card is in {}; write it there, or leave out `card.file`", file.display());
                self.refuse(source, key, text);
            }
        }
    }

    fn skills(&mut self, skills: &[Skill]) {
        let mut ids: HashMap<&str, &Source> = HashMap::new();
        let mut default: Option<&Source> = None;
        for skill in skills.iter().filter(|skill| !skill.written.is_broken) {
            let place = skill.written.source();
            match skill.id.as_deref() {
                None => self.refuse(&place, "skill.id", "missing; every skill needs one"),
                Some(id) => {
                    if let Some(first) = ids.insert(id, skill.id.source()) {
                        let text = format!("`{id}` is there twice; the first is at {first}");
                        self.refuse(skill.id.source(), "skill.id", text);
                    }
                }
            }
            if *skill.default
                && let Some(first) = default.replace(skill.default.source())
            {
                let text = format!("only one skill can be the default; another one is at {first}");
                self.refuse(skill.default.source(), "skill.default", text);
            }
            self.logic(skill, &place);
        }
    }

    /// A skill has exactly one kind of logic, and no settings of the other kind.
    fn logic(&mut self, skill: &Skill, place: &Source) {
        let name = skill.id.as_deref().unwrap_or("?");
        match (skill.exec.is_some(), skill.builtin.is_some()) {
            (false, false) => {
                let text = format!("skill `{name}` has no logic; give it `exec` or `builtin`");
                self.refuse(place, "skill", text);
            }
            (true, true) => {
                let text = format!("skill `{name}` has `exec`, too; it can have only one of them");
                self.refuse(skill.builtin.source(), "skill.builtin", text);
            }
            (true, false) => {
                let patience = *self.config.limits.cancel_grace;
                if let Some(grace) = *skill.kill_grace
                    && grace >= patience
                {
                    let (grace, patience) = (grace.show().toml(), patience.show().toml());
                    let text = format!("{grace} is not less than `limits.cancel_grace`, {patience}");
                    self.refuse(skill.kill_grace.source(), "skill.kill_grace", text);
                }
            }
            (false, true) => {
                let of_programs: [(&str, &Source, bool); 10] = [
                    of("skill.exec_input", &skill.exec_input),
                    of("skill.exec_output", &skill.exec_output),
                    of("skill.directory", &skill.directory),
                    of("skill.environment", &skill.environment),
                    of("skill.chunk", &skill.chunk),
                    of("skill.max_output", &skill.max_output),
                    of("skill.timeout", &skill.timeout),
                    of("skill.kill_grace", &skill.kill_grace),
                    of("skill.rerunnable", &skill.rerunnable),
                    of("skill.show_stderr", &skill.show_stderr),
                ];
                for (key, source, set) in of_programs {
                    if set {
                        self.refuse(
                            source,
                            key,
                            format!("only for `exec`, and skill `{name}` has `builtin`"),
                        );
                    }
                }
            }
        }
    }

    fn agents(&mut self) {
        let config = self.config;
        let mut ids: HashMap<&str, &Source> = HashMap::new();
        let mut paths: HashMap<String, &Source> = HashMap::new();
        let root = config.has_root_agent();
        for agent in &config.agents {
            self.prefix = "agent.";
            self.card(&agent.card);
            self.skills(&agent.skills);
            self.prefix = "";
            if agent.written.is_broken {
                continue;
            }
            let place = agent.written.source();
            let Some(id) = agent.id.as_ref() else {
                self.refuse(
                    &place,
                    "agent.id",
                    "missing; it names the agent in the store, so choose it once",
                );
                continue;
            };
            let id = id.as_str();
            if id == super::agents::ROOT && root {
                let text = format!("`{id}` is the agent that `card` and [[skill]] at the top make");
                self.refuse(agent.id.source(), "agent.id", text);
            }
            if let Some(first) = ids.insert(id, agent.id.source()) {
                let text = format!("`{id}` is there twice; the first is at {first}");
                self.refuse(agent.id.source(), "agent.id", text);
                continue;
            }
            self.where_found(agent, root, &mut paths);
            if agent.skills.is_empty() {
                self.refuse(&place, "agent", format!("`{id}` has no skill; give it an [[agent.skill]]"));
            }
        }
    }

    fn where_found<'a>(&mut self, agent: &'a Agent, root: bool, paths: &mut HashMap<String, &'a Source>) {
        if agent.path.is_some() && agent.tenant.is_some() {
            let text = "an agent has a path or a tenant, not both";
            return self.refuse(agent.tenant.source(), "agent.tenant", text);
        }
        let (key, source) = if agent.tenant.is_some() {
            ("agent.tenant", agent.tenant.source())
        } else if agent.path.is_some() {
            ("agent.path", agent.path.source())
        } else {
            ("agent.id", agent.id.source())
        };
        let path = agent.address().path();
        if path == "/" && root {
            let text = "the root is taken by the agent that `card` and [[skill]] at the top make";
            self.refuse(source, key, text);
        }
        if let Some(first) = paths.insert(path.clone(), source) {
            self.refuse(source, key, format!("`{path}` is taken by the agent at {first}"));
        }
    }
}

fn of<'a, T>(key: &'static str, setting: &'a Setting<T>) -> (&'static str, &'a Source, bool) {
    (key, setting.source(), setting.is_set())
}
