//! `[auth.basic]` and `[auth.digest]`: users with passwords.

use std::time::Duration;

use baton_server::auth::{BasicOptions, DigestOptions};

use super::begins;
use crate::config::setting::{Section, Setting, Visit, Written};
use crate::config::value::{Id, SecretText, Size, Word};

#[derive(Debug, Clone)]
pub(crate) struct Basic {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) realm: Setting<String>,
    pub(crate) remember: Setting<Duration>,
    pub(crate) hashes_at_once: Setting<usize>,
    pub(crate) max_waiting: Setting<usize>,
    pub(crate) max_user: Setting<usize>,
    pub(crate) max_password: Setting<usize>,
    pub(crate) max_hash_memory: Setting<Size>,
    pub(crate) max_hash_passes: Setting<u32>,
    pub(crate) users: Vec<User>,
    pub(crate) written: Written,
}

#[derive(Debug, Clone)]
pub(crate) struct Digest {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) realm: Setting<String>,
    pub(crate) nonce_lifetime: Setting<Duration>,
    pub(crate) max_nonces: Setting<usize>,
    pub(crate) max_user: Setting<usize>,
    pub(crate) users: Vec<User>,
    pub(crate) written: Written,
}

/// A user and the stored form of the password.
#[derive(Debug, Clone, Default)]
pub(crate) struct User {
    pub(crate) name: Setting<Option<Word>>,
    pub(crate) password: Setting<Option<SecretText>>,
    /// The name by default.
    pub(crate) owner: Setting<Option<Word>>,
    pub(crate) scopes: Setting<Vec<Word>>,
    pub(crate) written: Written,
}

impl Default for Basic {
    fn default() -> Self {
        let options = BasicOptions::default();
        let memory = Size(u64::from(options.max_hash_memory_kib) * 1024);
        Basic {
            id: Setting::default(),
            realm: Setting::new(options.realm),
            remember: Setting::new(options.remember).at_most(Duration::from_secs(3600)),
            hashes_at_once: Setting::new(options.hashes_at_once).at_least(1).at_most(64),
            max_waiting: Setting::new(options.max_waiting).at_least(1).at_most(100_000),
            max_user: Setting::new(options.max_user).at_least(1).at_most(1024),
            max_password: Setting::new(options.max_password).at_least(8).at_most(8192),
            max_hash_memory: Setting::new(memory).at_least(Size(8 * 1024)).at_most(Size(4 << 30)),
            max_hash_passes: Setting::new(options.max_hash_passes).at_least(1).at_most(1000),
            users: Vec::new(),
            written: Written::default(),
        }
    }
}

impl Default for Digest {
    fn default() -> Self {
        let options = DigestOptions::default();
        Digest {
            id: Setting::default(),
            realm: Setting::new(options.realm),
            nonce_lifetime: Setting::new(options.nonce_lifetime)
                .at_least(Duration::from_secs(1))
                .at_most(Duration::from_secs(86_400)),
            max_nonces: Setting::new(options.max_nonces).at_least(1).at_most(1_000_000),
            max_user: Setting::new(options.max_user).at_least(1).at_most(1024),
            users: Vec::new(),
            written: Written::default(),
        }
    }
}

impl Section for Basic {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("realm", &mut self.realm);
        visit.field("remember", &mut self.remember);
        visit.field("hashes_at_once", &mut self.hashes_at_once);
        visit.field("max_waiting", &mut self.max_waiting);
        visit.field("max_user", &mut self.max_user);
        visit.field("max_password", &mut self.max_password);
        visit.field("max_hash_memory", &mut self.max_hash_memory);
        visit.field("max_hash_passes", &mut self.max_hash_passes);
        visit.list("user", &mut self.users);
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }

    fn is_there(&mut self) -> bool {
        begins(self).is_some()
    }
}

impl Section for Digest {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("realm", &mut self.realm);
        visit.field("nonce_lifetime", &mut self.nonce_lifetime);
        visit.field("max_nonces", &mut self.max_nonces);
        visit.field("max_user", &mut self.max_user);
        visit.list("user", &mut self.users);
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }

    fn is_there(&mut self) -> bool {
        begins(self).is_some()
    }
}

impl Section for User {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("name", &mut self.name);
        visit.field("password", &mut self.password);
        visit.field("owner", &mut self.owner);
        visit.field("scopes", &mut self.scopes);
    }

    fn label(&self) -> Option<String> {
        self.name.as_deref().map(str::to_owned)
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }
}
