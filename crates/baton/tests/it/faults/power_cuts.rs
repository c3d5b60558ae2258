//! T4: a disk that forgets what was not synced.
//!
//! A server runs under strace, which tells every write, sync, truncation, creation and removal of a file, and every
//! answer. From that the state of the disk at any moment can be made: what was synced is there; of the rest anything may
//! be there, whole or torn into sectors; a new file or folder may be missing unless the folder above it was synced.
//! Each such disk is opened as a server would open it and must hold everything that had been told by then.
//!
//! The control is the same with `synchronous=OFF`: there things must be lost, or this test sees nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::checker::{Facts, violations};
use super::field::{Field, RERUNNABLE};
use super::journal::Entry;
use super::load::{Load, Wish};
use super::runs::{Random, Run};
use super::stored::{Stored, integrity};
use super::trace::{Call, Trace, Traced, What};

/// What the model of a client's view in `trace` can follow: tasks.
const TRACED: &[Wish] = &[Wish::Echo, Wish::Echo, Wish::Talk, Wish::Large, Wish::Cancel];

/// A drive writes sectors of this size whole or not at all.
const SECTOR: usize = 512;

pub(crate) struct Recording {
    pub(crate) trace: Trace,
    pub(crate) told: Vec<(usize, Entry)>,
    pub(crate) field: Field,
    pub(crate) acked: usize,
}

/// A server's life, with some kills in it, from an empty folder on.
pub(crate) async fn record(
    run: &Run,
    messages: u64,
    kills: u64,
    syncs: bool,
    wishes: &'static [Wish],
) -> Recording {
    let field = Field::new("");
    let mut trace = Trace::default();
    let start = |life: u64| {
        let mut command = field.command(&field.database());
        if !syncs {
            command.env("BATON_FAULT_SYNC", "off");
        }
        Traced::start(&command, &field.path(&format!("trace-{life}")))
    };
    let mut add = |life: u64| {
        let text = fs::read_to_string(field.path(&format!("trace-{life}"))).unwrap();
        trace.add(&text, &field.path(""));
    };
    let mut server = start(0);
    let mut load = Load::start(&server.served.url, 4, run.seed, wishes);
    for life in 1..=kills {
        load.more(messages / (kills + 1)).await;
        server.kill().await;
        // Before the next one writes: the files tell how far the last writes of this one came.
        add(life - 1);
        server = start(life);
        load.moved(&server.served);
    }
    load.more(messages / (kills + 1)).await;
    load.finish().await;
    server.kill().await;
    add(kills);
    let acked = load.journal.count(|entry| matches!(entry, Entry::Acked { .. }));
    let told = trace.told();
    Recording { trace, told, field, acked }
}

/// A file or folder, as the disk may remember it.
#[derive(Default)]
struct Node<'a> {
    folder: bool,
    /// Was its name in the folder above synced? While its removal is not, it may come back.
    named: bool,
    removed: bool,
    durable: Vec<u8>,
    pending: Vec<&'a Call>,
    /// The call that made it or removed it last.
    changed: Option<&'a Call>,
}

/// How much of what was not synced is there.
#[derive(Debug, Clone, Copy)]
enum Luck {
    Nothing,
    Everything,
    SomeWrites,
    SomeSectors,
}

/// The files after a power cut at a place in the trace.
fn disk_after(trace: &Trace, root: &Path, cut: usize, random: &mut Random) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut nodes: BTreeMap<&Path, Node<'_>> = BTreeMap::new();
    for call in trace.calls.iter().filter(|call| call.begin <= cut) {
        match &call.what {
            What::Opened { path } | What::Folder { path } => {
                let folder = matches!(call.what, What::Folder { .. });
                let node = nodes.entry(path).or_default();
                if node.changed.is_none() || node.removed {
                    *node = Node { folder, changed: Some(call), ..Node::default() };
                }
            }
            What::Wrote { path, .. } | What::Cut { path, .. } => {
                nodes.entry(path).or_default().pending.push(call)
            }
            What::Removed { path } => {
                let node = nodes.entry(path).or_default();
                (node.removed, node.changed) = (true, Some(call));
            }
            What::Synced { path } if call.end.is_some_and(|end| end <= cut) => {
                let before = |other: &Call| other.end.is_some_and(|end| end < call.begin);
                if let Some(node) = nodes.get_mut(path.as_path()) {
                    let (done, left) = node.pending.drain(..).partition::<Vec<_>, _>(|other| before(other));
                    node.pending = left;
                    for call in done {
                        apply(&mut node.durable, call, |_| true);
                    }
                }
                for (_, node) in nodes.iter_mut().filter(|(other, _)| other.parent() == Some(path)) {
                    if node.changed.is_some_and(before) {
                        node.named = !node.removed;
                        if node.removed {
                            // Gone for good, with all that was in it.
                            (node.durable, node.pending) = (Vec::new(), Vec::new());
                        }
                    }
                }
            }
            What::Synced { .. } | What::Said { .. } => {}
        }
    }
    let luck = *random.pick(&[Luck::Nothing, Luck::Everything, Luck::SomeWrites, Luck::SomeSectors]);
    let kept = |random: &mut Random| match luck {
        Luck::Nothing => false,
        Luck::Everything => true,
        Luck::SomeWrites | Luck::SomeSectors => random.one_in(2),
    };
    let mut disk: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut gone: Vec<&Path> = Vec::new();
    // What was there before is there.
    for (path, node) in nodes.iter().filter(|(path, _)| **path != root) {
        // What the removal or the making of a name has not told the disk, the disk may or may not know.
        let there = match (node.named, node.removed) {
            (true, false) => true,
            (true, true) => !kept(random),
            (false, false) => kept(random),
            (false, true) => false,
        };
        if !there || gone.iter().any(|folder| path.starts_with(folder)) {
            gone.push(path);
            continue;
        }
        if node.folder || path.parent() == Some(root) {
            continue;
        }
        let mut content = node.durable.clone();
        for call in &node.pending {
            if matches!(luck, Luck::SomeSectors) {
                apply(&mut content, call, |_| random.one_in(2));
            } else if kept(random) {
                apply(&mut content, call, |_| true);
            }
        }
        disk.insert((*path).to_owned(), content);
    }
    disk
}

/// Does a write, or those sectors of it that are wanted.
fn apply(content: &mut Vec<u8>, call: &Call, mut wanted: impl FnMut(usize) -> bool) {
    match &call.what {
        What::Wrote { at, data, .. } => {
            let at = *at as usize;
            let mut done = 0;
            while done < data.len() {
                let (from, sector) = (at + done, (at + done) / SECTOR);
                let to = (at + data.len()).min((sector + 1) * SECTOR);
                if wanted(sector) {
                    if content.len() < to {
                        content.resize(to, 0);
                    }
                    content[from..to].copy_from_slice(&data[done..to - at]);
                }
                done = to - at;
            }
        }
        What::Cut { length, .. } if wanted(0) => content.resize(*length as usize, 0),
        _ => {}
    }
}

/// What is wrong with a disk that a power cut left, if anything.
async fn wrong_after(recording: &Recording, cut: usize, random: &mut Random) -> Option<String> {
    let Recording { trace, told, field, .. } = recording;
    let told: Vec<_> = told.iter().filter(|(at, _)| *at <= cut).map(|(_, entry)| entry.clone()).collect();
    let root = field.path("");
    let disk = disk_after(trace, &root, cut, random);
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in disk {
        let name = path.file_name().unwrap().to_str().unwrap();
        // The log's index is memory that has a name; SQLite makes it anew after a crash.
        if !name.ends_with("-shm") && !name.ends_with(".lock") {
            fs::write(folder.path().join(name), content).unwrap();
        }
    }
    let database = folder.path().join("tasks.db");
    let stored = match Stored::read(&database).await {
        Ok(stored) => stored,
        Err(error) => return Some(format!("it does not open: {error}")),
    };
    let found = violations(&told, &stored, Facts { rerunnable: RERUNNABLE, settled: false });
    let verdict = integrity(&database);
    match &found[..] {
        [] if verdict == "ok" => None,
        [] => Some(verdict),
        [first, ..] => Some(format!("{} violations, first {first}", found.len())),
    }
}

/// Cuts at random places, half of them just after something was told. Answers those that lost something.
async fn cuts(recording: &Recording, count: u64, random: &mut Random) -> Vec<String> {
    let told = &recording.told;
    let mut wrong = Vec::new();
    for _ in 0..count {
        let cut = match random.one_in(2) {
            true => random.below(recording.trace.end() as u64) as usize,
            false => random.pick(told).0,
        };
        if let Some(what) = wrong_after(recording, cut, random).await {
            wrong.push(format!("cut at {cut}: {what}"));
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_a_disk_that_forgets_unsynced_writes_loses_nothing() {
    let mut run = Run::begin("power-cuts");
    let (recordings, messages) = (run.count(1, 4), run.count(50, 100));
    let each = run.count(25, 125);
    let mut random = run.random();
    let (mut acked, mut wrong) = (0, Vec::new());
    for _ in 0..recordings {
        let recording = record(&run, messages, 2, true, TRACED).await;
        let told = &recording.told;
        assert!(
            told.len() >= recording.acked / 2,
            "{} of {} were found in the trace",
            told.len(),
            recording.acked
        );
        acked += recording.acked;
        wrong.extend(cuts(&recording, each, &mut random).await);
    }
    assert!(wrong.is_empty(), "seed {}: {} cuts lost something\n{}", run.seed, wrong.len(), wrong.join("\n"));
    let control = record(&run, messages.min(50), 0, false, TRACED).await;
    let lost = cuts(&control, each, &mut random).await;
    assert!(!lost.is_empty(), "without syncs nothing was lost either: this test cannot tell");
    run.figure("cuts", recordings * each);
    run.figure("acknowledged", acked);
    run.figure("cuts that lost something", 0);
    run.figure("control, synchronous=OFF: cuts that lost something", format!("{} of {each}", lost.len()));
    run.end();
}

/// The model itself: what a dying process was writing has happened or not by the time of the next one. It is no write that
/// may still come, over what the next one wrote in its place.
#[test]
fn what_a_dying_process_was_writing_does_not_come_later() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("data");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("log");
    let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let (name, above) = (hex(file.to_str().unwrap()), hex(folder.to_str().unwrap()));
    let write = |data: &str, end: &str| format!("7 pwrite64(5<{name}>, \"{}\", 3, 0{end}", hex(data));
    let mut trace = Trace::default();
    fs::write(&file, "old").unwrap();
    let life = [
        format!("7 openat(AT_FDCWD, \"{name}\", O_RDWR|O_CREAT, 0600) = 5<{name}>"),
        format!("7 fsync(6<{above}>) = 0"),
        write("old", " <unfinished ...>"),
        "7 +++ killed by SIGKILL +++".to_owned(),
    ];
    trace.add(&life.join("\n"), root.path());
    fs::write(&file, "new").unwrap();
    trace.add(&[write("new", ") = 3"), format!("7 fdatasync(5<{name}>) = 0")].join("\n"), root.path());
    let mut random = Random::new(7);
    for _ in 0..100 {
        let disk = disk_after(&trace, root.path(), trace.end(), &mut random);
        assert_eq!(disk.get(&file).map(Vec::as_slice), Some(&b"new"[..]));
        // Before the second life it may be there or not.
        let disk = disk_after(&trace, root.path(), life.len() + 1, &mut random);
        assert!(matches!(disk.get(&file).map(Vec::as_slice), Some(b"old" | b"")), "{disk:?}");
    }
}
