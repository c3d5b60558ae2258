//! The configuration file: applies TOML to the schema, and reports every mistake with its line.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::keys::Keys;
use super::problem::{Problem, Problems, did_you_mean};
use super::schema::Config;
use super::setting::{Field, Place, Section, Sections, Visit, join};
use super::value::{found, kind};

/// Larger than any file written by hand.
const MOST_BYTES: u64 = 1024 * 1024;

/// Reads a file's text, up to a limit.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    text_within(path, MOST_BYTES)
}

fn text_within(path: &Path, most: u64) -> Result<String, String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    // Limited while reading, since pipes and devices do not report a size.
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

/// Applies a file's text to the configuration. Relative paths in it start at the file's folder.
pub(crate) fn read(text: &str, path: &Path, into: &mut Config, problems: &mut Problems) {
    let lines = Lines::of(text, &path.display().to_string());
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut unquoted = None;
    for error in &errors {
        let place = lines.place(error.span().map_or(text.len(), |span| span.start));
        // Further errors on the same line come from the same mistake.
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
    // After a syntax error, checking the rest would only cause misleading errors.
    if errors.is_empty() {
        let folder = path.parent().unwrap_or(Path::new(""));
        let context = Context { lines: &lines, folder, known: &Known::default() };
        fill(&context, "", document.get_ref(), into, problems);
    }
}

/// The key of a line whose value looks like text without quotes. The value may be a secret and is not shown.
fn without_quotes(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=')?;
    let begins = value.trim_start().chars().next()?;
    (!"\"'[{#".contains(begins)).then(|| key.trim())
}

/// Every key of the schema, for suggestions.
struct Known(Vec<String>);

impl Default for Known {
    fn default() -> Self {
        let mut keys = Keys::default();
        Config::default().visit(&mut keys);
        Known(keys.into_paths())
    }
}

impl Known {
    /// A key of that name in another table, the one nearest to the top level.
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
    reader.report_unknown_keys();
}

/// Applies one table of the file to one section.
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

    fn report_unknown_keys(&mut self) {
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

    /// Reads an item of a list.
    fn item(&mut self, prefix: &str, start: usize, table: &DeTable<'_>, section: &mut dyn Section) {
        if let Some(written) = section.written() {
            written.place = Some(self.context.lines.place(start));
        }
        let before = self.problems.count();
        fill(self.context, prefix, table, section, self.problems);
        if self.problems.count() > before
            && let Some(written) = section.written()
        {
            written.is_broken = true;
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
            (DeValue::Table(table), _) => {
                if let Some(written) = section.written() {
                    written.place = Some(self.context.lines.place(key.span().start));
                }
                fill(self.context, &prefix, table, section, self.problems);
            }
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
                let text = format!("expected a table, written [{prefix}], not {}", shown(value, section));
                self.refuse(key.span().start, name, text);
            }
        }
    }

    fn list(&mut self, name: &'static str, sections: &mut dyn Sections) {
        self.names.push(name);
        let Some((key, value)) = self.table.get_key_value(name) else { return };
        let prefix = join(self.prefix, name);
        let items = match value.get_ref() {
            DeValue::Array(items) => items,
            DeValue::Table(only) if sections.may_be_one_table() => {
                return self.item(&prefix, key.span().start, only, sections.add());
            }
            _ => {
                let text = format!("expected a list of tables, each written [[{prefix}]]");
                return self.refuse(key.span().start, name, text);
            }
        };
        for item in items.iter() {
            let start = item.span().start;
            match item.get_ref().as_table() {
                Some(table) => self.item(&prefix, start, table, sections.add()),
                None => {
                    let mut found = String::new();
                    sections.sample(&mut |section| found = shown(item.get_ref(), section));
                    let text = format!("expected a table, written [[{prefix}]], not {found}");
                    self.refuse(start, name, text);
                }
            }
        }
    }
}

/// What stands in the place of a table, for an error. Who writes `api_key = "…"` means the secret in that table, so it is
/// not repeated if the table has one.
fn shown(value: &DeValue<'_>, instead: &mut dyn Section) -> String {
    let mut secrets = Secrets { found: false };
    instead.visit(&mut secrets);
    if secrets.found { kind(value).to_owned() } else { found(value) }
}

/// Looks for a secret among the keys of a section and its tables.
struct Secrets {
    found: bool,
}

impl Visit for Secrets {
    fn field(&mut self, _name: &'static str, field: &mut dyn Field) {
        self.found |= field.is_secret();
    }

    fn table(&mut self, _name: &'static str, section: &mut dyn Section) {
        section.visit(self);
    }

    fn list(&mut self, _name: &'static str, sections: &mut dyn Sections) {
        sections.sample(&mut |section| section.visit(self));
    }
}

/// Visits one field of a section.
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
