//! Mistakes in a configuration. All are collected and reported together, each with its place.

use std::fmt;

use super::setting::{Place, Source};

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    place: Source,
    /// Empty if the mistake concerns the whole file, a variable or a flag.
    key: String,
    text: String,
}

impl Problem {
    pub(crate) fn new(place: Source, key: impl Into<String>, text: impl Into<String>) -> Self {
        Problem { place, key: key.into(), text: text.into() }
    }

    pub(crate) fn in_file(place: Place, key: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Source::File(place), key, text)
    }

    /// Whether it is about a key of this table.
    fn is_about(&self, table: &str) -> bool {
        match &self.place {
            Source::Variable(name) => {
                let name = name.strip_prefix("BATON_").unwrap_or(name).to_ascii_lowercase();
                name.starts_with(table) || (table == "auth" && name == "api_key")
            }
            _ => self.key.split('.').next() == Some(table),
        }
    }

    /// Whether the file itself could not be read, or is not TOML.
    fn is_about_all_of(&self, file: Option<&str>) -> bool {
        self.key.is_empty()
            && match &self.place {
                Source::File(place) => Some(&*place.file) == file,
                Source::Flag(name) => *name == "--config",
                Source::Variable(name) => name == "BATON_CONFIG",
                Source::Default => false,
            }
    }

    /// Orders problems by layer, and by line within a file.
    fn rank(&self) -> (usize, usize) {
        match &self.place {
            Source::File(place) => (0, place.line),
            Source::Variable(_) => (1, 0),
            Source::Flag(_) => (2, 0),
            // Often a consequence of what is written elsewhere.
            Source::Default => (3, 0),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Source::Default => {}
            Source::File(place) if place.line == 0 => write!(f, "{}: ", place.file)?,
            Source::File(place) => write!(f, "{}, line {}: ", place.file, place.line)?,
            // The user knows the value by the name of the flag or variable.
            Source::Variable(name) => return write!(f, "{name}: {}", self.text),
            Source::Flag(name) => return write!(f, "{name}: {}", self.text),
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)
    }
}

/// One or more problems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Those about these tables, or about the whole file.
    pub(crate) fn only_of(mut self, tables: &[&str], file: Option<&str>) -> Self {
        self.0.retain(|problem| {
            problem.is_about_all_of(file) || tables.iter().any(|table| problem.is_about(table))
        });
        self
    }

    /// Whether any is about who may call. What then is wrong with cards and addresses may be a consequence.
    pub(crate) fn concern_auth(&self) -> bool {
        self.0.iter().any(|problem| problem.is_about("auth") || problem.key.ends_with(".require"))
    }

    /// The value, or the problems if there are any.
    pub(crate) fn unless_any<T>(mut self, value: T) -> Result<T, Problems> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(Problem::rank);
        Err(self)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Problem::to_string)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

/// One problem on one line, several as a list.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [only] => only.fmt(f),
            all => {
                write!(f, "{} problems with the configuration", all.len())?;
                all.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

/// The known word that is most similar.
pub(crate) fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let distance = |word: &str| strsim::damerau_levenshtein(&typed, &word.to_ascii_lowercase());
    let (far, near) = known.into_iter().map(|word| (distance(word), word)).min()?;
    // Up to a third of the letters may differ.
    let most = (typed.chars().count().max(near.chars().count()) / 3).max(1);
    (far <= most).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["max_body", "max_page", "default_page", "keep_alive"];
        for (typed, meant) in [
            ("max_bdy", Some("max_body")),
            ("max-body", Some("max_body")),
            ("MAX_BODY", Some("max_body")),
            ("defaultpage", Some("default_page")),
            ("keepalive", Some("keep_alive")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(did_you_mean(typed, known), meant, "{typed}");
        }
    }
}
