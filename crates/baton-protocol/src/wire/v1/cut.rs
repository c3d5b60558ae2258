//! Tasks of which less is shown than there is, for whoever has them as JSON already: what is left out is cut out of the
//! text, and nothing of it is read.

use memchr::memchr2;

use super::V1;
use crate::domain::Task;
use crate::operation::{HistoryLength, ListTasks};
use crate::wire::objects::{Artifacts, write_listed_task, write_page_end};
use crate::wire::write::Object;

/// A task's JSON with less of its history, from what [`write_task`](super::write_task) made of it. `None`: it was not
/// made by that.
pub fn cut_history(json: &[u8], history_length: HistoryLength) -> Option<Vec<u8>> {
    let cuts = Cuts::of(json, history_length)?;
    let mut out = Vec::with_capacity(json.len());
    cuts.write(&mut out, json, Artifacts::IfAny);
    Some(out)
}

/// Is this a status update, as this crate writes them, without a message? `false` where that is not certain.
pub fn status_says_nothing(json: &[u8]) -> bool {
    let mut scan = Scan { json, at: 0 };
    let mut read = || {
        scan.take(b"{\"statusUpdate\":{\"taskId\":")?;
        scan.string()?;
        scan.take(b",\"contextId\":")?;
        scan.string()?;
        scan.take(b",\"status\":{\"state\":")?;
        scan.string()?;
        // The message would stand before it.
        scan.take(b",\"timestamp\":")?;
        scan.string()?;
        // Nor is there metadata behind it.
        scan.take(b"}}}")
    };
    read().is_some()
}

/// A page being written, task by task.
#[derive(Debug)]
pub struct PageWriter {
    out: Vec<u8>,
    empty: bool,
    with_artifacts: bool,
    history_length: HistoryLength,
}

impl PageWriter {
    /// The answer to a call, with room for so many bytes.
    pub fn new(list: &ListTasks, room: usize) -> Self {
        let mut out = Vec::with_capacity(room);
        out.extend_from_slice(b"{\"tasks\":[");
        let ListTasks { include_artifacts, history_length, .. } = list;
        PageWriter { out, empty: true, with_artifacts: *include_artifacts, history_length: *history_length }
    }

    /// The next task.
    pub fn task(&mut self, mut task: Task) {
        self.comma();
        self.history_length.trim(&mut task.history);
        write_listed_task::<V1>(&mut self.out, &task, self.with_artifacts);
    }

    /// The next task, from what [`write_task`](super::write_task) made of it. `false`: it was not made by that, and
    /// nothing was written.
    pub fn stored(&mut self, json: &[u8]) -> bool {
        let Some(cuts) = Cuts::of(json, self.history_length) else { return false };
        self.comma();
        let artifacts = if self.with_artifacts { Artifacts::Always } else { Artifacts::Never };
        cuts.write(&mut self.out, json, artifacts);
        true
    }

    /// The whole page.
    pub fn end(mut self, next_page_token: &str, page_size: u32, total_size: u64) -> Vec<u8> {
        self.out.push(b']');
        let mut object = Object::resume(&mut self.out);
        write_page_end(&mut object, next_page_token, page_size, total_size);
        object.end();
        self.out
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
    }
}

const ARTIFACTS: &[u8] = b",\"artifacts\":";
const HISTORY: &[u8] = b",\"history\":";

/// Where a task's JSON may be cut.
struct Cuts {
    /// The end of `status`.
    status: usize,
    /// The end of `artifacts`; that of `status` without any.
    artifacts: usize,
    history: History,
}

enum History {
    /// As it is.
    All,
    /// From the message at `first` on.
    From {
        first: usize,
        end: usize,
    },
    None {
        end: usize,
    },
}

impl Cuts {
    fn of(json: &[u8], history_length: HistoryLength) -> Option<Self> {
        let mut scan = Scan { json, at: 0 };
        scan.take(b"{\"id\":")?;
        scan.string()?;
        scan.take(b",\"contextId\":")?;
        scan.string()?;
        scan.take(b",\"status\":")?;
        scan.nested()?;
        let status = scan.at;
        if scan.take(ARTIFACTS).is_some() {
            scan.nested()?;
        }
        let artifacts = scan.at;
        let history = match history_length {
            HistoryLength::All => History::All,
            HistoryLength::Last(most) => scan.history(most as usize)?,
        };
        Some(Cuts { status, artifacts, history })
    }

    /// Copies what is between the cuts.
    fn write(&self, out: &mut Vec<u8>, json: &[u8], artifacts: Artifacts) {
        let Cuts { status, artifacts: artifacts_end, history } = self;
        out.extend_from_slice(&json[..*status]);
        match artifacts {
            Artifacts::Always if status == artifacts_end => out.extend_from_slice(b",\"artifacts\":[]"),
            Artifacts::Always | Artifacts::IfAny => out.extend_from_slice(&json[*status..*artifacts_end]),
            Artifacts::Never => {}
        }
        let rest = match history {
            History::All => artifacts_end,
            History::From { first, end } => {
                out.extend_from_slice(HISTORY);
                out.push(b'[');
                out.extend_from_slice(&json[*first..*end]);
                end
            }
            History::None { end } => end,
        };
        out.extend_from_slice(&json[*rest..]);
    }
}

/// Walks over JSON without whitespace that is known to be well-formed.
struct Scan<'a> {
    json: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// Steps over what must stand here.
    fn take(&mut self, expected: &[u8]) -> Option<()> {
        self.json[self.at..].starts_with(expected).then(|| self.at += expected.len())
    }

    /// Steps over a string.
    fn string(&mut self) -> Option<()> {
        self.take(b"\"")?;
        self.rest_of_string()
    }

    /// Steps over a string whose first quotation mark is behind.
    fn rest_of_string(&mut self) -> Option<()> {
        loop {
            self.at += memchr2(b'"', b'\\', self.json.get(self.at..)?)? + 1;
            match self.json[self.at - 1] {
                b'"' => return Some(()),
                _ => self.at += 1,
            }
        }
    }

    /// Steps over an object or a list.
    fn nested(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            let byte = *self.json.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => self.rest_of_string()?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Steps over the history, of which so many messages are wanted.
    fn history(&mut self, most: usize) -> Option<History> {
        if self.take(HISTORY).is_none() {
            return Some(History::None { end: self.at });
        }
        self.take(b"[")?;
        let mut messages = vec![self.at];
        self.nested()?;
        while self.take(b",").is_some() {
            messages.push(self.at);
            self.nested()?;
        }
        self.take(b"]")?;
        let excess = messages.len().saturating_sub(most);
        Some(match messages.get(excess) {
            Some(first) => History::From { first: *first, end: self.at },
            None => History::None { end: self.at },
        })
    }
}
