//! Static bearer tokens.

use std::collections::HashMap;
use std::sync::Arc;

use baton_server::auth::{BearerTokens, ChosenSecret, KeySet, Scopes};

use super::{Planner, Records};
use crate::config::schema::{self, begins};

const TABLE: &str = "auth.bearer";

impl Planner<'_> {
    pub(super) fn bearer(&mut self, section: &schema::Bearer) {
        let mut section = section.clone();
        let Some(source) = begins(&mut section) else { return };
        if section.tokens.is_empty() {
            if self.is_running(TABLE) {
                return;
            }
            return self.refuse(&source, TABLE, "no token is there; give it an [[auth.bearer.token]]");
        }
        let keys = match KeySet::new() {
            Ok(keys) => keys,
            Err(error) => return self.refuse(&source, TABLE, error.to_string()),
        };
        let (mut ids, mut secrets) = (HashMap::new(), Vec::new());
        for token in section.tokens.iter().filter(|token| !token.written.is_broken) {
            let place = token.written.source();
            // Each part is looked at whatever is wrong with the others, so that all mistakes are told at once.
            let id = token.id.as_deref();
            match id {
                None => self.refuse(&place, "auth.bearer.token.id", "missing; it names the token in logs"),
                Some(id) => {
                    if let Some(first) = ids.insert(id, token.id.source()) {
                        let text = format!("`{id}` is there twice; the first is at {first}");
                        self.refuse(token.id.source(), "auth.bearer.token.id", text);
                    }
                }
            }
            if token.secret.is_none() {
                let whose = id.map(|id| format!(" for `{id}`")).unwrap_or_default();
                self.refuse(&place, "auth.bearer.token.secret", format!("missing{whose}"));
            }
            let secret = self.secret(&token.secret, "auth.bearer.token.secret");
            let (Some(id), Some(secret)) = (id, secret) else { continue };
            let owner = token.owner.as_deref().unwrap_or(id);
            let scopes = Scopes::of(token.scopes.iter().map(|scope| &**scope));
            if let Err(error) = keys.add_chosen(secret.reveal(), id, owner, scopes.clone()) {
                self.unusable(&token.secret, "auth.bearer.token.secret", &error);
            }
            secrets.push(ChosenSecret::new(secret.reveal(), id, owner, scopes));
        }
        let (id, keys) = (section.id.clone(), Arc::new(keys));
        let scheme = Arc::new(BearerTokens::new(Arc::clone(&keys)));
        self.add(TABLE, &id, &mut section, &source, (scheme, Records::Secrets(keys, secrets)));
    }
}
