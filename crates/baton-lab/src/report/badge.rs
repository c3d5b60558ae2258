//! A badge for a README: what was tested, and the level.

use super::{Conformance, Run, html::escaped};

/// The approximate width of a letter in the usual font.
const LETTER: usize = 7;
const PADDING: usize = 10;

pub fn render(run: &Run) -> String {
    let summary = run.summary();
    let generations: Vec<&str> = {
        let mut all: Vec<_> = summary.by_interface.keys().map(|(generation, _)| *generation).collect();
        all.dedup();
        all.into_iter().map(crate::generation::Generation::version).collect()
    };
    let label = format!("A2A {}", generations.join(" · "));
    let label = label.trim();
    let value = summary.level_name();
    let colour = match summary.level {
        Some(Conformance::Full) => "#1a7f4b",
        Some(Conformance::Partial) => "#8a6d00",
        Some(Conformance::Minimal) => "#b35309",
        Some(Conformance::NonConformant) => "#b3261e",
        None => "#6b7280",
    };
    let (left, right) = (width(label), width(value));
    let whole = left + right;
    let (label, value) = (escaped(label), escaped(value));
    let (middle_left, middle_right) = (left / 2, left + right / 2);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{label}: {value}">
<title>{label}: {value}</title>
<clipPath id="r"><rect width="{whole}" height="20" rx="4"/></clipPath>
<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#3b4252"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{middle_left}" y="14">{label}</text><text x="{middle_right}" y="14">{value}</text></g>
</svg>
"##
    )
}

fn width(text: &str) -> usize {
    text.chars().count() * LETTER + 2 * PADDING
}
