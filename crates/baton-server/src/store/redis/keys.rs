//! How keys are named. Their values are described in `scripts/layout.lua`.
//!
//! A scope belongs to one of a fixed number of buckets, and every key starts with its bucket in braces:
//! `{baton:07}:t:agent:tenant:owner:task-id`. On a cluster all keys of a bucket are on one node, as a script needs them.
//! The sweeps visit all buckets, so there are sixteen and not one per owner.

use std::fmt::Write as _;

use baton_protocol::domain::{MessageId, Scope, TaskId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::store::{HASH_DIGEST, MessageHash, StoreError, StoreResult, TaskKey};

/// Part of the stored format, so it never changes.
pub(super) const BUCKETS: u64 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket(u64);

impl Bucket {
    pub(super) fn all() -> impl Iterator<Item = Bucket> {
        (0..BUCKETS).map(Bucket)
    }

    pub(super) fn of(scope: &Scope) -> Self {
        let digest = Sha256::digest(scope_name(scope));
        Bucket(u64::from(digest[0]) % BUCKETS)
    }

    /// The prefix of every key in this bucket.
    pub(super) fn key(self, prefix: &str) -> String {
        format!("{{{prefix}:{:02}}}:", self.0)
    }

    /// A key that is unique in the whole store, from the task's number within its bucket.
    pub(super) fn task_key(self, number: u64) -> TaskKey {
        TaskKey(number * BUCKETS + self.0)
    }

    /// The bucket of a task, and the task's number in it: the reverse of [`task_key`](Self::task_key).
    pub(super) fn of_task(key: TaskKey) -> (Self, u64) {
        (Bucket(key.0 % BUCKETS), key.0 / BUCKETS)
    }

    /// The largest number in this bucket whose key is at most `key`.
    pub(super) fn number_up_to(self, key: TaskKey) -> u64 {
        key.0.checked_sub(self.0).map_or(0, |rest| rest / BUCKETS)
    }
}

/// `agent:tenant:owner`, with all bytes except letters, digits, `.`, `_` and `-` written as `%XX`.
pub(super) fn scope_name(scope: &Scope) -> String {
    let mut name = String::with_capacity(64);
    for (n, member) in [&scope.agent, &scope.tenant, &scope.owner].into_iter().enumerate() {
        if n > 0 {
            name.push(':');
        }
        push_escaped(&mut name, member);
    }
    name
}

/// An owner as it stands in [`scope_name`].
pub(super) fn escaped(member: &str) -> String {
    let mut name = String::with_capacity(member.len());
    push_escaped(&mut name, member);
    name
}

fn push_escaped(name: &mut String, member: &str) {
    for byte in member.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            name.push(char::from(byte));
        } else {
            write!(name, "%{byte:02X}").expect("writing to memory cannot fail");
        }
    }
}

/// The task's name within its bucket: the scope's name and the id, unescaped.
pub(super) fn path(scope: &Scope, task: &TaskId) -> String {
    format!("{}:{task}", scope_name(scope))
}

/// The reverse of [`path`].
pub(super) fn read_path(path: &[u8]) -> StoreResult<(Scope, TaskId)> {
    let read = || {
        let path = std::str::from_utf8(path).ok()?;
        let mut parts = path.splitn(4, ':');
        let mut member = || decode(parts.next()?);
        let (agent, tenant, owner) = (member()?, member()?, member()?);
        Some((Scope::new(&agent, &tenant, &owner), TaskId::parse(parts.next()?).ok()?))
    };
    read().ok_or_else(|| {
        StoreError::damaged(format!("`{}` is not a task's path", String::from_utf8_lossy(path)))
    })
}

/// The message record's name within its bucket. Contains the digest of the hash without its version.
pub(super) fn reference(scope: &Scope, message: &MessageId, hash: &MessageHash) -> String {
    let mut name = scope_name(scope);
    name.push(':');
    for byte in &hash[..HASH_DIGEST] {
        write!(name, "{byte:02x}").expect("writing to memory cannot fail");
    }
    name.push(':');
    name.push_str(message.as_str());
    name
}

/// A time as text that sorts like the time. Also works for the millisecond after [`Timestamp::MAX`].
pub(super) fn sort_key(millis: i64) -> String {
    format!("{:013x}", millis - Timestamp::MIN.as_millis())
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_back() {
        for (agent, tenant, owner) in [("a", "", "o"), ("a:b", "%3A", "ünï {x}"), ("", "", "\0\u{1f}")] {
            let (scope, task) = (Scope::new(agent, tenant, owner), TaskId::parse("a:b%20{c}").unwrap());
            assert_eq!(read_path(path(&scope, &task).as_bytes()), Ok((scope, task)));
        }
        assert!(read_path(b"a:b:c").is_err());
        assert!(read_path(b"a:%4:c:d").is_err());
    }

    #[test]
    fn sort_keys_sort_like_times() {
        let times = [Timestamp::MIN.as_millis(), -1, 0, 1, Timestamp::MAX.as_millis()];
        let mut sort_keys = times.map(sort_key).to_vec();
        sort_keys.push(sort_key(Timestamp::MAX.as_millis() + 1));
        assert!(
            sort_keys.is_sorted() && sort_keys.iter().all(|sort_key| sort_key.len() == 13),
            "{sort_keys:?}"
        );
    }

    #[test]
    fn keys_of_buckets_interleave() {
        for bucket in Bucket::all() {
            for number in [1, 2, 1 << 40] {
                let key = bucket.task_key(number);
                assert_eq!(bucket.number_up_to(key), number);
                assert_eq!(bucket.number_up_to(TaskKey(key.0 - 1)), number - 1);
            }
            assert_eq!(bucket.number_up_to(TaskKey(0)), 0);
        }
    }
}
