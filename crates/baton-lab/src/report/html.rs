//! One HTML page: works offline, loads nothing, has a light and a dark theme, and contains all exchanges.
//!
//! It is complete without scripts; the script only filters and copies. All text from the agent is escaped with
//! `escaped`.

use std::fmt::Write as _;

use super::{Run, Subject, Summary, about, advice, curl, reason, rfc3339};
use crate::case::{Category, Outcome, Verdict};
use crate::wire::Exchange;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");
/// Longest reason in a closed row.
const MOST_IN_A_ROW: usize = 160;

pub fn render(run: &Run) -> String {
    let summary = run.summary();
    let name = if run.agent.name.is_empty() { &run.agent.url } else { &run.agent.name };
    let title = format!("A2A conformance of {name}");
    let mut body = String::new();
    body += &heading(run, &title, &summary);
    body += &tiles(run, &summary);
    body += &tables(run, &summary);
    body += &run.faults.as_ref().map_or_else(String::new, super::faults::html);
    body += &filters(run, &summary);
    for category in Category::ALL {
        body += &section(run, category, &summary);
    }
    body += "<p class=\"empty\" id=\"none\" hidden>No check fits this filter.</p>";
    let levels = match run.subject {
        Subject::Agent => {
            "<b>full</b> all checks pass; <b>partial</b> card and lifecycle are right, something else is not; \
             <b>minimal</b> the card is right and a task can be sent and read."
        }
        Subject::Client => {
            "<b>full</b> every rule that was seen is kept; <b>partial</b> every duty is, a recommendation is not."
        }
    };
    let _ = write!(
        body,
        "<footer>Made by baton {} on {} in {:.1} s, seed {}. The level: {levels}</footer>",
        escaped(&run.version),
        rfc3339(run.began),
        run.duration.as_secs_f32(),
        run.seed
    );
    page(&title, &body)
}

/// A complete page with its body.
pub(super) fn page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn heading(run: &Run, title: &str, summary: &Summary) -> String {
    let mut text = format!(
        "<header><div><h1>{}</h1><p>{} · <span class=\"mono\">{}</span></p></div><button id=\"theme\" type=\"button\">Light / dark</button></header>\n",
        escaped(title),
        escaped(&run.agent.version),
        escaped(&run.agent.url)
    );
    let class = summary.level.map_or("none", super::Conformance::name);
    let _ = write!(
        text,
        "<div class=\"level {class}\"><b>{}</b><p>{}.</p>",
        escaped(summary.level_name()),
        escaped(&capital(&summary.why))
    );
    if !summary.remarks.is_empty() || !run.warnings.is_empty() {
        text += "<ul>";
        for line in summary.remarks.iter().chain(&run.warnings) {
            let _ = write!(text, "<li>{}</li>", escaped(&capital(line)));
        }
        text += "</ul>";
    }
    text += "</div>\n";
    if !summary.critical.is_empty() {
        let list = escaped(&summary.critical.join(", "));
        let _ = writeln!(
            text,
            "<div class=\"critical\">Critical: the agent stopped answering after {list}.</div>"
        );
    }
    text
}

fn tiles(run: &Run, summary: &Summary) -> String {
    let warnings = run.outcomes.iter().filter(|outcome| kind(run, outcome) == "warn").count();
    let all = summary.all;
    let failed = all.failed - warnings;
    let mut text = "<div class=\"tiles\">".to_owned();
    for (count, name, class) in [
        (all.passed, "passed", "pass"),
        (failed, "failed", "fail"),
        (warnings, "recommendations missed", "warn"),
        (all.inconclusive + all.errors, "inconclusive", "warn"),
        (all.skipped - all.inconclusive - all.errors, "skipped", "none"),
    ] {
        let class = if count == 0 { "none" } else { class };
        let _ = write!(text, "<div class=\"tile {class}\"><b>{count}</b><span>{name}</span></div>");
    }
    text + "</div>\n"
}

fn tables(run: &Run, summary: &Summary) -> String {
    let mut text = "<h2>In numbers</h2><div class=\"scroll\"><table class=\"counts\"><tr><th></th><th>passed</th><th>failed</th><th>skipped</th><th class=\"picture\"></th></tr>".to_owned();
    let mut row = |class: &str, name: &str, counts: super::summary::Counts| {
        let share = |count: usize| 100.0 * count as f32 / counts.total.max(1) as f32;
        let _ = write!(
            text,
            "<tr class=\"{class}\"><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><div class=\"bar\"><i class=\"p\" style=\"width:{:.1}%\"></i><i class=\"f\" style=\"width:{:.1}%\"></i><i class=\"s\" style=\"width:{:.1}%\"></i></div></td></tr>",
            escaped(name),
            counts.passed,
            counts.failed,
            counts.skipped,
            share(counts.passed),
            share(counts.failed),
            share(counts.skipped)
        );
    };
    for (category, counts) in summary.by_category.iter().filter(|(_, counts)| counts.total > 0) {
        row("", &capital(&category.name().replace('-', " ")), *counts);
    }
    let mut class = "first";
    for (level, counts) in summary.by_level.iter().filter(|(_, counts)| counts.total > 0) {
        row(class, &level.name().to_uppercase(), *counts);
        class = "";
    }
    let mut class = "first";
    for ((generation, binding), counts) in &summary.by_interface {
        let url = run.agent.interfaces.get(&(*generation, *binding)).map_or("", String::as_str);
        row(class, format!("{generation} {}  {url}", binding.in_cards()).trim(), *counts);
        class = "";
    }
    text + "</table></div>\n"
}

fn filters(run: &Run, summary: &Summary) -> String {
    let count = |wanted: &str| run.outcomes.iter().filter(|outcome| kind(run, outcome) == wanted).count();
    let mut text = "<div class=\"filters\">".to_owned();
    let _ = write!(
        text,
        "<button type=\"button\" data-show=\"all\" aria-pressed=\"true\">All <span>{}</span></button>",
        run.outcomes.len()
    );
    for (name, label) in KINDS {
        let count = count(name);
        if count > 0 {
            let _ = write!(
                text,
                "<button type=\"button\" data-show=\"{name}\" aria-pressed=\"false\">{label} <span>{count}</span></button>"
            );
        }
    }
    text += "<select id=\"category\" aria-label=\"Category\"><option value=\"\">All categories</option>";
    for (category, _) in summary.by_category.iter().filter(|(_, counts)| counts.total > 0) {
        let _ = write!(text, "<option>{}</option>", category.name());
    }
    text +=
        "</select><select id=\"place\" aria-label=\"Interface\"><option value=\"\">All interfaces</option>";
    for (generation, binding) in summary.by_interface.keys() {
        let _ = write!(text, "<option>{generation} {binding}</option>");
    }
    text + "</select><input id=\"words\" type=\"search\" placeholder=\"Id, name, section …\" aria-label=\"Search\"></div>\n"
}

const KINDS: [(&str, &str); 6] = [
    ("fail", "Failed"),
    ("warn", "Missed"),
    ("error", "Errors"),
    ("inconclusive", "Inconclusive"),
    ("pass", "Passed"),
    ("skip", "Skipped"),
];

/// Distinguishes failures that count from those that do not.
fn kind(run: &Run, outcome: &Outcome) -> &'static str {
    match &outcome.verdict {
        Verdict::Fail(_) if !run.counts(outcome.case.level()) => "warn",
        verdict => verdict.word(),
    }
}

fn section(run: &Run, category: Category, summary: &Summary) -> String {
    let mut here: Vec<&Outcome> =
        run.outcomes.iter().filter(|outcome| outcome.case.category == category).collect();
    if here.is_empty() {
        return String::new();
    }
    // Failures come first; the rest stays in order.
    here.sort_by_key(|outcome| KINDS.iter().position(|(name, _)| *name == kind(run, outcome)));
    let counts = summary.by_category.get(&category).copied().unwrap_or_default();
    let name = capital(&category.name().replace('-', " "));
    let rows: String = here.into_iter().map(|outcome| case(run, outcome)).collect();
    format!("<section data-group><h2>{name} <small>{}</small></h2>\n{rows}</section>\n", counts.in_words())
}

fn case(run: &Run, outcome: &Outcome) -> String {
    let (case, kind) = (&outcome.case, kind(run, outcome));
    let test = &case.test;
    let place = format!("{} {}", case.generation, outcome.binding);
    let section = test.section.clone().unwrap_or_default();
    let words =
        [case.id(), &test.name, &section, &test.tags.join(" "), case.level().name()].join(" ").to_lowercase();
    let mut why = reason(&outcome.verdict).to_owned();
    if kind == "skip" || kind == "pass" {
        why.clear();
    }
    let why = if why.is_empty() {
        why
    } else {
        format!("<span class=\"why\">{}</span>", escaped(&super::text::cut(&why, Some(MOST_IN_A_ROW))))
    };
    let label = match kind {
        "inconclusive" => "open",
        "warn" => "missed",
        other => other,
    };
    let mut text = format!(
        "<details class=\"case\" id=\"{}\" data-verdict=\"{kind}\" data-category=\"{}\" data-place=\"{place}\" data-words=\"{}\">\
         <summary><span class=\"chip {kind}\">{label}</span><span class=\"id mono\">{}</span><span class=\"name\">{}{why}</span>\
         <span class=\"where\">{place} · {} · {:.2} s</span></summary>\n<div class=\"body\">",
        escaped(&format!("{}-{}-{}", case.id(), case.generation, outcome.binding)),
        case.category.name(),
        escaped(&words),
        escaped(case.id()),
        escaped(&test.name),
        case.level().name(),
        outcome.duration.as_secs_f32()
    );
    text += &facts(outcome);
    text += &found(outcome);
    if run.shows_evidence(outcome) {
        if let Some(line) = curl(outcome) {
            let _ = write!(
                text,
                "<span class=\"label\">Try it</span><div class=\"copy\"><pre>{}</pre><button type=\"button\" data-copy>Copy</button></div>",
                escaped(&line)
            );
        }
        text.extend(outcome.evidence.iter().map(exchange));
    }
    text + "</div></details>\n"
}

fn facts(outcome: &Outcome) -> String {
    let case = &outcome.case;
    let mut text = String::new();
    if case.requirement() != case.test.name {
        let _ = write!(text, "<p>{}</p>", escaped(case.requirement()));
    }
    if let Some(about) = about(case).filter(|about| about != case.requirement()) {
        let _ = write!(text, "<p>{}</p>", escaped(&about));
    }
    let mut facts = Vec::new();
    facts.extend(case.test.section.as_ref().map(|section| format!("section {section}")));
    if case.written_level != case.level() {
        facts.push(format!("the file says {}", case.written_level.name()));
    }
    if !case.corrections.is_empty() {
        facts.push(format!("corrected: {}", case.corrections.join(", ")));
    }
    facts.push(case.source.file.rsplit('/').next().unwrap_or_default().to_owned());
    let _ = write!(text, "<p class=\"facts\">{}</p>", escaped(&facts.join(" · ")));
    text.extend(outcome.notes.iter().map(|note| format!("<p class=\"facts\">Note: {}</p>", escaped(note))));
    text
}

fn found(outcome: &Outcome) -> String {
    let mut text = String::new();
    match &outcome.verdict {
        Verdict::Pass => {}
        Verdict::Fail(failure) => {
            let place: Vec<&str> =
                [failure.step.as_deref(), failure.path.as_deref()].into_iter().flatten().collect();
            if !place.is_empty() {
                let _ =
                    write!(text, "<p class=\"facts\">At <code>{}</code></p>", escaped(&place.join(" · ")));
            }
            match (&failure.expected, &failure.actual) {
                (Some(expected), Some(actual)) => {
                    let _ = write!(
                        text,
                        "<div class=\"pair\"><div class=\"want\"><b>Expected</b><pre>{}</pre></div><div class=\"got\"><b>Got</b><pre>{}</pre></div></div>",
                        escaped(expected),
                        escaped(actual)
                    );
                }
                _ => {
                    let _ = write!(text, "<p>{}</p>", escaped(&failure.message));
                }
            }
            if outcome.case.test.remedy.is_some() {
                let remedy = escaped(&advice(&outcome.case));
                let _ = write!(text, "<p class=\"remedy\"><b>What to do.</b> {remedy}</p>");
            }
        }
        other => {
            let _ = write!(text, "<p>{}</p>", escaped(&capital(reason(other))));
        }
    }
    text
}

pub(super) fn exchange(exchange: &Exchange) -> String {
    let sent = &exchange.sent;
    let answer = match (&exchange.received, &exchange.trouble) {
        (Some(received), _) => format!("HTTP {}", received.status),
        (None, Some(trouble)) => trouble.clone(),
        (None, None) => "no answer".to_owned(),
    };
    let headers = |headers: &[(String, String)]| -> String {
        headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    };
    let request = format!(
        "{} {}\n{}\n{}",
        sent.method,
        sent.url,
        headers(&sent.headers),
        pretty(sent.body.as_deref().unwrap_or_default())
    );
    let mut response = String::new();
    if let Some(received) = &exchange.received {
        response =
            format!("HTTP {}\n{}\n{}", received.status, headers(&received.headers), pretty(&received.body));
    }
    if let Some(trouble) = &exchange.trouble {
        let _ = write!(response, "\n({trouble})");
    }
    format!(
        "<details class=\"wire\"><summary>{} {} → {} · {} ms</summary><pre>{}</pre><pre>{}</pre></details>",
        escaped(&sent.method),
        escaped(&sent.url),
        escaped(&answer),
        exchange.duration_ms,
        escaped(request.trim_end()),
        escaped(response.trim())
    )
}

/// JSON with line breaks; anything else unchanged.
fn pretty(text: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.ok().and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| text.to_owned())
}

/// Escapes text for use in an element or an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML does not allow these characters, but an agent may send them.
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
