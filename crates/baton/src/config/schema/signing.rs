//! Signed cards.

use std::path::PathBuf;

use crate::config::setting::{Section, Setting, Visit};
use crate::config::value::{SecretText, Word};

#[derive(Debug, Clone, Default)]
pub(crate) struct Signing {
    /// `None`: cards are not signed.
    pub(crate) key: Setting<Option<SecretText>>,
    pub(crate) key_id: Setting<Option<Word>>,
    pub(crate) published_keys: Setting<Option<PathBuf>>,
}

impl Section for Signing {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("key", &mut self.key);
        visit.field("key_id", &mut self.key_id);
        visit.field("published_keys", &mut self.published_keys);
    }
}
