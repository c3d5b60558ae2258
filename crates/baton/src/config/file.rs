//! The file: TOML over the schema, with the line of everything that is wrong.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::keys::Keys;
use super::problem::{Problem, Problems, did_you_mean};
use super::schema::Config;
use super::setting::{Field, Place, Section, Sections, Visit, join};
use super::value::found;

/// More than anybody writes by hand.
const MOST_BYTES: u64 = 1024 * 1024;

/// Reads a file's text, within a bound.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    text_within(path, MOST_BYTES)
}

fn text_within(path: &Path, most: u64) -> Result<String, String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    // Counted while it is read: a pipe or a device has no size to ask for.
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("more than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: not UTF-8 text")
    })
}

/// Lays a file's text over the configuration. Relative paths in it start at the file's folder.
pub(crate) fn read(text: &str, path: &Path, into: &mut Config, problems: &mut Problems) {
    let lines = Lines::of(text, &path.display().to_string());
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut unquoted = None;
    for error in &errors {
        let place = lines.place(error.span().map_or(text.len(), |span| span.start));
        // The rest of such a line is the same mistake.
        if unquoted == Some(place.line) {
            continue;
        }
        let key = text.lines().nth(place.line - 1).and_then(without_quotes);
        let message = match key {
            Some(key) => format!("a text needs quotes: {key} = \"…\" ({})", error.message()),
            None => error.message().to_owned(),
        };
        unquoted = key.is_some().then_some(place.line);
        problems.add(Problem::in_file(place, "", message));
    }
    // What the parser made of the rest would only give rise to more complaints.
    if errors.is_empty() {
        let folder = path.parent().unwrap_or(Path::new(""));
        let context = Context { lines: &lines, folder, known: &Known::default() };
        fill(&context, "", document.get_ref(), into, problems);
    }
}

/// The key of a line whose value may be a text somebody did not quote. The value is not repeated: it may be a secret.
fn without_quotes(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=')?;
    let begins = value.trim_start().chars().next()?;
    (!"\"'[{#".contains(begins)).then(|| key.trim())
}

/// Every key of the schema, to find what somebody meant.
struct Known(Vec<String>);

impl Default for Known {
    fn default() -> Self {
        let mut keys = Keys::default();
        Config::default().visit(&mut keys);
        Known(keys.into_paths())
    }
}

impl Known {
    /// The key of that name in another place, the nearest to the top.
    fn elsewhere(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().filter(|path| path.rsplit('.').next() == Some(name));
        found.min_by_key(|path| path.matches('.').count()).map(String::as_str)
    }
}

struct Context<'a> {
    lines: &'a Lines,
    folder: &'a Path,
    known: &'a Known,
}

/// Where lines begin.
struct Lines {
    file: Arc<str>,
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str, name: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines { file: Arc::from(name), starts: ends.map(|(index, _)| index + 1).collect() }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset) + 1;
        Place { file: Arc::clone(&self.file), line }
    }
}

fn fill(
    context: &Context<'_>,
    prefix: &str,
    table: &DeTable<'_>,
    into: &mut dyn Section,
    problems: &mut Problems,
) {
    let mut reader = Reader { context, prefix, table, names: Vec::new(), problems };
    into.visit(&mut reader);
    reader.complain_of_the_unknown();
}

/// One table of the file, held against one section.
struct Reader<'a> {
    context: &'a Context<'a>,
    prefix: &'a str,
    table: &'a DeTable<'a>,
    /// The keys that the section has.
    names: Vec<&'static str>,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn refuse(&mut self, offset: usize, name: &str, text: String) {
        let place = self.context.lines.place(offset);
        self.problems.add(Problem::in_file(place, join(self.prefix, name), text));
    }

    fn complain_of_the_unknown(&mut self) {
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if self.names.contains(&name) {
                continue;
            }
            let near = did_you_mean(name, self.names.iter().copied());
            let text = match (near, self.context.known.elsewhere(name)) {
                (Some(near), _) => format!("unknown key; did you mean `{near}`?"),
                (None, Some(path)) if path.contains('.') => format!("unknown key; did you mean `{path}`?"),
                (None, Some(path)) => format!("unknown key here; `{path}` stands above all tables"),
                (None, None) => format!("unknown key; known here: {}", self.names.join(", ")),
            };
            self.refuse(key.span().start, name, text);
        }
    }

    fn take(&mut self, name: &str, start: usize, value: &DeValue<'_>, field: &mut dyn Field) {
        let place = self.context.lines.place(start);
        let Err(refused) = field.accept_toml(value, place, self.context.folder) else { return };
        for refused in refused {
            let (key, start) = match refused.item {
                Some((index, start)) => (format!("{name}[{index}]"), start),
                None => (name.to_owned(), start),
            };
            self.refuse(start, &key, refused.text);
        }
    }
}

impl Visit for Reader<'_> {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        self.names.push(name);
        if let Some((key, value)) = self.table.get_key_value(name) {
            self.take(name, key.span().start, value.get_ref(), field);
        }
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        self.names.push(name);
        let Some((key, value)) = self.table.get_key_value(name) else { return };
        let prefix = join(self.prefix, name);
        match (value.get_ref(), section.short_for()) {
            (DeValue::Table(table), _) => fill(self.context, &prefix, table, section, self.problems),
            (DeValue::Array(_), None) => {
                self.refuse(key.span().start, name, format!("expected a table, written [{prefix}]"));
            }
            (value, Some(short)) => {
                let mut only = Only {
                    name: short,
                    taken: &mut |field| {
                        self.take(name, key.span().start, value, field);
                    },
                };
                section.visit(&mut only);
            }
            (value, None) => {
                let text = format!("expected a table, written [{prefix}], not {}", found(value));
                self.refuse(key.span().start, name, text);
            }
        }
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        self.names.push(name);
        let Some((key, value)) = self.table.get_key_value(name) else { return };
        let prefix = join(self.prefix, name);
        let Some(items) = value.get_ref().as_array() else {
            let text = format!("expected a list of tables, each written [[{prefix}]]");
            return self.refuse(key.span().start, name, text);
        };
        for item in items.iter() {
            let start = item.span().start;
            match item.get_ref().as_table() {
                Some(table) => {
                    let section = sections.add();
                    section.placed(self.context.lines.place(start));
                    let before = self.problems.count();
                    fill(self.context, &prefix, table, section, self.problems);
                    if self.problems.count() > before {
                        section.broken();
                    }
                }
                None => {
                    let text =
                        format!("expected a table, written [[{prefix}]], not {}", found(item.get_ref()));
                    self.refuse(start, name, text);
                }
            }
        }
    }
}

/// Stops at one field of a section.
struct Only<'a> {
    name: &'static str,
    taken: &'a mut dyn FnMut(&mut dyn Field),
}

impl Visit for Only<'_> {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        if name == self.name {
            (self.taken)(field);
        }
    }

    fn table(&mut self, _name: &'static str, _section: &mut dyn Section) {}

    fn list(&mut self, _name: &'static str, _sections: &mut dyn Sections) {}
}
