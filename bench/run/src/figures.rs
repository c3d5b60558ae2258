//! The measured values of all rounds, by row, figure and server. The reported figure is their median.

use std::collections::BTreeMap;

use crate::subjects::Subject;

#[derive(Debug, Default)]
pub struct Figures {
    values: BTreeMap<(&'static str, &'static str, &'static str), Vec<f64>>,
    /// Why a server has no figures in a row.
    notes: Vec<(&'static str, Subject, String)>,
}

impl Figures {
    pub fn add(&mut self, row: &'static str, subject: &Subject, points: Vec<(&'static str, f64)>) {
        for (name, value) in points {
            self.values.entry((row, name, subject.name)).or_default().push(value);
        }
    }

    pub fn note(&mut self, row: &'static str, subject: Subject, reason: String) {
        if !self.notes.iter().any(|(known, about, _)| *known == row && *about == subject) {
            self.notes.push((row, subject, reason));
        }
    }

    pub fn notes<'a>(&'a self, row: &'a str) -> impl Iterator<Item = (&'a Subject, &'a str)> {
        self.notes
            .iter()
            .filter(move |(known, ..)| *known == row)
            .map(|(_, subject, why)| (subject, why.as_str()))
    }

    /// The rows that could not be measured on Baton.
    pub fn incomplete(&self) -> Vec<String> {
        let ours = self.notes.iter().filter(|(_, subject, _)| subject.kind == crate::subjects::Kind::Baton);
        ours.map(|(row, subject, why)| format!("{row} on {}: {why}", subject.name)).collect()
    }

    pub fn get(&self, row: &'static str, name: &'static str, subject: &Subject) -> Option<f64> {
        median(self.values.get(&(row, name, subject.name))?)
    }

    /// The largest value of all rounds, for figures that must always be 0.
    pub fn worst(&self, row: &'static str, name: &'static str, subject: &Subject) -> Option<f64> {
        self.values.get(&(row, name, subject.name))?.iter().copied().reduce(f64::max)
    }

    pub fn ratio(&self, row: &'static str, name: &'static str, of: &Subject, to: &Subject) -> Option<f64> {
        Some(self.get(row, name, of)? / self.get(row, name, to)?)
    }

    /// The server with the smallest figure.
    pub fn least<'a>(
        &self,
        row: &'static str,
        name: &'static str,
        among: &'a [Subject],
    ) -> Option<(&'a Subject, f64)> {
        let all = among.iter().filter_map(|subject| Some((subject, self.get(row, name, subject)?)));
        all.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The server with the largest figure.
    pub fn most<'a>(
        &self,
        row: &'static str,
        name: &'static str,
        among: &'a [Subject],
    ) -> Option<(&'a Subject, f64)> {
        let all = among.iter().filter_map(|subject| Some((subject, self.get(row, name, subject)?)));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.len() % 2) {
        (Some(upper), 0) => Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0),
        (middle, _) => middle.copied(),
    }
}

/// Three significant digits, with thousands separators.
pub fn shown(value: f64) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 && digit.is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    if rest.is_empty() { out } else { format!("{out}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(shown(1234567.8), "1,234,568");
        assert_eq!(shown(999.6), "1,000");
        assert_eq!(shown(12.345), "12.3");
        assert_eq!(shown(1.2345), "1.23");
        assert_eq!(shown(0.0), "0.00");
    }
}
