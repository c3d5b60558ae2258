//! Markdown for a comment on a pull request: the verdict first, details collapsed.

use std::fmt::Write as _;

use super::text::harmless;
use super::{Group, Run, advice, curl, grouped, reason, rfc3339};
use crate::acts::document::Level;
use crate::case::{Category, Verdict};
use crate::fault::trial::UnderFaults;

/// Longest text of one table cell.
const MOST_IN_A_CELL: usize = 240;
/// Most groups of failures that get a block of their own; GitHub cuts comments at 65,536 characters.
const MOST_BLOCKS: usize = 25;

pub fn render(run: &Run) -> String {
    let summary = run.summary();
    let mut text = String::new();
    let steady = run.faults.as_ref().is_none_or(UnderFaults::holds);
    let mark = if run.counted_failures().next().is_none() && steady { "✅" } else { "❌" };
    let name = if run.agent.name.is_empty() { run.subject.word() } else { &run.agent.name };
    let mut say = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    say(format!("## {mark} A2A conformance of {}: **{}**\n", inline(name), summary.level_name()));
    say(format!("{}.", capital(&inline(&summary.why))));
    for remark in &summary.remarks {
        say(format!("- {}", inline(remark)));
    }
    if !summary.critical.is_empty() {
        say(format!(
            "\n> **Critical:** the agent stopped answering after {}.",
            inline(&summary.critical.join(", "))
        ));
    }
    say(format!(
        "\n{} {} {} at <{}> · {} · {} checks in {:.1} s · seed {}\n",
        capital(run.subject.word()),
        inline(name),
        inline(&run.agent.version),
        run.agent.url.replace(['<', '>', ' '], ""),
        rfc3339(run.began),
        summary.all.total,
        run.duration.as_secs_f32(),
        run.seed
    ));
    say("| Category | Passed | Failed | Skipped |\n|---|--:|--:|--:|".to_owned());
    for category in Category::ALL {
        let counts = summary.by_category.get(&category).copied().unwrap_or_default();
        if counts.total > 0 {
            let name = category.name();
            say(format!("| {name} | {} | {} | {} |", counts.passed, counts.failed, counts.skipped));
        }
    }
    for level in Level::ALL {
        let counts = summary.by_level.get(&level).copied().unwrap_or_default();
        if counts.total > 0 {
            let (name, passed) = (level.name(), counts.passed);
            say(format!("| **{name}** | {passed} | {} | {} |", counts.failed, counts.skipped));
        }
    }
    text += &failures(run);
    text += &run.faults.as_ref().map_or_else(String::new, super::faults::markdown);
    text += &skipped(run);
    text += &expected(run);
    text
}

fn failures(run: &Run) -> String {
    let mut text = String::new();
    let mut groups =
        grouped(run.outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_))));
    groups.sort_by_key(|group| group.first.case.level());
    if groups.is_empty() {
        return text;
    }
    text += "\n### Failed tests\n\n| Test | Level | Category | Where | Message | Recommendation |\n|---|---|---|---|---|---|\n";
    for group in &groups {
        let case = &group.first.case;
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            case.id(),
            case.level().name(),
            case.category.name(),
            group.places(),
            cell(reason(&group.first.verdict)),
            cell(&advice(case)),
        );
    }
    for group in groups.iter().take(MOST_BLOCKS) {
        text += &block(group);
    }
    if groups.len() > MOST_BLOCKS {
        let _ = writeln!(
            text,
            "\n… and {} more; the JSON and HTML reports hold them all.",
            groups.len() - MOST_BLOCKS
        );
    }
    text
}

fn block(group: &Group<'_>) -> String {
    let outcome = group.first;
    let mut text = format!(
        "\n<details><summary><code>{}</code> {}</summary>\n\n",
        outcome.case.id(),
        inline(&outcome.case.test.name)
    );
    let section = outcome.case.test.section.as_ref().map(|section| format!(" (section {section})"));
    let _ = writeln!(text, "{}{}\n", inline(outcome.case.requirement()), section.unwrap_or_default());
    if let Verdict::Fail(failure) = &outcome.verdict {
        for (name, part) in [("expected", &failure.expected), ("got", &failure.actual)] {
            if let Some(part) = part {
                let _ = writeln!(text, "{name}\n\n{}", fenced(part));
            }
        }
    }
    if let Some(line) = curl(outcome) {
        let _ = writeln!(text, "try it\n\n{}", fenced(&line));
    }
    if !outcome.case.corrections.is_empty() {
        let _ = writeln!(text, "corrections: {}\n", outcome.case.corrections.join(", "));
    }
    text + "</details>\n"
}

fn skipped(run: &Run) -> String {
    let is_skipped = |verdict: &Verdict| {
        matches!(verdict, Verdict::Skip(_) | Verdict::Inconclusive(_) | Verdict::Error(_))
    };
    let groups = grouped(run.outcomes.iter().filter(|outcome| is_skipped(&outcome.verdict)));
    if groups.is_empty() {
        return String::new();
    }
    let mut text =
        format!("\n<details><summary>{} not judged</summary>\n\n| Test | Why |\n|---|---|\n", groups.len());
    for group in &groups {
        let verdict = &group.first.verdict;
        let word =
            if matches!(verdict, Verdict::Skip(_)) { String::new() } else { format!("{}: ", verdict.word()) };
        let _ = writeln!(
            text,
            "| `{}` {} | {word}{} |",
            group.first.case.id(),
            group.places(),
            cell(reason(verdict))
        );
    }
    text + "\n</details>\n"
}

fn expected(run: &Run) -> String {
    let Some(compared) = &run.baseline else { return String::new() };
    let mut text = "\n### Against the baseline\n\n".to_owned();
    for (name, list) in [
        ("failed, and not listed", &compared.unexpected),
        ("listed, but passed: take it off the list", &compared.mended),
        ("failed as listed", &compared.expected),
        ("listed, but not run", &compared.unseen),
    ] {
        if !list.is_empty() {
            let _ = writeln!(text, "- {name}: {}", list.join(", "));
        }
    }
    text
}

/// One cell of a table.
pub(super) fn cell(text: &str) -> String {
    let mut short: String = text.chars().take(MOST_IN_A_CELL).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    inline(&short).replace('|', "\\|")
}

/// Escapes text, so that it is not read as markup; text between backticks stays code.
fn inline(text: &str) -> String {
    let one_line = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces: Vec<&str> = one_line.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return plain(&one_line).replace('`', "\\`");
    }
    let pieces = (0..).zip(pieces).map(|(index, piece): (usize, _)| match index % 2 {
        0 => plain(piece),
        _ => format!("`{piece}`"),
    });
    pieces.collect()
}

fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '*' | '_' | '[' | ']' | '\\' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            // On GitHub, `@name` would notify a person.
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

/// A code block with a fence that is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let lines: Vec<String> = text.lines().map(harmless).collect();
    format!("{fence}\n{}\n{fence}\n", lines.join("\n"))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
