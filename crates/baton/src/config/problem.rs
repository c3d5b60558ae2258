//! What is wrong with a configuration. All of it is gathered and told at once, each with its place.

use std::fmt;

use super::setting::{Place, Source};

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    place: Source,
    /// Empty where the file as a whole, a variable or a flag is meant.
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

    /// In the order of the layers, and of lines within a file.
    fn rank(&self) -> (usize, usize) {
        match &self.place {
            Source::Default => (0, 0),
            Source::File(place) => (1, place.line),
            Source::Variable(_) => (2, 0),
            Source::Flag(_) => (3, 0),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Source::Default => {}
            Source::File(place) if place.line == 0 => write!(f, "{}: ", place.file)?,
            Source::File(place) => write!(f, "{}, line {}: ", place.file, place.line)?,
            // Who typed it knows it by that name.
            Source::Variable(name) => return write!(f, "{name}: {}", self.text),
            Source::Flag(name) => return write!(f, "{name}: {}", self.text),
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)
    }
}

/// One or more problems, ready to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The value, unless something is wrong.
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

/// One on its own line, several as a list.
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

/// The known word that somebody most likely meant.
pub(crate) fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let distance = |word: &str| strsim::damerau_levenshtein(&typed, &word.to_ascii_lowercase());
    let (far, near) = known.into_iter().map(|word| (distance(word), word)).min()?;
    // A third of the letters may be wrong; more is another word.
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
