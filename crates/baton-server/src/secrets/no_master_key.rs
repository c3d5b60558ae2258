//! In place of master keys in a build without the feature `master-key`: there are none.

use crate::auth::NoRandomNumbers;

#[derive(Debug, Clone)]
pub(crate) enum MasterKeys {}

impl MasterKeys {
    pub(super) fn of_contents(_key: &[u8]) -> Option<Self> {
        None
    }

    pub(super) fn current_id(&self) -> &str {
        match *self {}
    }

    pub(super) fn ids(&self) -> Vec<String> {
        match *self {}
    }

    pub(super) fn encrypt(&self, _context: &[u8], _value: &[u8]) -> Result<Vec<u8>, NoRandomNumbers> {
        match *self {}
    }

    pub(super) fn decrypt(&self, _id: &str, _context: &[u8], _encrypted: &[u8]) -> Option<Vec<u8>> {
        match *self {}
    }
}
