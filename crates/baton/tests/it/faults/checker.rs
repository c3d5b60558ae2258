//! The rules: what clients were told, held against what the store holds. Nothing here does anything; a journal and a
//! store go in, and whatever is wrong comes out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::journal::Entry;
use super::stored::{Answer, Kind, Stored, StoredTask};

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// Every acknowledged message has its task (or its reply) in the store, and stands in that task's log.
    AckedIsStored,
    /// So does every message to a busy task, at the latest when the task has ended.
    NotedIsInLog,
    /// No message has two tasks, nor two replies.
    OneTaskPerMessage,
    /// A log is numbered from 1 up to its head's version without a gap, and folds.
    LogHasNoGap,
    /// A stream is the log, without what is internal, from where it began to where it was read.
    StreamIsTheLog,
    /// Attempts count 1, 2, 3…, and no two of them are there at once.
    AttemptsDoNotOverlap,
    /// An agent that is not re-runnable has one attempt for a message.
    OneAttemptUnlessRerunnable,
    /// A task ends once, and with its last event; the end that a client was told is the one.
    OneEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

/// What a run knows of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// Agents whose turns may be run again.
    pub(crate) rerunnable: &'a [&'a str],
    /// Is everything at rest? Then every task must have ended.
    pub(crate) settled: bool,
}

pub(crate) fn violations(journal: &[Entry], stored: &Stored, facts: Facts<'_>) -> Vec<Violation> {
    let mut found = Found(Vec::new());
    acknowledged(journal, stored, &mut found);
    one_task(journal, stored, &mut found);
    for (id, task) in &stored.tasks {
        log(id, task, facts, &mut found);
        attempts(id, task, facts, &mut found);
    }
    streams(journal, stored, &mut found);
    ends(journal, stored, &mut found);
    executions(journal, &mut found);
    found.0
}

struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, rule: Rule, what: impl Into<String>) {
        self.0.push(Violation { rule, what: what.into() });
    }
}

fn acknowledged(journal: &[Entry], stored: &Stored, found: &mut Found) {
    let records: HashMap<&str, &Answer> =
        stored.records.iter().map(|(message, answer)| (message.as_str(), answer)).collect();
    for entry in journal {
        match entry {
            Entry::Acked { message, task } | Entry::Noted { message, task } => {
                let noted = matches!(entry, Entry::Noted { .. });
                let placed = stored
                    .tasks
                    .get(task)
                    .is_some_and(|task| has_message(task, message) || noted && !has_ended(task));
                let on_record = records.get(message.as_str()) == Some(&&Answer::Task(task.clone()));
                if !stored.tasks.contains_key(task) {
                    found.add(Rule::AckedIsStored, format!("{message}: its task {task} is not in the store"));
                } else if !on_record {
                    found.add(
                        Rule::AckedIsStored,
                        format!("{message}: no record says that {task} is its task"),
                    );
                } else if !placed {
                    let rule = if noted { Rule::NotedIsInLog } else { Rule::AckedIsStored };
                    found.add(rule, format!("{message} is not in the log of {task}"));
                }
            }
            Entry::Replied { message, reply }
                if records.get(message.as_str()) != Some(&&Answer::Reply(reply.clone())) =>
            {
                found.add(Rule::AckedIsStored, format!("{message}: its reply {reply} is not in the store"));
            }
            _ => {}
        }
    }
}

fn has_message(task: &StoredTask, message: &str) -> bool {
    task.log.iter().any(|line| matches!(&line.kind, Kind::Message(id) if id == message))
}

fn has_ended(task: &StoredTask) -> bool {
    task.log.iter().any(|line| matches!(line.kind, Kind::Status { terminal: true, .. }))
}

fn one_task(journal: &[Entry], stored: &Stored, found: &mut Found) {
    let mut answers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for entry in journal {
        match entry {
            Entry::Acked { message, task: answer }
            | Entry::Noted { message, task: answer }
            | Entry::Replied { message, reply: answer } => {
                answers.entry(message).or_default().insert(answer);
            }
            _ => {}
        }
    }
    for (id, task) in &stored.tasks {
        let mut here = BTreeSet::new();
        for line in &task.log {
            if let Kind::Message(message) = &line.kind {
                answers.entry(message).or_default().insert(id);
                if !here.insert(message) {
                    found.add(Rule::OneTaskPerMessage, format!("{message} is twice in the log of {id}"));
                }
            }
        }
    }
    for (message, answers) in answers.iter().filter(|(_, answers)| answers.len() > 1) {
        found.add(Rule::OneTaskPerMessage, format!("{message} has {answers:?}"));
    }
}

fn log(id: &str, task: &StoredTask, facts: Facts<'_>, found: &mut Found) {
    let numbers = task.log.iter().map(|line| line.number);
    if !numbers.eq(1..=task.version) {
        let numbers: Vec<_> = task.log.iter().map(|line| line.number).collect();
        found.add(Rule::LogHasNoGap, format!("{id}: version {}, and numbers {numbers:?}", task.version));
    }
    if let Err(error) = &task.folded {
        found.add(Rule::LogHasNoGap, format!("{id} does not fold: {error}"));
    }
    // The times that clients see are those of states.
    let states: Vec<_> = task.log.iter().filter(|line| matches!(line.kind, Kind::Status { .. })).collect();
    if let Some(pair) = states.windows(2).find(|pair| pair[0].at > pair[1].at) {
        found
            .add(Rule::LogHasNoGap, format!("{id}: event {} is older than the state before", pair[1].number));
    }
    let ends: Vec<u64> = task
        .log
        .iter()
        .filter(|line| matches!(line.kind, Kind::Status { terminal: true, .. }))
        .map(|line| line.number)
        .collect();
    match ends[..] {
        [] if facts.settled => {
            found.add(Rule::OneEnd, format!("{id} has not ended: it is {:?}", task.folded));
        }
        [] => {}
        [only] if only == task.version => {}
        _ => found.add(Rule::OneEnd, format!("{id}: ends at {ends:?}, and its log at {}", task.version)),
    }
}

fn attempts(id: &str, task: &StoredTask, facts: Facts<'_>, found: &mut Found) {
    let rerunnable = facts.rerunnable.contains(&task.agent.as_str());
    let (mut last, mut for_message) = (0, 0);
    for line in &task.log {
        match line.kind {
            Kind::Message(_) => for_message = 0,
            Kind::Attempt(attempt) => {
                if attempt != last + 1 {
                    found.add(Rule::AttemptsDoNotOverlap, format!("{id}: attempt {attempt} follows {last}"));
                }
                last = attempt;
                for_message += 1;
                if for_message > 1 && !rerunnable {
                    let agent = &task.agent;
                    let what = format!("{id} of {agent}: attempt {attempt} runs the same message again");
                    found.add(Rule::OneAttemptUnlessRerunnable, what);
                }
            }
            _ => {}
        }
    }
}

struct Stream<'a> {
    task: &'a str,
    after: u64,
    seen: Vec<(u64, &'a str)>,
    closed: bool,
}

fn streams(journal: &[Entry], stored: &Stored, found: &mut Found) {
    let mut streams: BTreeMap<u64, Stream<'_>> = BTreeMap::new();
    for entry in journal {
        match entry {
            Entry::Opened { stream, task, after } => {
                streams.insert(*stream, Stream { task, after: *after, seen: Vec::new(), closed: false });
            }
            Entry::Seen { stream, number, json } => match streams.get_mut(stream) {
                Some(stream) => stream.seen.push((*number, json)),
                None => {
                    found.add(Rule::StreamIsTheLog, format!("stream {stream} shows {number} and is not open"))
                }
            },
            Entry::Closed { stream } => {
                if let Some(stream) = streams.get_mut(stream) {
                    stream.closed = true;
                }
            }
            _ => {}
        }
    }
    for (number, stream) in &streams {
        if let Some(what) = differs(stream, stored.tasks.get(stream.task)) {
            found.add(Rule::StreamIsTheLog, format!("stream {number} of {}: {what}", stream.task));
        }
    }
}

/// How a stream differs from its task's log.
fn differs(stream: &Stream<'_>, task: Option<&StoredTask>) -> Option<String> {
    let Some(task) = task else {
        return (!stream.seen.is_empty()).then(|| "it showed events of a task that is not there".to_owned());
    };
    let last = stream.seen.last().map_or(stream.after, |(number, _)| *number);
    let shown = task
        .log
        .iter()
        .filter(|line| line.number > stream.after && line.number <= last && !line.kind.is_internal());
    let shown: Vec<(u64, &str)> = shown.map(|line| (line.number, line.json.as_str())).collect();
    if shown != stream.seen {
        let numbers = |all: &[(u64, &str)]| all.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        let (showed, has) = (numbers(&stream.seen), numbers(&shown));
        let other = shown.iter().zip(&stream.seen).find(|(has, showed)| has != showed);
        return Some(format!("it showed {showed:?}, the log has {has:?}; first difference {other:?}"));
    }
    let end = task.log.iter().find(|line| line.number == last);
    if stream.closed && !end.is_some_and(|line| line.kind.closes()) {
        return Some(format!("it ended after {last}, which is no end"));
    }
    None
}

fn ends(journal: &[Entry], stored: &Stored, found: &mut Found) {
    for entry in journal {
        let Entry::Ended { task: id, state } = entry else { continue };
        let last = stored.tasks.get(id).and_then(|task| task.log.last());
        if !matches!(last, Some(line) if matches!(&line.kind, Kind::Status { state: is, .. } if is == state))
        {
            let kind = last.map(|line| &line.kind);
            found.add(Rule::OneEnd, format!("{id} was told to be {state}; the log ends with {kind:?}"));
        }
    }
}

/// What the agents themselves saw.
fn executions(journal: &[Entry], found: &mut Found) {
    let mut begun: BTreeSet<(&str, u32)> = BTreeSet::new();
    for entry in journal {
        match entry {
            Entry::Overlapped { task, attempt } => {
                let what = format!("{task}: attempt {attempt} began while another was there");
                found.add(Rule::AttemptsDoNotOverlap, what);
            }
            Entry::Began { task, attempt } if !begun.insert((task, *attempt)) => {
                found.add(Rule::AttemptsDoNotOverlap, format!("{task}: attempt {attempt} began twice"));
            }
            _ => {}
        }
    }
}
