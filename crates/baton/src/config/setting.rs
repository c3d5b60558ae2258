//! One configured value with its source, and the visitor pattern for all of them: a section names its keys once, in
//! `visit`; reading, overriding, showing and comparing are visitors.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use toml::de::DeValue;

use super::value::{Refused, Shown, Value};

/// Where a value comes from. Later variants override earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(Place),
    /// An environment variable, by name.
    Variable(String),
    /// A flag, as typed: `--listen`.
    Flag(&'static str),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Arc<str>,
    /// From 1.
    pub(crate) line: usize,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(place) => write!(f, "{} line {}", place.file, place.line),
            Source::Variable(name) => f.write_str(name),
            Source::Flag(name) => f.write_str(name),
        }
    }
}

/// A value, its source, and its bounds.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    value: T,
    source: Source,
    least: Option<T>,
    most: Option<T>,
}

impl<T> Setting<T> {
    pub(crate) fn new(value: T) -> Self {
        Setting { value, source: Source::Default, least: None, most: None }
    }

    pub(crate) fn at_least(mut self, least: T) -> Self {
        self.least = Some(least);
        self
    }

    pub(crate) fn at_most(mut self, most: T) -> Self {
        self.most = Some(most);
        self
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn is_set(&self) -> bool {
        self.source != Source::Default
    }

    /// For values that are derived from others: an address with another port.
    pub(crate) fn replace(&mut self, value: T, source: Source) {
        self.value = value;
        self.source = source;
    }
}

impl<T: Default> Default for Setting<T> {
    fn default() -> Self {
        Setting::new(T::default())
    }
}

impl<T> Deref for Setting<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A setting of any type.
pub(crate) trait Field {
    /// Sets the value from a file; relative paths in it start at `folder`.
    fn accept_toml(&mut self, value: &DeValue<'_>, place: Place, folder: &Path) -> Result<(), Vec<Refused>>;

    /// Sets the value from a variable or a flag.
    fn accept_text(&mut self, text: &str, source: Source) -> Result<(), Vec<Refused>>;

    /// Whether it may be a secret.
    fn is_secret(&self) -> bool;

    /// The value for display: secrets are hidden.
    fn show(&self) -> Shown;

    fn source(&self) -> &Source;

    /// The value without its source, for comparing.
    fn value(&self) -> Box<dyn Comparable>;
}

/// A value that can only be compared with another.
pub(crate) trait Comparable: Send + Sync {
    fn is(&self, other: &dyn Comparable) -> bool;

    fn as_any(&self) -> &dyn Any;
}

impl<T: PartialEq + Send + Sync + 'static> Comparable for T {
    fn is(&self, other: &dyn Comparable) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<T: Value> Field for Setting<T> {
    fn accept_toml(&mut self, value: &DeValue<'_>, place: Place, folder: &Path) -> Result<(), Vec<Refused>> {
        let mut value = T::from_toml(value)?;
        self.within_bounds(&value)?;
        value.rebase(folder);
        self.replace(value, Source::File(place));
        Ok(())
    }

    fn accept_text(&mut self, text: &str, source: Source) -> Result<(), Vec<Refused>> {
        let value = T::from_text(text)?;
        self.within_bounds(&value)?;
        self.replace(value, source);
        Ok(())
    }

    fn is_secret(&self) -> bool {
        T::SECRET
    }

    fn show(&self) -> Shown {
        self.value.show()
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn value(&self) -> Box<dyn Comparable> {
        Box::new(self.value.clone())
    }
}

impl<T: Value> Setting<T> {
    fn within_bounds(&self, value: &T) -> Result<(), Vec<Refused>> {
        let low = self.least.as_ref().filter(|least| value < least).map(|least| ("at least", least));
        let high = self.most.as_ref().filter(|most| value > most).map(|most| ("at most", most));
        match low.or(high) {
            None => Ok(()),
            Some((word, bound)) => {
                let (bound, found) = (bound.show().toml(), value.show().toml());
                Err(vec![Refused::new(format!("expected {word} {bound}, not {found}"))])
            }
        }
    }
}

/// How the file has a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    /// The line where it begins; `None` if it was made from flags. A table may matter though no key in it is set.
    pub(crate) place: Option<Place>,
    /// Set on list items: a key in it was refused, so that key is not reported as missing, too.
    pub(crate) is_broken: bool,
}

impl Written {
    pub(crate) fn source(&self) -> Source {
        self.place.clone().map_or(Source::Default, Source::File)
    }
}

/// A table of the configuration.
pub(crate) trait Section {
    /// Passes every key to the visitor: fields first, then tables, then lists of tables, in the order that TOML
    /// requires.
    fn visit(&mut self, visit: &mut dyn Visit);

    /// The key for which the table's name alone is short: `store = "…"` sets `store.url`.
    fn short_for(&self) -> Option<&'static str> {
        None
    }

    /// Whether the table is in effect. Some tables are only if they are written, even if they are empty; such a one is not
    /// shown otherwise.
    fn is_there(&mut self) -> bool {
        true
    }

    /// The id of a list item, if it is set.
    fn label(&self) -> Option<String> {
        None
    }

    /// Where the file has it, for sections that have to know.
    fn written(&mut self) -> Option<&mut Written> {
        None
    }
}

/// A list of tables.
pub(crate) trait Sections {
    fn add(&mut self) -> &mut dyn Section;

    /// Whether `[name]` may stand for `[[name]]` if there is only one.
    fn may_be_one_table(&self) -> bool {
        false
    }

    fn each(&mut self, see: &mut dyn FnMut(usize, &mut dyn Section));

    /// An item that is not in the list, to look at its keys.
    fn sample(&self, see: &mut dyn FnMut(&mut dyn Section));
}

impl<T: Section + Default> Sections for Vec<T> {
    fn add(&mut self) -> &mut dyn Section {
        self.push(T::default());
        self.last_mut().expect("just pushed")
    }

    fn each(&mut self, see: &mut dyn FnMut(usize, &mut dyn Section)) {
        for (index, section) in self.iter_mut().enumerate() {
            see(index, section);
        }
    }

    fn sample(&self, see: &mut dyn FnMut(&mut dyn Section)) {
        see(&mut T::default());
    }
}

/// A list of tables that usually has one item, which can be written as a table: `[auth.jwt]`.
#[derive(Debug, Clone)]
pub(crate) struct OneOrMore<T>(Vec<T>);

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        OneOrMore(Vec::new())
    }
}

impl<T> Deref for OneOrMore<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Section + Default> Sections for OneOrMore<T> {
    fn add(&mut self) -> &mut dyn Section {
        self.0.add()
    }

    fn may_be_one_table(&self) -> bool {
        true
    }

    fn each(&mut self, see: &mut dyn FnMut(usize, &mut dyn Section)) {
        self.0.each(see);
    }

    fn sample(&self, see: &mut dyn FnMut(&mut dyn Section)) {
        self.0.sample(see);
    }
}

/// A visitor of all keys.
pub(crate) trait Visit {
    fn field(&mut self, name: &'static str, field: &mut dyn Field);
    fn table(&mut self, name: &'static str, section: &mut dyn Section);
    fn list(&mut self, name: &'static str, sections: &mut dyn Sections);
}

/// Joins `limits` and `max_body` to `limits.max_body`.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}
