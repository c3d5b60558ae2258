//! Flags override all other layers.

use super::keys::with_field;
use super::problem::{Problem, Problems};
use super::schema::Config;
use super::setting::Source;

/// A flag that stands for a key.
#[derive(Debug, Clone)]
pub(crate) struct Flag {
    /// As typed: `--listen`.
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) text: String,
}

pub(crate) fn overlay(flags: &[Flag], into: &mut Config, problems: &mut Problems) {
    for flag in flags {
        with_field(into, flag.key, |field| {
            let source = Source::Flag(flag.name);
            for refused in field.accept_text(&flag.text, source.clone()).err().into_iter().flatten() {
                problems.add(Problem::new(source.clone(), flag.key, refused.text));
            }
        });
    }
}
