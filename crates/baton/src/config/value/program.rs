//! How a program is started: files, command lines, environments.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::{Refused, Secret, Shown, Value, found, quoted};

impl Value for PathBuf {
    fn expected() -> String {
        "a path".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if text.is_empty() { Err(Self::refused(&quoted(text))) } else { Ok(PathBuf::from(text)) }
    }

    fn show(&self) -> Shown {
        Shown::text(self.display().to_string())
    }

    fn rebase(&mut self, folder: &Path) {
        *self = folder.join(&*self);
    }
}

/// A text is a line for the shell; a list is a program with its arguments.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) enum CommandLine {
    Shell(String),
    Program(Vec<String>),
}

impl Value for CommandLine {
    fn expected() -> String {
        "a line for the shell such as \"python3 greet.py\", or a list of a program and its arguments"
            .to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if text.trim().is_empty() || text.contains('\0') {
            return Err(Self::refused(&quoted(text)));
        }
        Ok(CommandLine::Shell(text.to_owned()))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let DeValue::Array(_) = value else {
            let text = value.as_str().ok_or_else(|| Self::refused(&found(value)))?;
            return Self::from_text(text);
        };
        let words = Vec::<String>::from_toml(value)?;
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(Self::refused("a list without a program"));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(Self::refused("one with a NUL in it"));
        }
        Ok(CommandLine::Program(words))
    }

    fn show(&self) -> Shown {
        match self {
            CommandLine::Shell(line) => Shown::text(line),
            CommandLine::Program(words) => words.show(),
        }
    }
}

/// Variables for a program. Only their names are shown, since any value may be a secret.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Environment(Vec<(String, Secret)>);

impl Environment {
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.reveal()))
    }
}

impl PartialOrd for Environment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Value for Environment {
    fn expected() -> String {
        "a table of texts such as { LANG = \"C\" }".to_owned()
    }

    fn from_text(_text: &str) -> Result<Self, Vec<Refused>> {
        Err(Self::refused("a text"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let table = value
            .as_table()
            .ok_or_else(|| Self::refused(&if value.is_str() { "a text".to_owned() } else { found(value) }))?;
        let (mut variables, mut refused) = (Vec::new(), Vec::new());
        for (name, value) in table.iter() {
            let name = name.get_ref();
            let well_named = !name.is_empty() && !name.contains(['=', '\0']);
            if name.starts_with("BATON_") {
                let text = format!("{}: names that start with BATON_ are the server's own", quoted(name));
                refused.push(Refused::new(text));
                continue;
            }
            match value.get_ref().as_str() {
                Some(text) if well_named && !text.contains('\0') => {
                    variables.push((name.clone().into_owned(), Secret::new(text)));
                }
                _ => refused
                    .push(Refused::new(format!("{}: expected a variable's name and a text", quoted(name)))),
            }
        }
        if refused.is_empty() { Ok(Environment(variables)) } else { Err(refused) }
    }

    fn show(&self) -> Shown {
        if self.0.is_empty() {
            return Shown::Absent;
        }
        Shown::Table(self.0.iter().map(|(name, _)| (name.clone(), Secret::show())).collect())
    }
}
