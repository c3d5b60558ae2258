//! Visitors that list all keys, or find one.

use super::setting::{Field, Section, Sections, Visit, join};

/// Lists every key; keys of list items come under the list's name: `skill.exec`. It adds an item to each list, so it
/// must visit a throw-away configuration.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    prefix: String,
    paths: Vec<String>,
}

impl Keys {
    pub(crate) fn into_paths(self) -> Vec<String> {
        self.paths
    }

    fn within(&mut self, name: &str, section: &mut dyn Section) {
        let inner = join(&self.prefix, name);
        let outer = std::mem::replace(&mut self.prefix, inner);
        section.visit(self);
        self.prefix = outer;
    }
}

impl Visit for Keys {
    fn field(&mut self, name: &'static str, _field: &mut dyn Field) {
        self.paths.push(join(&self.prefix, name));
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        self.within(name, section);
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        self.within(name, sections.add());
    }
}

/// Calls `act` with the field at a path; fields of list items have no path.
pub(crate) fn with_field(section: &mut dyn Section, path: &str, mut act: impl FnMut(&mut dyn Field)) {
    let mut found = false;
    section.visit(&mut At { path, act: &mut act, found: &mut found });
    debug_assert!(found, "no key {path}");
}

struct At<'a> {
    path: &'a str,
    act: &'a mut dyn FnMut(&mut dyn Field),
    found: &'a mut bool,
}

impl Visit for At<'_> {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        if name == self.path {
            *self.found = true;
            (self.act)(field);
        }
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        if let Some(path) = self.path.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
            section.visit(&mut At { path, act: self.act, found: self.found });
        }
    }

    fn list(&mut self, _name: &'static str, _sections: &mut dyn Sections) {}
}
