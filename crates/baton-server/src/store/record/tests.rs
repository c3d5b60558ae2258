//! Golden records: encoding gives the same bytes as the files, decoding gives the same values.

use std::fs;

use super::super::suite::golden;
use super::*;
use baton_protocol::domain::{ActiveExtension, Artifact, Part, Role, SendDetails};

/// Checks that the golden file equals `record`; answers the file's bytes.
#[track_caller]
fn check(name: &str, record: &Bytes) -> Bytes {
    let name = format!("records/{name}.txt");
    if golden::must_write(&name) {
        fs::write(golden::path(&name), record).unwrap();
    }
    let kept = fs::read(golden::path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(String::from_utf8_lossy(record), String::from_utf8_lossy(&kept), "{name}");
    Bytes::from(kept)
}

#[test]
fn events_are_stored_as_they_were_first() {
    for (name, event) in golden::story() {
        let stored = StoredEvent::encode(&golden::task_id(), &golden::context_id(), &event);
        let kept = check(&format!("event-{name}"), stored.record());
        let read = StoredEvent::from_record(event.number, kept).unwrap();
        assert_eq!(read, stored, "{name}");
        assert_eq!(read.decode().unwrap(), event, "{name}");
        assert!(!read.json().contains(&b'\n'), "{name} would break its frame");
    }
}

#[test]
fn snapshots_are_stored_as_they_were_first() {
    for (name, version) in [("first", 1), ("half", 6), ("whole", 10)] {
        let snapshot = golden::snapshot(version);
        let kept = check(&format!("snapshot-{name}"), StoredSnapshot::encode(&snapshot).record());
        let read = StoredSnapshot::from_record(kept).unwrap();
        assert_eq!(read.version(), version as u64);
        assert_eq!(read.decode().unwrap(), snapshot, "{name}");
    }
}

#[test]
fn s16_keys_are_stored_as_they_were_first() {
    let whole = golden::key();
    let small = IssuedKey { scopes: Vec::new(), expires_at: None, revoked_at: None, ..whole.clone() };
    for (name, key) in [("whole", whole), ("small", small)] {
        let kept = check(&format!("credential-key-{name}"), &key.to_stored().record);
        let read = StoredCredential { id: key.id.clone(), record: kept };
        assert_eq!(IssuedKey::from_stored(&read).unwrap(), key, "{name}");
    }
}

/// A key that is left out could be one that was revoked, or the one that switches authentication on.
#[test]
fn s16_a_damaged_or_unknown_credential_is_an_error_that_shows_nothing_of_it() {
    let good = golden::key().to_stored();
    let text = String::from_utf8(good.record.to_vec()).unwrap();
    for record in [
        String::new(),
        "1 K".to_owned(),
        text.replacen("1 K", "2 K", 1),
        text.replacen("1 K", "1 B", 1),
        text.replacen("\"owner\"", "\"other\"", 1),
        text.replacen("BwcH", "Bw", 1),
        text[..text.len() - 1].to_owned(),
    ] {
        let stored = StoredCredential { record: Bytes::from(record.clone()), ..good.clone() };
        let error = IssuedKey::from_stored(&stored).unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{record}: {error}");
        assert!(!error.to_string().contains("BwcH"), "{error}");
    }
}

/// Added later: text that continues an artifact's last part. The mark is in the header, so the JSON is not changed.
#[test]
fn text_that_goes_on_is_marked_beside_its_frame() {
    let piece = |joins| {
        let artifact = Artifact::new(ArtifactId::parse("a-1").unwrap(), vec![Part::text("more")]);
        let update =
            ArtifactUpdate { artifact, append: true, joins, last_chunk: false, ordinal: 3, metadata: None };
        let event = Event { number: 7, at: golden::at(7), body: EventBody::Artifact(update) };
        (StoredEvent::encode(&golden::task_id(), &golden::context_id(), &event), event)
    };
    let (stored, event) = piece(true);
    let kept = check("event-artifact-join", stored.record());
    let read = StoredEvent::from_record(7, kept).unwrap();
    assert_eq!((read.decode().unwrap(), &read), (event, &stored));
    assert_eq!(stored.json(), piece(false).0.json());
}

/// A small event in memory does not keep a large one's bytes alive that was encoded with it.
#[test]
fn s22_a_large_event_has_a_buffer_of_its_own() {
    let user_message = |id, text: String| EventBody::said(golden::message(id, Role::User, &text));
    let bodies = [
        user_message("m-1", "small".to_owned()),
        user_message("m-2", "x".repeat(LARGE)),
        user_message("m-3", "small".to_owned()),
    ];
    let mut batch = EventBatch::with_room_for(3);
    for (number, body) in (1..).zip(bodies) {
        let event = Event { number, at: golden::at(number), body };
        batch.push(&golden::task_id(), &golden::context_id(), &event);
    }
    let events = batch.finish();
    for stored in &events {
        let alone = StoredEvent::encode(&golden::task_id(), &golden::context_id(), &stored.decode().unwrap());
        assert_eq!(alone, *stored);
    }
    let place = |event: &StoredEvent| event.record().as_ptr_range();
    assert_eq!(place(&events[0]).end, place(&events[2]).start, "the small ones share a buffer");
    assert!(events[1].record().is_unique(), "nobody else holds the large one");
    assert!(!events[0].record().is_unique());
}

/// Added later: the chosen skill and the trace context.
#[test]
fn skills_and_traces_are_kept() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let user_message = |state| EventBody::UserMessage {
        message: golden::message("m-1", Role::User, "go"),
        trace: TraceContext::parse(PARENT, state),
        details: SendDetails::default(),
    };
    let mut snapshot = Snapshot::begin(golden::task_id(), golden::context_id(), golden::at(0));
    for (number, (name, body)) in (1..).zip([
        ("user-message-traced", user_message(None)),
        ("user-message-traced-state", user_message(Some("one=a b,two=c"))),
        ("attempt-started-skill", EventBody::AttemptStarted { attempt: 1, skill: Some("say \"hi\"".into()) }),
    ]) {
        let event = Event { number, at: golden::at(number), body };
        let stored = StoredEvent::encode(&golden::task_id(), &golden::context_id(), &event);
        let kept = check(&format!("event-{name}"), stored.record());
        let read = StoredEvent::from_record(number, kept).unwrap();
        assert_eq!(read, stored, "{name}");
        assert_eq!(read.decode().unwrap(), event, "{name}");
        snapshot.apply(event.clone()).unwrap();
    }
    assert_eq!(snapshot.trace.as_ref().map(TraceContext::parent), Some(PARENT));
    let kept = check("snapshot-skill-trace", StoredSnapshot::encode(&snapshot).record());
    assert_eq!(StoredSnapshot::from_record(kept).unwrap().decode().unwrap(), snapshot);
}

/// Request details: format 2 of the event, and a member of the snapshot's second line.
#[test]
fn details_are_kept() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let metadata = || JsonObject::parse(r#"{"n":1.0,"line":"a\nb"}"#).ok();
    let extensions = || {
        let one = ActiveExtension { uri: "https://a.example/\"one\"".to_owned(), params: metadata() };
        vec![one, ActiveExtension { uri: "urn:two".to_owned(), params: None }]
    };
    let modes = |modes: &[&str]| modes.iter().map(|mode| (*mode).to_owned()).collect();
    for (number, (name, trace, details)) in (1..).zip([
        (
            "modes",
            None,
            SendDetails {
                accepted_output_modes: modes(&["text/plain", "a \"b\"\n"]),
                ..SendDetails::default()
            },
        ),
        ("metadata", None, SendDetails { metadata: metadata(), ..SendDetails::default() }),
        (
            "both-traced",
            TraceContext::parse(PARENT, Some("one=a")),
            SendDetails {
                accepted_output_modes: modes(&["text"]),
                metadata: metadata(),
                ..SendDetails::default()
            },
        ),
        ("extensions", None, SendDetails { extensions: extensions(), ..SendDetails::default() }),
        (
            "all",
            None,
            SendDetails {
                accepted_output_modes: modes(&["text"]),
                metadata: metadata(),
                extensions: extensions(),
            },
        ),
    ]) {
        let body =
            EventBody::UserMessage { message: golden::message("m-1", Role::User, "go"), trace, details };
        let event = Event { number, at: golden::at(number), body };
        let stored = StoredEvent::encode(&golden::task_id(), &golden::context_id(), &event);
        let kept = check(&format!("event-user-message-{name}"), stored.record());
        let read = StoredEvent::from_record(number, kept).unwrap();
        assert_eq!(read, stored, "{name}");
        assert_eq!(read.decode().unwrap(), event, "{name}");
        let mut snapshot = Snapshot::begin(golden::task_id(), golden::context_id(), golden::at(0));
        snapshot.apply(Event { number: 1, ..event }).unwrap();
        let kept = check(&format!("snapshot-{name}"), StoredSnapshot::encode(&snapshot).record());
        assert_eq!(StoredSnapshot::from_record(kept).unwrap().decode().unwrap(), snapshot);
    }
}

#[test]
fn replies_are_stored_as_they_were_first() {
    let reply = golden::message("m-9", Role::Agent, "an answer");
    let kept = check("reply", &write_reply(&reply));
    assert_eq!(read_reply(&kept).unwrap(), reply);
}

#[test]
fn a_record_of_a_newer_format_is_not_guessed_at() {
    let event = |text: &'static str| StoredEvent::from_record(1, Bytes::from_static(text.as_bytes()));
    assert!(event("1 A 5\n{\"attempt\":1}").is_ok());
    for text in [
        "",
        "1 A 5",
        "2 A 5\n{}",
        "2 U 5\n{}",
        "3 U 5\n{}\n{}",
        "1 X 5\n{}",
        "1 S9 5\n{}",
        "1 S 5\n{}",
        "1 P-1 5\n{}",
        "1 A x\n{}",
        "1\n{}",
    ] {
        assert!(matches!(event(text), Err(StoreError::Damaged(_))), "{text:?}");
    }
    for text in ["", "1 2", "2 1 1\n{}\n{}", "1 x 1\n{}\n{}", "1 1\n{}\n{}"] {
        let read = StoredSnapshot::from_record(Bytes::from_static(text.as_bytes()));
        assert!(matches!(read, Err(StoreError::Damaged(_))), "{text:?}");
    }
    assert!(matches!(read_reply(b"2\n{}"), Err(StoreError::Damaged(_))));
}
