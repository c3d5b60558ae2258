//! Basic and digest: users with passwords.

use std::collections::HashMap;
use std::sync::Arc;

use baton_server::auth::{Basic, BasicOptions, Digest, DigestOptions, StoredUser};

use super::{Planner, Records};
use crate::config::schema::{self, User, begins};
use crate::config::setting::Source;

const BASIC: &str = "auth.basic";
const DIGEST: &str = "auth.digest";

impl Planner<'_> {
    pub(super) fn basic(&mut self, section: &schema::Basic) {
        let mut section = section.clone();
        let Some(source) = begins(&mut section) else { return };
        let Some(users) = self.users(BASIC, &source, &section.users) else { return };
        let mut options = BasicOptions::default();
        options.realm.clone_from(&section.realm);
        options.remember = *section.remember;
        options.hashes_at_once = *section.hashes_at_once;
        options.max_waiting = *section.max_waiting;
        options.max_user = *section.max_user;
        options.max_password = *section.max_password;
        let kib = section.max_hash_memory.bytes() / 1024;
        options.max_hash_memory_kib = u32::try_from(kib).unwrap_or(u32::MAX);
        options.max_hash_passes = *section.max_hash_passes;
        match Basic::new(users.clone(), options) {
            Ok(basic) => {
                let id = section.id.clone();
                let scheme = Arc::new(basic.clone());
                self.add(BASIC, &id, &mut section, &source, (scheme, Records::Basic(basic, users)));
            }
            Err(error) => self.refuse(&source, BASIC, error.to_string()),
        }
    }

    pub(super) fn digest(&mut self, section: &schema::Digest) {
        let mut section = section.clone();
        let Some(source) = begins(&mut section) else { return };
        let Some(users) = self.users(DIGEST, &source, &section.users) else { return };
        let mut options = DigestOptions::default();
        options.realm.clone_from(&section.realm);
        options.nonce_lifetime = *section.nonce_lifetime;
        options.max_nonces = *section.max_nonces;
        options.max_user = *section.max_user;
        match Digest::new(users.clone(), options) {
            Ok(digest) => {
                let id = section.id.clone();
                let scheme = Arc::new(digest.clone());
                self.add(DIGEST, &id, &mut section, &source, (scheme, Records::Digest(digest, users)));
            }
            Err(error) => self.refuse(&source, DIGEST, error.to_string()),
        }
    }

    /// `None` if a user is not complete, or if a running scheme has lost its last one.
    fn users(&mut self, table: &str, source: &Source, users: &[User]) -> Option<Vec<StoredUser>> {
        if users.is_empty() {
            if self.is_running(table) {
                return None;
            }
            self.refuse(source, table, format!("no user is there; give it a [[{table}.user]]"));
            return None;
        }
        let (mut complete, mut names) = (Vec::new(), HashMap::new());
        for user in users.iter().filter(|user| !user.written.is_broken) {
            let place = user.written.source();
            // Each part is looked at whatever is wrong with the others, so that all mistakes are told at once.
            let name = user.name.as_deref();
            let is_again = match name {
                None => {
                    self.refuse(&place, &format!("{table}.user.name"), "missing");
                    false
                }
                Some(name) => match names.insert(name, user.name.source()) {
                    Some(first) => {
                        let text = format!("`{name}` is there twice; the first is at {first}");
                        self.refuse(user.name.source(), &format!("{table}.user.name"), text);
                        true
                    }
                    None => false,
                },
            };
            let key = format!("{table}.user.password");
            if user.password.is_none() {
                let whose = name.map(|name| format!(" for `{name}`")).unwrap_or_default();
                let text = format!("missing{whose}; `baton hash-password` makes one");
                self.refuse(&place, &key, text);
            }
            let password = self.secret(&user.password, &key);
            let (Some(name), Some(password), false) = (name, password, is_again) else { continue };
            let owner = user.owner.as_deref().unwrap_or(name);
            let scopes = user.scopes.iter().map(|scope| scope.to_string());
            complete.push(StoredUser::new(name, password.reveal()).owner(owner).scopes(scopes));
        }
        (complete.len() == users.len()).then_some(complete)
    }
}
