//! System calls of a server, as strace tells them: what was written where, when it was synced, what was said to whom.
//!
//! strace stops a thread at every call and lets it go on only after it has noted it. So the order of its lines is one
//! that really happened wherever it matters: if a sync is told before an answer, it was over before the answer began.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use baton_protocol::wire::sse::SseParser;
use serde_json::Value;

use super::journal::Entry;
use crate::served::Served;

const CALLS: &str = "trace=openat,mkdir,mkdirat,pwrite64,write,writev,sendto,sendmsg,lseek,ftruncate,fsync,fdatasync,\
                     unlink,unlinkat,rename,renameat,renameat2";

/// A server under strace. strace does not pass a kill on, so the server itself is killed, whatever happens.
pub(crate) struct Traced {
    pub(crate) served: Served,
    server: u32,
}

impl Traced {
    pub(crate) fn start(command: &Command, into: &Path) -> Self {
        let mut traced = Command::new("strace");
        // All strings in hexadecimal, files by name.
        traced.args(["-f", "-qq", "-y", "-xx", "-s", "16777216", "-e", CALLS, "-o"]).arg(into);
        traced.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => traced.env(name, value),
                None => traced.env_remove(name),
            };
        }
        let served = Served::of(&mut traced);
        let strace = served.pid();
        let children = fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap();
        Traced { served, server: children.trim().parse().expect("strace runs one program") }
    }

    /// Ends it, and waits until all is written down.
    pub(crate) async fn kill(mut self) {
        kill(self.server);
        while !self.served.is_gone() {
            tokio::time::sleep(Duration::from_millis(1)).await; // tidy: allow-sleep polling a process
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if std::thread::panicking() {
            kill(self.server);
        }
    }
}

fn kill(process: u32) {
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
}

/// One call. `begin` and `end` are places in the order of things.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) begin: usize,
    /// None: it was not over when the process died, and nobody can tell what it did.
    pub(crate) end: Option<usize>,
    pub(crate) what: What,
}

impl Call {
    /// It was under way when the process died, and the kernel may have done it all the same, or a part: then the next
    /// process found it done, and a later sync is one of it, too. `false`: nothing came of it.
    fn came_to(&mut self, death: usize) -> bool {
        let done = match &mut self.what {
            What::Wrote { path, at, data } => {
                let content = fs::read(path).unwrap_or_default();
                let there = content.get(*at as usize..).unwrap_or_default();
                data.truncate(data.iter().zip(there).take_while(|(wanted, found)| wanted == found).count());
                !data.is_empty()
            }
            What::Cut { path, length } => fs::metadata(path).is_ok_and(|file| file.len() == *length),
            What::Opened { path } | What::Folder { path } => path.exists(),
            What::Removed { path } => !path.exists(),
            What::Synced { .. } => false,
            // Its client may have read it.
            What::Said { .. } => true,
        };
        self.end = self.end.or(done.then_some(death));
        done
    }
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A file may have come to be.
    Opened {
        path: PathBuf,
    },
    Folder {
        path: PathBuf,
    },
    Wrote {
        path: PathBuf,
        at: u64,
        data: Vec<u8>,
    },
    Cut {
        path: PathBuf,
        length: u64,
    },
    Synced {
        path: PathBuf,
    },
    Removed {
        path: PathBuf,
    },
    Said {
        socket: String,
        data: Vec<u8>,
    },
}

/// Calls that touch a folder, or a socket.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) calls: Vec<Call>,
    lines: usize,
}

impl Trace {
    /// Reads one process's life, behind those read before. It has ended just now: what was under way then is looked up in
    /// the files.
    pub(crate) fn add(&mut self, text: &str, root: &Path) {
        let mut pending: HashMap<&str, (usize, String)> = HashMap::new();
        let mut places: HashMap<PathBuf, u64> = HashMap::new();
        for line in text.lines() {
            self.lines += 1;
            let Some((thread, rest)) = line.split_once(' ') else { continue };
            let rest = rest.trim_start();
            if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
                pending.insert(thread, (self.lines, begun.trim_end().to_owned()));
                continue;
            }
            let (begin, call) = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
            {
                Some((_, over)) => {
                    let Some((begin, begun)) = pending.remove(thread) else { continue };
                    (begin, begun + over)
                }
                None => (self.lines, rest.to_owned()),
            };
            self.note(&call, begin, Some(self.lines), root, &mut places);
        }
        for (begin, call) in pending.into_values() {
            self.note(&call, begin, None, root, &mut places);
        }
        self.lines += 1;
        self.calls.retain_mut(|call| call.end.is_some() || call.came_to(self.lines));
        self.calls.sort_by_key(|call| call.begin);
        self.lines += 1;
    }

    fn note(
        &mut self,
        call: &str,
        begin: usize,
        end: Option<usize>,
        root: &Path,
        places: &mut HashMap<PathBuf, u64>,
    ) {
        let Some((name, arguments)) = call.split_once('(') else { return };
        let result = call.rsplit_once(" = ").map(|(_, result)| result);
        if result.is_some_and(|result| result.starts_with('-')) {
            return;
        }
        // So it is told, too, when a process dies meanwhile.
        let end = end.filter(|_| !result.is_some_and(|result| result.starts_with('?')));
        let file = || subject(arguments).map(PathBuf::from).filter(|path| path.starts_with(root));
        let named = || {
            strings(arguments).pop().and_then(text).map(PathBuf::from).filter(|path| path.starts_with(root))
        };
        let length = |whole: usize| result.and_then(number).map_or(whole, |done| whole.min(done as usize));
        let what = match name {
            "openat" => result
                .and_then(subject)
                .map(PathBuf::from)
                .filter(|path| path.starts_with(root))
                .map(|path| What::Opened { path }),
            "mkdir" | "mkdirat" => named().map(|path| What::Folder { path }),
            "unlink" | "unlinkat" => named().map(|path| What::Removed { path }),
            "rename" | "renameat" | "renameat2" => {
                assert!(named().is_none(), "the model knows no renaming: {call}");
                None
            }
            "fsync" | "fdatasync" => file().map(|path| What::Synced { path }),
            "ftruncate" => {
                let length = last_number(arguments);
                file().map(|path| What::Cut { path, length: length.expect("ftruncate has a length") })
            }
            "lseek" => {
                if let (Some(path), Some(place)) = (file(), result.and_then(number)) {
                    places.insert(path, place);
                }
                None
            }
            "pwrite64" => file().map(|path| {
                let mut data = strings(arguments).concat();
                data.truncate(length(data.len()));
                What::Wrote {
                    path,
                    at: last_number(arguments)
                        .unwrap_or_else(|| panic!("no place: …{}", &call[call.len().saturating_sub(200)..])),
                    data,
                }
            }),
            "write" | "writev" | "sendto" | "sendmsg" => {
                let mut data = strings(arguments).concat();
                data.truncate(length(data.len()));
                let subject = subject(arguments).unwrap_or_default();
                if let Some(path) = file() {
                    let place = places.entry(path.clone()).or_default();
                    let at = *place;
                    *place += data.len() as u64;
                    Some(What::Wrote { path, at, data })
                } else {
                    subject.starts_with("socket:").then_some(What::Said { socket: subject, data })
                }
            }
            _ => None,
        };
        if let Some(what) = what {
            self.calls.push(Call { begin, end, what });
        }
    }

    pub(crate) fn end(&self) -> usize {
        self.lines
    }

    /// What clients were told, and from which place on they could know.
    pub(crate) fn told(&self) -> Vec<(usize, Entry)> {
        let (mut sockets, mut told): (HashMap<&str, Connection>, Vec<_>) = (HashMap::new(), Vec::new());
        let mut streams = 0;
        for call in &self.calls {
            if let What::Said { socket, data } = &call.what {
                let connection = sockets.entry(socket).or_default();
                connection.unread.extend_from_slice(data);
                for entry in connection.read(&mut streams) {
                    told.push((call.begin, entry));
                }
            }
        }
        told
    }
}

/// The file or socket that a call is about: `7<…>`.
fn subject(arguments: &str) -> Option<String> {
    let (_, rest) = arguments.split_once('<')?;
    text(bytes(rest.split_once('>')?.0))
}

fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok()
}

/// Whatever stands in quotes. Everything in them is hexadecimal, so there is no quote within.
fn strings(arguments: &str) -> Vec<Vec<u8>> {
    arguments.split('"').skip(1).step_by(2).map(bytes).collect()
}

/// `\x2f\x74` as bytes.
fn bytes(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    };
    hex.as_bytes().chunks_exact(4).map(|byte| digit(byte[2]) << 4 | digit(byte[3])).collect()
}

fn number(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The last argument.
fn last_number(arguments: &str) -> Option<u64> {
    // strace sets results in a column of their own.
    let inner = arguments.rsplit_once(" = ").map_or(arguments, |(inner, _)| inner);
    inner.trim_end().trim_end_matches(')').rsplit(", ").next()?.trim().parse().ok()
}

/// One side of an HTTP/1.1 connection.
#[derive(Default)]
struct Connection {
    unread: Vec<u8>,
    /// An event stream is under way.
    stream: Option<(u64, SseParser)>,
    /// Nothing was shown on it yet.
    fresh: bool,
}

impl Connection {
    /// What the bytes so far say that those before did not.
    fn read(&mut self, streams: &mut u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            if let Some((stream, parser)) = &mut self.stream {
                let Some((chunk, used)) = chunk(&self.unread) else { return entries };
                let last = chunk.is_empty();
                parser.feed(chunk).unwrap();
                while let Some(event) = parser.next_event() {
                    let frame: Value = serde_json::from_str(&event.data).unwrap();
                    let number = event.id.and_then(|id| id.parse().ok()).expect("every frame has a number");
                    if std::mem::take(&mut self.fresh) {
                        begins(*stream, number, &frame["result"], &mut entries);
                    }
                    of_frame(*stream, number, &frame["result"], &mut entries);
                }
                self.unread.drain(..used);
                if last {
                    self.stream = None;
                }
                continue;
            }
            let Some(end) = find(&self.unread, b"\r\n\r\n").map(|at| at + 4) else { return entries };
            let head = String::from_utf8_lossy(&self.unread[..end]).to_ascii_lowercase();
            if head.contains("text/event-stream") {
                *streams += 1;
                self.stream = Some((*streams, SseParser::new(1 << 24)));
                self.fresh = true;
                self.unread.drain(..end);
                continue;
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if self.unread.len() < end + length {
                return entries;
            }
            if let Ok(body) = serde_json::from_slice::<Value>(&self.unread[end..end + length]) {
                let result = body.get("result").unwrap_or(&body);
                of_task(result.get("task").unwrap_or(result), &mut entries);
            }
            self.unread.drain(..end + length);
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The first whole chunk, and how many bytes it takes.
fn chunk(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let line = find(bytes, b"\r\n")?;
    let size = std::str::from_utf8(&bytes[..line]).unwrap();
    let size = usize::from_str_radix(size.trim(), 16).unwrap();
    let (begin, end) = (line + 2, line + 2 + size);
    (bytes.len() >= end + 2).then(|| (&bytes[begin..end], end + 2))
}

/// A stream that was resumed has no task first: it begins with an event.
fn begins(stream: u64, number: u64, result: &Value, entries: &mut Vec<Entry>) {
    let update = result.get("statusUpdate").or_else(|| result.get("artifactUpdate"));
    if let Some(task) = update.and_then(|update| update["taskId"].as_str()) {
        entries.push(Entry::Opened { stream, task: task.to_owned(), after: number - 1 });
    }
}

fn of_frame(stream: u64, number: u64, result: &Value, entries: &mut Vec<Entry>) {
    if let Some(task) = result.get("task") {
        of_task(task, entries);
        let task = task["id"].as_str().unwrap().to_owned();
        entries.push(Entry::Opened { stream, task, after: number });
        return;
    }
    entries.push(Entry::Seen { stream, number, json: result.to_string() });
}

/// Whoever sees a task sees the messages in it.
fn of_task(task: &Value, entries: &mut Vec<Entry>) {
    let Some(id) = task["id"].as_str() else { return };
    for message in task["history"].as_array().into_iter().flatten() {
        if message["role"] == "ROLE_USER" {
            let message = message["messageId"].as_str().unwrap().to_owned();
            entries.push(Entry::Acked { message, task: id.to_owned() });
        }
    }
}
