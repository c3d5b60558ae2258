//! `config.default.toml` says what is so.

use std::collections::BTreeSet;
use std::path::Path;

use super::{complaints, file, load};
use crate::config::keys::Keys;
use crate::config::schema::Config;
use crate::config::setting::{Field, Section, Sections, Source, Visit, join};
use crate::config::{DEFAULT_FILE, Problems, changes};

/// Lines that begin with `#` and a word, or a table's bracket, are keys that are not set by default.
fn with_examples() -> String {
    let live = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    DEFAULT_FILE.lines().map(live).collect()
}

#[test]
fn the_default_file_is_the_defaults() {
    let loaded = file(DEFAULT_FILE);
    let changes = changes(&Config::default(), &loaded.config);
    assert_eq!(changes, Default::default(), "the file says otherwise");
    assert_eq!(loaded.agents.len(), 1);
    assert!(loaded.agents[0].is_demo());
}

#[test]
fn the_default_file_has_every_key() {
    let mut known = Keys::default();
    Config::default().visit(&mut known);
    let known: BTreeSet<String> = known.into_paths().into_iter().collect();
    assert!(known.len() > 100, "the schema has shrunk, or nothing was visited");

    let mut config = Config::default();
    let mut problems = Problems::default();
    crate::config::file::read(&with_examples(), Path::new("f"), &mut config, &mut problems);
    assert_eq!(problems, Problems::default());
    let mut said = Said::default();
    config.visit(&mut said);
    assert_eq!(said.paths, known);
}

/// A file that is wrong in every line cannot pass for the default one.
#[test]
fn a_default_that_is_not_so_would_be_found() {
    let other = DEFAULT_FILE.replace("max_page = 100", "max_page = 99");
    let changes = changes(&Config::default(), &file(&other).config);
    assert_eq!(changes.live, ["limits.max_page"]);
    let typo = DEFAULT_FILE.replace("max_page = 100", "max_pag = 100");
    assert!(complaints(load(&typo, &[], &[])).contains("did you mean `max_page`?"));
}

/// Every key that the file said.
#[derive(Default)]
struct Said {
    prefix: String,
    paths: BTreeSet<String>,
}

impl Said {
    fn within(&mut self, name: &str, section: &mut dyn Section) {
        let inner = join(&self.prefix, name);
        let outer = std::mem::replace(&mut self.prefix, inner);
        section.visit(self);
        self.prefix = outer;
    }
}

impl Visit for Said {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        if matches!(field.source(), Source::File(_)) {
            self.paths.insert(join(&self.prefix, name));
        }
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        self.within(name, section);
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        sections.each(&mut |_, section| self.within(name, section));
    }
}
