//! What differs between two configurations, and which changes can be applied while serving.

use std::collections::{BTreeMap, BTreeSet};

use super::schema::Config;
use super::setting::{Comparable, Field, Section, Sections, Visit, join};

/// The keys that differ, items of lists by their id: `agent[weather].limits.max_body`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Applied immediately. Keys of an agent's card are not in this list: cards are compared as a whole, with their
    /// files.
    pub(crate) live: Vec<String>,
    /// Keys of `[auth]`: applied immediately if the cards declare the same schemes, else at the next start.
    pub(crate) auth: Vec<String>,
    /// Applied at the next start only.
    pub(crate) restart: Vec<String>,
}

pub(crate) fn between(old: &Config, new: &Config) -> Changes {
    let (old, new) = (Values::of(old), Values::of(new));
    // An added or removed agent is one change, not one per key.
    let whole: Vec<String> = old.items.symmetric_difference(&new.items).cloned().collect();
    let topmost = |path: &&String| !whole.iter().any(|other| is_under(path, other));
    let (auth, restart) = whole.iter().filter(topmost).cloned().partition(|path| is_under(path, "auth"));
    let mut changes = Changes { live: Vec::new(), auth, restart };

    let keys: BTreeSet<&String> = old.values.keys().chain(new.values.keys()).collect();
    for key in keys {
        let same =
            matches!((old.values.get(key), new.values.get(key)), (Some(old), Some(new)) if old.is(&**new));
        if same || whole.iter().any(|item| is_under(key, item)) {
            continue;
        }
        match effect(key) {
            Effect::Live => changes.live.push(key.clone()),
            Effect::OnTheCard | Effect::WithFiles => {}
            Effect::Auth => changes.auth.push(key.clone()),
            Effect::Restart => changes.restart.push(key.clone()),
        }
    }
    changes
}

fn is_under(path: &str, item: &str) -> bool {
    path.strip_prefix(item).is_some_and(|rest| rest.starts_with('.'))
}

enum Effect {
    Live,
    OnTheCard,
    Auth,
    /// Compared as a whole, with the files.
    WithFiles,
    Restart,
}

fn effect(path: &str) -> Effect {
    const OF_A_SKILL: &[&str] =
        &["name", "description", "tags", "examples", "input_modes", "output_modes", "require"];
    let path = match path.strip_prefix("agent[") {
        Some(rest) => rest.split_once("].").map_or("", |(_, rest)| rest),
        None => path,
    };
    match path.split_once('.') {
        Some(("limits" | "retention", _) | ("log", "requests")) => Effect::Live,
        Some(("card", "grpc")) => Effect::Restart,
        Some(("card", _) | ("auth", "require")) => Effect::OnTheCard,
        // The keys of the store are opened with it.
        Some(("auth", "api_key.max_keys")) => Effect::Restart,
        Some(("auth", _)) => Effect::Auth,
        None if path == "require" => Effect::OnTheCard,
        Some(("tls", key)) if !matches!(key, "hsts" | "self_signed") => Effect::WithFiles,
        Some(("signing", _)) => Effect::WithFiles,
        Some((table, key)) if table.starts_with("skill[") && OF_A_SKILL.contains(&key) => Effect::OnTheCard,
        _ => Effect::Restart,
    }
}

/// The values of a section by key, to be compared.
#[derive(Default)]
pub(super) struct Values {
    prefix: String,
    values: BTreeMap<String, Box<dyn Comparable>>,
    items: BTreeSet<String>,
}

impl Values {
    fn of(config: &Config) -> Self {
        Self::of_section(&mut config.clone())
    }

    pub(super) fn of_section(section: &mut dyn Section) -> Self {
        let mut values = Values::default();
        section.visit(&mut values);
        values
    }

    /// True if both have the same keys with the same values.
    pub(super) fn same_as(&self, other: &Values) -> bool {
        self.same_but_for(other, |_| false)
    }

    /// The same without the keys that are left out.
    pub(super) fn same_but_for(&self, other: &Values, is_left_out: impl Fn(&str) -> bool) -> bool {
        let same = |key: &&String| match (self.values.get(*key), other.values.get(*key)) {
            (Some(one), Some(other)) => one.is(&**other),
            _ => false,
        };
        let mut keys = self.values.keys().chain(other.values.keys()).filter(|key| !is_left_out(key));
        keys.all(|key| same(&key))
    }

    fn within(&mut self, prefix: String, section: &mut dyn Section) {
        let outer = std::mem::replace(&mut self.prefix, prefix);
        section.visit(self);
        self.prefix = outer;
    }
}

impl Visit for Values {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        self.values.insert(join(&self.prefix, name), field.value());
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        self.within(join(&self.prefix, name), section);
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        sections.each(&mut |index, section| {
            let label = section.label().unwrap_or_else(|| index.to_string());
            let item = join(&self.prefix, &format!("{name}[{label}]"));
            self.items.insert(item.clone());
            self.within(item, section);
        });
    }
}
