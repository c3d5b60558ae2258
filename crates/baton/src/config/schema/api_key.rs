//! `[auth.api_key]` and `[admin]`.

use baton_server::auth::MAX_KEYS;

use super::begins;
use crate::config::setting::{Section, Setting, Visit, Written};
use crate::config::value::{AdminSocket, Id, KeyLocation, SecretText, Word};

/// API keys: a secret of the operator's, and the keys of `baton key`.
#[derive(Debug, Clone)]
pub(crate) struct ApiKey {
    pub(crate) id: Setting<Option<Id>>,
    /// Unset: on if the table is there, or if the store has keys.
    pub(crate) enabled: Setting<Option<bool>>,
    pub(crate) secret: Setting<Option<SecretText>>,
    pub(crate) location: Setting<KeyLocation>,
    pub(crate) name: Setting<Option<Word>>,
    pub(crate) max_keys: Setting<usize>,
    pub(crate) written: Written,
}

/// How `baton key` reaches the running server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admin {
    pub(crate) socket: Setting<AdminSocket>,
}

impl Default for ApiKey {
    fn default() -> Self {
        ApiKey {
            id: Setting::default(),
            enabled: Setting::default(),
            secret: Setting::default(),
            location: Setting::new(KeyLocation::Header),
            name: Setting::default(),
            max_keys: Setting::new(MAX_KEYS).at_least(1).at_most(1_000_000),
            written: Written::default(),
        }
    }
}

impl Section for ApiKey {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("enabled", &mut self.enabled);
        visit.field("secret", &mut self.secret);
        visit.field("location", &mut self.location);
        visit.field("name", &mut self.name);
        visit.field("max_keys", &mut self.max_keys);
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }

    /// A table that is there switches keys on.
    fn is_there(&mut self) -> bool {
        begins(self).is_some()
    }
}

impl Section for Admin {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("socket", &mut self.socket);
    }
}
