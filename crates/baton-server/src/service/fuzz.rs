//! Fuzz targets for values that clients send back to the server: page tokens and `Last-Event-ID`.

use baton_protocol::Generation;
use baton_protocol::domain::{ListFilter, Scope, TaskId, TaskState, Timestamp};

use super::cursor::{Cursor, Cursors};
use super::{CallContext, subscribe};
use crate::engine::caller::Caller;
use crate::store::ListPosition;

/// A token is valid only for the listing and scope that it was made for, and no other text is a valid token.
pub(crate) fn page_token(bytes: &[u8]) {
    let cursors = Cursors::new(b"a key that nobody knows".to_vec());
    let (scope, filter) = (Scope::new("agent", "", "owner"), ListFilter::default());
    let text = String::from_utf8_lossy(bytes);
    assert!(cursors.open(&text, &scope, &filter).is_err(), "a forged token: {text}");

    let number = |at: usize| {
        let eight = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        eight.map_or(0, |eight| i64::from_le_bytes(*eight))
    };
    let Ok(id) = TaskId::parse(&text) else { return };
    let at = |at: usize| Timestamp::from_millis(number(at) >> 12);
    let cursor = Cursor {
        after: ListPosition { status_at: at(0), id },
        not_after: at(8),
        total: number(16).unsigned_abs(),
    };
    let token = cursors.seal(&cursor, &scope, &filter);
    assert!(
        token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'),
        "{token}"
    );
    assert_eq!(cursors.open(&token, &scope, &filter).ok(), Some(cursor), "{token}");
    assert!(cursors.open(&token, &Scope::new("agent", "", "other"), &filter).is_err());
    let other = ListFilter { states: vec![TaskState::Working], ..filter.clone() };
    assert!(cursors.open(&token, &scope, &other).is_err());
    // Change one byte, chosen by the input.
    let mut forged = token.into_bytes();
    let place = usize::from(bytes[0]) % forged.len();
    forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).expect("ASCII");
    assert!(cursors.open(&forged, &scope, &filter).is_err(), "{forged}");
}

/// The result is the exact number, `None` for an empty header, or an error.
pub(crate) fn last_event_id(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let context = CallContext {
        scope: Scope::new("agent", "", "owner"),
        caller: Caller::Unknown,
        generation: Generation::V1,
        last_event_id: Some(text.clone()),
        extensions: Vec::new(),
        trace: None,
        permission: None,
        principal: crate::auth::Principal::anonymous(),
        asker: None,
    };
    match subscribe::last_seen(&context) {
        Ok(Some(number)) => {
            let digits = text.trim().trim_start_matches('0');
            let expected = if digits.is_empty() { "0" } else { digits };
            assert_eq!(number.to_string(), expected, "{text:?}");
        }
        Ok(None) => assert!(text.trim().is_empty(), "{text:?}"),
        Err(_) => assert!(text.trim().parse::<u32>().is_err() || text.trim().starts_with('+'), "{text:?}"),
    }
}
