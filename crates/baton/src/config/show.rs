//! Prints the values in effect and their sources, as TOML with comments or as JSON. All values go through [`Shown`], so
//! secrets stay hidden.

use serde_json::{Map, Value as Json, json};

use super::setting::{Field, Section, Sections, Visit, join};
use super::value::Shown;

/// The column of comments after short values.
const COMMENT: usize = 40;

/// TOML that can be read again; `all` adds keys without a value as comments.
pub(crate) fn toml(section: &mut dyn Section, all: bool) -> String {
    let mut writer = Toml { out: String::new(), prefix: String::new(), head: String::new(), all };
    section.visit(&mut writer);
    writer.out
}

struct Toml {
    out: String,
    prefix: String,
    /// The header of a table, until its first key is printed.
    head: String,
    all: bool,
}

impl Toml {
    fn line(&mut self, text: &str, comment: &str) {
        self.out += &std::mem::take(&mut self.head);
        self.out += &format!("{text:COMMENT$}  # {comment}\n");
    }

    fn within(&mut self, name: &str, head: String, section: &mut dyn Section) {
        let inner = join(&self.prefix, name);
        let outer = std::mem::replace(&mut self.prefix, inner);
        self.head = head;
        section.visit(self);
        self.head.clear();
        self.prefix = outer;
    }
}

impl Visit for Toml {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        match field.show() {
            Shown::Absent if self.all => self.line(&format!("#{name} ="), "not set"),
            Shown::Absent => {}
            shown => self.line(&format!("{name} = {}", shown.toml()), &field.source().to_string()),
        }
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        if !section.is_there() {
            return;
        }
        let head = format!("\n[{}]\n", join(&self.prefix, name));
        self.within(name, head, section);
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        let head = format!("\n[[{}]]\n", join(&self.prefix, name));
        sections.each(&mut |_, section| self.within(name, head.clone(), section));
    }
}

/// Tables as objects, each value as `{"value": …, "source": "…"}`.
pub(crate) fn json(section: &mut dyn Section, all: bool) -> Json {
    let mut writer = Members { members: Map::new(), all };
    section.visit(&mut writer);
    Json::Object(writer.members)
}

struct Members {
    members: Map<String, Json>,
    all: bool,
}

impl Visit for Members {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        let shown = field.show();
        if self.all || shown != Shown::Absent {
            let entry = json!({"value": shown.json(), "source": field.source().to_string()});
            self.members.insert(name.to_owned(), entry);
        }
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        if !section.is_there() {
            return;
        }
        self.members.insert(name.to_owned(), json(section, self.all));
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        let mut items = Vec::new();
        sections.each(&mut |_, section| items.push(json(section, self.all)));
        self.members.insert(name.to_owned(), Json::Array(items));
    }
}
