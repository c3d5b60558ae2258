//! The report for a terminal: failures and what to do about them, then the counts, and the level last.

use std::fmt::Write as _;

use super::{Conformance, Group, Run, Subject, about, advice, curl, grouped, reason};
use crate::acts::document::Level;
use crate::case::{Category, Verdict};

/// Options of the text report.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub colour: bool,
    /// Columns of the terminal; longer values are cut, so that the terminal does not wrap them. `None` if it is not a
    /// terminal.
    pub width: Option<usize>,
    pub detail: Detail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Only the last lines.
    Quiet,
    /// Failures and counts.
    Normal,
    /// Also passed and skipped checks, and notes.
    Verbose,
}

pub fn render(run: &Run, style: &Style) -> String {
    let paint = Paint(style.colour);
    let mut text = String::new();
    if style.detail != Detail::Quiet {
        text += &heading(run, paint);
        if style.detail == Detail::Verbose {
            text += &all(run, style, paint);
        }
        text += &failures(run, style, paint);
        text += &not_judged(run, style, paint);
        text += &table(run, paint);
        text +=
            &run.faults.as_ref().map_or_else(String::new, |under| super::faults::text(under, style, paint));
    }
    text += &verdict(run, paint);
    text
}

fn heading(run: &Run, paint: Paint) -> String {
    let agent = harmless(&format!("{} {}", run.agent.name, run.agent.version));
    let interfaces = run.summary().by_interface;
    let places = interfaces.keys().map(|(generation, binding)| format!("{generation} {binding}"));
    let places: Vec<String> = places.collect();
    let mut text = format!("{}  {}\n", paint.bold(agent.trim()), paint.dim(&run.agent.url));
    let _ = writeln!(text, "{}", paint.dim(&format!("{} · seed {}", places.join(" · "), run.seed)));
    for warning in &run.warnings {
        let _ = writeln!(text, "{} {}", paint.yellow("warning:"), harmless(warning));
    }
    text + "\n"
}

fn all(run: &Run, style: &Style, paint: Paint) -> String {
    let mut text = String::new();
    for outcome in &run.outcomes {
        let word = paint.verdict(&outcome.verdict, &format!("{:<5}", short(&outcome.verdict)));
        let case = &outcome.case;
        let place = format!("{} {}", case.generation, outcome.binding);
        let line = format!("{:<20} {place:<12} {}", case.id(), case.test.name);
        let time = format!("{:.2} s", outcome.duration.as_secs_f32());
        let line = cut(&line, style.width.map(|width| width.saturating_sub(16)));
        let _ = writeln!(text, "{word} {line} {}", paint.dim(&time));
        for note in &outcome.notes {
            let _ = writeln!(text, "      {}", paint.dim(&format!("note: {}", harmless(note))));
        }
        if !case.corrections.is_empty() {
            let names = case.corrections.join(", ");
            let _ = writeln!(text, "      {}", paint.dim(&format!("corrected: {names}")));
        }
    }
    text + "\n"
}

fn failures(run: &Run, style: &Style, paint: Paint) -> String {
    let failed = run.outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_)));
    let mut groups = grouped(failed);
    groups.sort_by_key(|group| group.first.case.level());
    groups.iter().map(|group| failure(run, group, style, paint)).collect()
}

fn failure(run: &Run, group: &Group<'_>, style: &Style, paint: Paint) -> String {
    let (outcome, case) = (group.first, &group.first.case);
    let word = if run.is_counted_failure(outcome) { paint.red("FAIL") } else { paint.yellow("WARN") };
    let level = if case.written_level == case.level() {
        case.level().name().to_owned()
    } else {
        format!("{} (the file says {})", case.level().name(), case.written_level.name())
    };
    let mut facts = vec![group.places(), level, case.category.name().to_owned()];
    facts.extend(case.test.section.as_ref().map(|section| format!("section {section}")));
    let mut text = format!("{word}  {}  {}\n", paint.bold(case.id()), paint.dim(&facts.join(" · ")));
    let width = style.width.map(|width| width.saturating_sub(LABEL + 6));
    let mut say = |label: &str, value: &str| {
        for (index, line) in wrapped(value, width).into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let _ = writeln!(text, "      {}{line}", paint.dim(&format!("{label:<LABEL$}")));
        }
    };
    say("rule", case.requirement());
    if let Verdict::Fail(failure) = &outcome.verdict {
        let place = [failure.step.as_deref(), failure.path.as_deref()];
        let place: Vec<&str> = place.into_iter().flatten().collect();
        match (&failure.expected, &failure.actual) {
            (Some(expected), Some(actual)) => {
                if !place.is_empty() {
                    say("at", &place.join(" · "));
                }
                say("expected", expected);
                say("got", actual);
            }
            _ => say("found", &failure.message),
        }
    }
    match (&case.test.remedy, about(case)) {
        (Some(_), _) => say("remedy", &advice(case)),
        (None, Some(about)) => say("about", &about),
        (None, None) => {}
    }
    if !case.corrections.is_empty() {
        say("corrected", &case.corrections.join(", "));
    }
    if outcome.crashed {
        say("critical", "the agent did not answer any more after this");
    }
    if let Some(line) = curl(outcome) {
        // Never cut or wrapped, since it is meant to be copied.
        let label = if run.subject == Subject::Client { "sent" } else { "try" };
        let _ = writeln!(text, "      {}{}", paint.dim(&format!("{label:<LABEL$}")), harmless(&line));
    }
    text + "\n"
}

/// Width of the labels.
const LABEL: usize = 10;

/// Inconclusive cases and errors of the runner, one line each, since they are few.
fn not_judged(run: &Run, style: &Style, paint: Paint) -> String {
    let open = run
        .outcomes
        .iter()
        .filter(|outcome| matches!(outcome.verdict, Verdict::Inconclusive(_) | Verdict::Error(_)));
    let mut text = String::new();
    for group in grouped(open) {
        let verdict = &group.first.verdict;
        let word = paint.verdict(verdict, &format!("{:<4}", short(verdict)));
        let line = format!("{}  {}: {}", group.first.case.id(), group.places(), reason(verdict));
        let _ = writeln!(text, "{word}  {}", cut(&line, style.width.map(|width| width.saturating_sub(6))));
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn table(run: &Run, paint: Paint) -> String {
    let summary = run.summary();
    let mut text = paint.dim(&format!("{:<16}{:>6}{:>6}{:>6}", "", "pass", "fail", "skip")) + "\n";
    let number = |count: usize, colour: fn(Paint, &str) -> String| {
        let shown = format!("{count:>6}");
        if count == 0 { paint.dim(&shown) } else { colour(paint, &shown) }
    };
    for category in Category::ALL {
        let counts = summary.by_category.get(&category).copied().unwrap_or_default();
        if counts.total == 0 {
            continue;
        }
        let name = format!("{:<16}", category.name().replace('-', " "));
        let (passed, failed) = (number(counts.passed, Paint::green), number(counts.failed, Paint::red));
        let _ = writeln!(text, "{name}{passed}{failed}{}", number(counts.skipped, Paint::yellow));
    }
    text.push('\n');
    for level in Level::ALL {
        let counts = summary.by_level.get(&level).copied().unwrap_or_default();
        if counts.total > 0 {
            let name = level.name().to_uppercase();
            let _ = writeln!(text, "{name:<16}{}", counts.in_words());
        }
    }
    let why = skip_reasons(run);
    if !why.is_empty() {
        let _ = writeln!(text, "\nskipped, and why");
        for (count, reason) in why {
            let _ = writeln!(text, "{}", paint.dim(&format!("{count:>4}  {}", harmless(&reason))));
        }
    }
    text + "\n"
}

/// Reasons for skipping, the most frequent first.
fn skip_reasons(run: &Run) -> Vec<(usize, String)> {
    let mut reasons: Vec<(usize, String)> = Vec::new();
    for outcome in &run.outcomes {
        if let Verdict::Skip(reason) = &outcome.verdict {
            match reasons.iter_mut().find(|(_, known)| known == reason) {
                Some((count, _)) => *count += 1,
                None => reasons.push((1, reason.clone())),
            }
        }
    }
    reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    reasons
}

fn verdict(run: &Run, paint: Paint) -> String {
    let summary = run.summary();
    let mut text = String::new();
    if let Some(compared) = &run.baseline {
        let none = "none".to_owned();
        let list = |list: &[String]| if list.is_empty() { none.clone() } else { list.join(", ") };
        let _ = writeln!(text, "baseline: {} failed as listed", compared.expected.len());
        if !compared.unexpected.is_empty() {
            let _ = writeln!(text, "{} {}", paint.red("not listed, and failed:"), list(&compared.unexpected));
        }
        if !compared.mended.is_empty() {
            let _ = writeln!(text, "{} {}", paint.red("listed, but passed:"), list(&compared.mended));
        }
        if !compared.unseen.is_empty() {
            let _ = writeln!(text, "{} {}", paint.dim("listed, but not run:"), list(&compared.unseen));
        }
    }
    if !summary.critical.is_empty() {
        let _ = writeln!(
            text,
            "{} the agent stopped answering after {}",
            paint.red("critical:"),
            summary.critical.join(", ")
        );
    }
    let name = summary.level_name();
    let name = match summary.level {
        Some(Conformance::Full) => paint.green(name),
        Some(Conformance::Partial | Conformance::Minimal) => paint.yellow(name),
        Some(Conformance::NonConformant) => paint.red(name),
        None => paint.dim(name),
    };
    let numbers = summary.all.in_words();
    let _ = writeln!(text, "conformance: {name}, {}", summary.why);
    let _ = writeln!(text, "{}", paint.dim(&format!("{numbers} in {:.1} s", run.duration.as_secs_f32())));
    for remark in &summary.remarks {
        let _ = writeln!(text, "{}", paint.dim(&format!("note: {remark}")));
    }
    text
}

/// Removes escape sequences and characters that change the text direction, so that an agent's text cannot control the
/// terminal.
pub fn harmless(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if steers(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn short(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail(_) => "FAIL",
        Verdict::Skip(_) => "skip",
        Verdict::Inconclusive(_) => "open",
        Verdict::Error(_) => "ERR",
    }
}

/// Cuts text at a width, in characters.
pub fn cut(text: &str, width: Option<usize>) -> String {
    let text = &harmless(text);
    match width {
        Some(width) if text.chars().count() > width => {
            let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
            short.push('…');
            short
        }
        _ => text.to_owned(),
    }
}

/// Wraps text at spaces; very long values are cut.
fn wrapped(text: &str, width: Option<usize>) -> Vec<String> {
    const MOST_LINES: usize = 8;
    let text = &harmless(text);
    let Some(width) = width.filter(|width| *width >= 20) else { return vec![text.to_owned()] };
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let taken = line.chars().count() + usize::from(!line.is_empty());
            let room = width.saturating_sub(taken);
            if word.chars().count() <= room {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if line.is_empty() {
                let at = word.char_indices().nth(width).map_or(word.len(), |(at, _)| at);
                lines.push(word[..at].to_owned());
                word = &word[at..];
            } else {
                lines.push(std::mem::take(&mut line));
            }
        }
    }
    lines.push(line);
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push("…".to_owned());
    }
    lines
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint(pub bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn verdict(self, verdict: &Verdict, text: &str) -> String {
        match verdict {
            Verdict::Pass => self.green(text),
            Verdict::Fail(_) | Verdict::Error(_) => self.red(text),
            Verdict::Skip(_) => self.dim(text),
            Verdict::Inconclusive(_) => self.yellow(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces() {
        assert_eq!(wrapped("aaaa bbbb", None), ["aaaa bbbb"]);
        let text = "one two three four five six seven";
        assert_eq!(wrapped(text, Some(20)), ["one two three four", "five six seven"]);
        assert_eq!(wrapped(&"x".repeat(45), Some(20)), ["x".repeat(20), "x".repeat(20), "x".repeat(5)]);
        // A line that is full to the last column, and every other length.
        for length in 1..60 {
            let text = format!("{} {}", "x".repeat(length), "yy ".repeat(length));
            let lines = wrapped(&text, Some(20));
            assert!(lines.iter().all(|line| line.chars().count() <= 20), "{lines:?}");
        }
        assert_eq!(cut("abcdef", Some(4)), "abc…");
        assert_eq!(cut("a\x1b[31mb\u{202e}c", None), "a\u{fffd}[31mb\u{fffd}c");
    }
}
