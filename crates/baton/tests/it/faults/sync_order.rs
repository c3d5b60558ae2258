//! T3: what a client is told was written to the store's log, and that log was synced, before the first byte of the
//! answer. Read from the system calls of the real binary.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::journal::Entry;
use super::load::Wish;
use super::power_cuts::{Recording, record};
use super::runs::Run;
use super::trace::{Trace, What};

/// What is written and told in one piece.
const SMALL: &[Wish] = &[Wish::Echo, Wish::Talk, Wish::Cancel];

/// Entries that were told before what they rest on was synced.
fn too_early(trace: &Trace, log: &Path) -> (usize, Vec<String>) {
    let told: Vec<(usize, String, String)> = trace
        .told()
        .into_iter()
        .filter_map(|(at, entry)| match entry {
            Entry::Acked { message, .. } => Some((at, message.clone(), message.clone())),
            Entry::Seen { number, json, stream } => {
                // What is unique about a frame: its task and its time, or its text. Short enough to lie on one page.
                let json: serde_json::Value = serde_json::from_str(&json).unwrap();
                let status = &json["statusUpdate"];
                let what = status["status"]["timestamp"].as_str()?.to_owned();
                Some((at, format!("event {number} of stream {stream}"), what))
            }
            _ => None,
        })
        .collect();
    // Where each was written first.
    let wanted: HashSet<&str> = told.iter().map(|(_, _, needle)| needle.as_str()).collect();
    let mut written: HashMap<String, Option<usize>> = HashMap::new();
    for call in &trace.calls {
        let What::Wrote { path, data, .. } = &call.what else { continue };
        if path == log {
            for piece in String::from_utf8_lossy(data).split('"').filter(|piece| wanted.contains(piece)) {
                written.entry(piece.to_owned()).or_insert(call.end);
            }
        }
    }
    let mut early = Vec::new();
    for (at, name, needle) in &told {
        let written = written.get(needle).copied().flatten();
        let synced = written.is_some_and(|written| {
            trace.calls.iter().any(|call| {
                matches!(&call.what, What::Synced { path } if path == log)
                    && call.begin > written
                    && call.end.is_some_and(|end| end < *at)
            })
        });
        if !synced {
            early.push(format!("{name} was told at {at}, written at {written:?}, and not synced in between"));
        }
    }
    (told.len(), early)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_the_log_is_synced_before_the_answer() {
    let mut run = Run::begin("sync-order");
    let messages = run.count(40, 150);
    let Recording { trace, field, .. } = record(&run, messages, 0, true, SMALL).await;
    let log = field.path("data/tasks.db-wal");
    let (told, early) = too_early(&trace, &log);
    assert!(early.is_empty(), "{} of {told}:\n{}", early.len(), early.join("\n"));
    assert!(told as u64 >= messages / 2, "too little was told: {told}");
    run.figure("messages", messages);
    run.figure("acknowledgements and events told", told);
    run.figure("told before the sync", 0);
    let (trace, field) = {
        let without = record(&run, messages.min(40), 0, false, SMALL).await;
        (without.trace, without.field)
    };
    let (told, early) = too_early(&trace, &field.path("data/tasks.db-wal"));
    assert_eq!(early.len(), told, "without syncs every answer comes too early, or this test sees nothing");
    run.figure("control, synchronous=OFF: too early", format!("{} of {told}", early.len()));
    run.end();
}

/// Read from lines as strace writes them, with one answer before its sync.
#[test]
fn an_answer_before_its_sync_is_found() {
    let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let body = r#"{"result":{"task":{"id":"t-1","history":[{"messageId":"m-1","role":"ROLE_USER"}]}}}"#;
    let answer = hex(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    let file = format!("7<{}>", hex("/r/tasks.db-wal"));
    let write = format!("11  pwrite64({file}, \"{}\", 7, 32) = 7", hex(r#"a"m-1"b"#));
    let sync = format!("11  fdatasync({file}) = 0");
    let (begun, over) =
        (format!("11  fdatasync({file} <unfinished ...>"), "11  <... fdatasync resumed>) = 0");
    let say =
        format!("12  sendto(9<{}>, \"{answer}\", 1, 0, NULL, 0) = {}", hex("socket:[5]"), answer.len() / 4);
    let early = |lines: &[&str]| {
        let mut trace = Trace::default();
        trace.add(&lines.join("\n"), Path::new("/r"));
        too_early(&trace, Path::new("/r/tasks.db-wal"))
    };
    assert_eq!(early(&[&write, &sync, &say]).1, Vec::<String>::new());
    assert_eq!(early(&[&write, &begun, over, &say]).1, Vec::<String>::new());
    for wrong in
        [&[&*write, &say, &sync][..], &[&sync, &write, &say], &[&write, &begun, &say, over], &[&sync, &say]]
    {
        let (told, early) = early(wrong);
        assert_eq!((told, early.len()), (1, 1), "{wrong:?}");
    }
}
