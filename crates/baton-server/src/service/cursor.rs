//! Page tokens: opaque, signed, and bound to the scope and filter they were made for.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::Error;
use baton_protocol::domain::{ListFilter, PushConfigId, Scope, TaskId, Timestamp};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::store::ListPosition;

/// Bytes of the HMAC that are kept: a forged token is accepted with a probability of 2^-128.
const TAG: usize = 16;
const FORMAT: &str = "1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) after: ListPosition,
    /// Upper bound for the times of the listed tasks, fixed with the first page: later changes are not listed.
    pub(super) not_after: Timestamp,
    /// Number of tasks, counted for the first page.
    pub(super) total: u64,
}

/// Signs and verifies page tokens. The key is in the store, so that tokens survive a restart and work on every replica.
#[derive(Clone)]
pub(crate) struct Cursors {
    key: Vec<u8>,
}

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cursors")
    }
}

impl Cursors {
    pub(crate) fn new(key: Vec<u8>) -> Self {
        Cursors { key }
    }

    pub(super) fn seal(&self, cursor: &Cursor, scope: &Scope, filter: &ListFilter) -> String {
        let Cursor { after, not_after, total } = cursor;
        let (at, not_after) = (after.status_at.as_millis(), not_after.as_millis());
        let body = format!("{FORMAT} {at} {not_after} {total} {}", after.id);
        let mut bytes = self.tag(&body, scope, filter).to_vec();
        bytes.extend_from_slice(body.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(super) fn open(&self, token: &str, scope: &Scope, filter: &ListFilter) -> Result<Cursor, Error> {
        self.try_open(token, scope, filter).ok_or_else(foreign)
    }

    fn try_open(&self, token: &str, scope: &Scope, filter: &ListFilter) -> Option<Cursor> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (tag, body) = bytes.split_at_checked(TAG)?;
        let body = std::str::from_utf8(body).ok()?;
        if !bool::from(self.tag(body, scope, filter).ct_eq(tag)) {
            return None;
        }
        let mut fields = body.splitn(5, ' ');
        let mut field = || fields.next();
        if field()? != FORMAT {
            return None;
        }
        let status_at = Timestamp::from_millis(field()?.parse().ok()?);
        let not_after = Timestamp::from_millis(field()?.parse().ok()?);
        let total = field()?.parse().ok()?;
        let id = TaskId::parse(field()?).ok()?;
        Some(Cursor { after: ListPosition { status_at, id }, not_after, total })
    }

    /// A token for the webhooks of a task after this one.
    pub(super) fn seal_webhook(&self, after: &PushConfigId, scope: &Scope, task: &TaskId) -> String {
        let mut bytes = self.webhook_tag(after.as_str(), scope, task).to_vec();
        bytes.extend_from_slice(after.as_str().as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The webhook that a page of them begins after.
    pub(super) fn open_webhook(&self, token: &str, scope: &Scope, task: &TaskId) -> Result<String, Error> {
        let after = || {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let (tag, after) = bytes.split_at_checked(TAG)?;
            let after = std::str::from_utf8(after).ok()?;
            bool::from(self.webhook_tag(after, scope, task).ct_eq(tag)).then(|| after.to_owned())
        };
        after().ok_or_else(foreign)
    }

    fn webhook_tag(&self, after: &str, scope: &Scope, task: &TaskId) -> [u8; TAG] {
        self.tag_of(&[
            scope.agent.as_bytes(),
            scope.tenant.as_bytes(),
            scope.owner.as_bytes(),
            b"webhooks",
            task.as_str().as_bytes(),
            after.as_bytes(),
        ])
    }

    fn tag(&self, body: &str, scope: &Scope, filter: &ListFilter) -> [u8; TAG] {
        let context = filter.context_id.as_ref().map_or("", |context| context.as_str());
        let mut states: Vec<u8> = filter.states.iter().map(|state| state.number()).collect();
        states.sort_unstable();
        states.dedup();
        let since = filter.updated_since.map_or(String::new(), |since| since.as_millis().to_string());
        self.tag_of(&[
            scope.agent.as_bytes(),
            scope.tenant.as_bytes(),
            scope.owner.as_bytes(),
            context.as_bytes(),
            &states,
            since.as_bytes(),
            body.as_bytes(),
        ])
    }

    fn tag_of(&self, fields: &[&[u8]]) -> [u8; TAG] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        for field in fields {
            // Length-prefixed, so that different lists of fields never give the same bytes.
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        let whole = mac.finalize().into_bytes();
        let mut tag = [0; TAG];
        tag.copy_from_slice(&whole[..TAG]);
        tag
    }
}

fn foreign() -> Error {
    Error::invalid("pageToken", "is not one this server gave for this listing; start again without it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_protocol::domain::{ContextId, TaskState};

    #[test]
    fn p06_a_page_token_is_good_for_its_own_listing_only() {
        let cursors = Cursors { key: vec![7; 32] };
        let scope = Scope::new("a", "", "o");
        let after =
            ListPosition { status_at: Timestamp::from_millis(5), id: TaskId::parse("odd id").unwrap() };
        let cursor = Cursor { after, not_after: Timestamp::from_millis(9), total: 3 };
        let filter = ListFilter { states: vec![TaskState::Working], ..ListFilter::default() };
        let token = cursors.seal(&cursor, &scope, &filter);
        assert_eq!(cursors.try_open(&token, &scope, &filter), Some(cursor));

        let context_id = Some(ContextId::parse("c").unwrap());
        let other_filter = ListFilter { context_id, ..filter.clone() };
        assert_eq!(cursors.try_open(&token, &scope, &other_filter), None);
        assert_eq!(cursors.try_open(&token, &scope, &ListFilter::default()), None);
        for other in [Scope::new("b", "", "o"), Scope::new("a", "t", "o"), Scope::new("a", "", "p")] {
            assert_eq!(cursors.try_open(&token, &other, &filter), None);
        }
        for at in 0..token.len() {
            let mut forged = token.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last character may hold unused bits; then it must not decode to something else.
            assert_eq!(cursors.try_open(&forged, &scope, &filter), None, "{at}");
        }
        for garbage in ["", "x", "%%%", "AAAA", &"A".repeat(400)] {
            assert_eq!(cursors.try_open(garbage, &scope, &filter), None);
        }
    }
}
