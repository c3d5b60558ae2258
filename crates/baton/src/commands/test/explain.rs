//! `--list`, `--explain` and `--corrections`.

use std::fmt::Write as _;
use std::sync::Arc;

use baton_lab::acts::corrections;
use baton_lab::acts::document::Step;
use baton_lab::acts::reading;
use baton_lab::case::Case;
use baton_lab::generation::{Binding, Generation};
use baton_lab::judge::{Script, rules};
use baton_lab::report::{advice, text::Paint};
use baton_lab::target::Interface;
use baton_lab::wire::request::{self, Operation};
use baton_lab::wire::{Sent, curl};
use serde_json::{Value, json};

/// One line per case.
pub(super) fn list(cases: &[Arc<Case>], paint: Paint) -> String {
    let mut text = String::new();
    let width = cases.iter().map(|case| case.id().len()).max().unwrap_or(0).max(8);
    for case in cases {
        let section = case.test.section.as_deref().unwrap_or("-");
        let id = format!("{:<width$}", case.id());
        let facts = format!(
            "{:<4} {:<7} {:<15} {section:<9}",
            case.generation,
            case.level().name(),
            case.category.name()
        );
        let _ = writeln!(text, "{}  {}  {}", paint.bold(&id), paint.dim(&facts), case.test.name);
    }
    let _ = writeln!(text, "\n{} checks; --explain ID explains one", cases.len());
    text
}

/// What a case requires, why, and what it sends.
pub(super) fn explain(case: &Case, paint: Paint) -> String {
    let test = &case.test;
    let mut text = format!("{}  {}\n\n", paint.bold(case.id()), test.name);
    let mut say = |name: &str, value: String| {
        let _ = writeln!(text, "{} {value}", paint.dim(&format!("{name:<12}")));
    };
    say("rule", case.requirement().to_owned());
    if let Some(description) = test.description.as_ref().filter(|text| *text != case.requirement()) {
        say("about", description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let level = if case.written_level == case.level() {
        case.level().name().to_owned()
    } else {
        format!("{} (the file says {})", case.level().name(), case.written_level.name())
    };
    say("level", level);
    say("generation", case.generation.to_string());
    say("category", case.category.name().to_owned());
    if let Some(place) = test.section.as_ref().or(test.spec_ref.as_ref()) {
        say("section", place.clone());
    }
    say("file", case.source.file.clone());
    if !test.transport.is_empty() {
        say("bindings", test.transport.iter().map(|binding| binding.name()).collect::<Vec<_>>().join(", "));
    }
    let needs = needs(case);
    if !needs.is_empty() {
        say("needs", needs.join("; "));
    }
    if test.remedy.is_some() {
        say("remedy", advice(case));
    }
    if let Some(reason) = &test.off {
        say("off", reason.clone());
    }
    for correction in corrections::list().filter(|correction| case.corrections.contains(&correction.id)) {
        let Correction { id, kind, wrong, right } = Correction::of(correction);
        say("corrected", format!("{id} ({kind}): {wrong} → {right}"));
    }
    text.push('\n');
    text + &sent(case, paint)
}

struct Correction {
    id: &'static str,
    kind: &'static str,
    wrong: &'static str,
    right: &'static str,
}

impl Correction {
    fn of(found: &corrections::Correction) -> Self {
        Correction { id: found.id, kind: found.kind.name(), wrong: found.wrong, right: found.right }
    }
}

fn needs(case: &Case) -> Vec<String> {
    let test = &case.test;
    let mut needs = Vec::new();
    for (name, value) in &test.preconditions.capabilities {
        needs.push(format!("capabilities.{name} = {value}"));
    }
    needs.extend(test.preconditions.extensions.iter().map(|uri| format!("the extension {uri}")));
    needs.extend(test.requires_behaviors.iter().map(|prefix| format!("an agent that knows `{prefix}`")));
    needs.extend(test.runner_requirements.iter().map(|need| need.replace('_', " ")));
    needs
}

fn sent(case: &Case, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(rule) = rules::of_case(case.id()) {
        return judged(rule);
    }
    if let Some(name) = &case.test.native {
        let _ = writeln!(
            text,
            "A native check, `{name}`: written in Rust, since the document format cannot express it. To see what it sends:\n   \
             baton test URL --select {} --all-evidence --report sent.html",
            case.id()
        );
        if case.test.steps.is_empty() {
            return text;
        }
        let _ = writeln!(text, "\nThe file's own steps, which it stands for:\n");
    } else {
        let _ = writeln!(text, "What is sent, on JSON-RPC where there is a choice:\n");
    }
    for (number, step) in (1..).zip(&case.test.steps) {
        let id = step.id.clone().unwrap_or_else(|| format!("step-{number}"));
        let _ = writeln!(text, "{} {}", paint.bold(&format!("{number}.")), id);
        if let Some(line) = request_of(case, step) {
            let _ = writeln!(text, "   {line}");
        }
        for (name, value) in expectations(step) {
            let _ = writeln!(text, "   {} {value}", paint.dim(name));
        }
    }
    text
}

/// A rule for clients sends nothing: it judges the client's requests.
fn judged(rule: &rules::Rule) -> String {
    let mut text = "Judged from what a client sends to `baton test --as-server`".to_owned();
    if rule.needs_command {
        text += ", and from the exit code and output of its command (`-- COMMAND`)";
    }
    text += ".\n";
    match rule.scripts {
        [] => text += "Checked in every script.\n",
        names => {
            text += "Checked in these scripts:\n";
            for script in names.iter().filter_map(|name| Script::named(name)) {
                let _ = writeln!(text, "   {:<28} {}", script.name, script.about);
            }
        }
    }
    text
}

fn request_of(case: &Case, step: &Step) -> Option<String> {
    const AGENT: &str = "http://AGENT";
    let headers = |generation: Generation| request::version(generation).into_iter().collect();
    if let Some(raw) = &step.raw {
        let body = raw.body_raw.clone().or_else(|| raw.body.as_ref().map(Value::to_string));
        let headers = raw.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let url = format!("{AGENT}{}", raw.path);
        return Some(curl::line(&Sent { method: raw.method.clone(), url, headers, body }));
    }
    let params = step.params.clone().unwrap_or_else(|| json!({}));
    let (operation, params) = reading::read(case.generation, step.operation.as_deref()?, params)?;
    if operation == Operation::GetAgentCard {
        let url = format!("{AGENT}/.well-known/agent-card.json");
        let (method, headers) = ("GET".to_owned(), headers(case.generation));
        return Some(curl::line(&Sent { method, url, headers, body: None }));
    }
    let binding = case
        .test
        .transport
        .first()
        .copied()
        .filter(|only| *only == Binding::Rest)
        .unwrap_or(Binding::Jsonrpc);
    let interface = Interface { url: format!("{AGENT}/"), tenant: None };
    let built = request::operation(case.generation, binding, &interface, operation, &params).ok()?;
    let body = built.body.map(|body| String::from_utf8_lossy(&body).into_owned());
    Some(curl::line(&Sent { method: built.method, url: built.url, headers: built.headers, body }))
}

fn expectations(step: &Step) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    found.extend(step.expect.as_ref().map(|expect| ("expects", expect.to_string())));
    found.extend(step.expect_error.as_ref().map(|error| ("expects the error", error.to_string())));
    if let Some(stream) = &step.expect_stream {
        let members = [
            stream.min_count.map(|count| format!("at least {count} events")),
            stream.max_count.map(|count| format!("at most {count} events")),
            stream.ordering.clone(),
            stream.final_event.as_ref().map(|event| format!("the last like {event}")),
            stream.each_event.as_ref().map(|event| format!("each like {event}")),
        ];
        let mut members: Vec<String> = members.into_iter().flatten().collect();
        members.extend(stream.events.iter().map(|event| Value::Object(event.clone()).to_string()));
        found.push(("expects a stream", members.join(", ")));
    }
    if let Some(repeat) = &step.repeat {
        found.push(("until", format!("{}, {} times at most", repeat.until, repeat.max_attempts)));
    }
    found
        .extend(step.expect_parsed.as_ref().map(|parsed| ("expects the client to read", parsed.to_string())));
    found
}

/// The corrections to the official files.
pub(super) fn corrections(paint: Paint) -> String {
    let mut text = "Mistakes in the ACTS draft and its official files, and their corrections. A correction applies only where its\n\
                    mistake is found; --no-corrections runs files as written (notes describe how files are read, and\n\
                    always apply).\n\n"
        .to_owned();
    for correction in corrections::list() {
        let tests = correction.tests.iter().filter(|test| **test != correction.id);
        let tests = tests.copied().collect::<Vec<_>>().join(" ");
        let id = format!("{:<18}", correction.id);
        let facts = format!("{:<7} {tests}", correction.kind.name());
        let _ = writeln!(text, "{} {}", paint.bold(&id), paint.dim(facts.trim_end()));
        let _ = writeln!(text, "    {}\n    → {}", correction.wrong, correction.right);
    }
    text
}
