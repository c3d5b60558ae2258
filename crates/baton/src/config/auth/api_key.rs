//! API keys: a secret of the operator's, and the keys of the store.

use std::fmt;
use std::sync::Arc;

use baton_server::auth::{ApiKeys, ChosenSecret, KeySet, Scopes};

use super::{AuthPlan, Planner, Records};
use crate::commands::serve::first_call::word;
use crate::config::schema::{self, begins};
use crate::config::setting::{Setting, Source};
use crate::config::value::{Id, KeyLocation, SecretText, Value as _};

pub(super) const TABLE: &str = "auth.api_key";

/// The scheme's name on cards, unless it is configured.
pub(super) const NAME: &str = "apiKey";

/// The owner of what callers with the configured secret store. One secret is one owner. It is not the owner of anonymous
/// callers: their tasks were open to everybody, and nobody knows whose they are.
const OWNER: &str = "default";

/// The keys of the store; known only after it is open.
#[derive(Debug, Clone)]
pub(crate) struct StoredKeys {
    pub(crate) keys: Arc<KeySet>,
    /// Whether there is any, revoked ones included: revoking the last one must not let everybody in.
    pub(crate) any: bool,
}

/// Where callers send their key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    Header(String),
    Query(String),
    Cookie(String),
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyPlace::Header(name) => write!(f, "in the header {name}"),
            KeyPlace::Query(name) => write!(f, "as {name} in the query"),
            KeyPlace::Cookie(name) => write!(f, "in the cookie {name}"),
        }
    }
}

impl KeyPlace {
    /// For `curl`: what follows the URL, and the flags. `key` is a key or a variable of the shell.
    pub(crate) fn curl(&self, key: &str) -> (String, String) {
        match self {
            KeyPlace::Header(name) => (String::new(), format!(" -H \"{name}: {key}\"")),
            KeyPlace::Query(name) => (format!("?{name}={key}"), String::new()),
            KeyPlace::Cookie(name) => (String::new(), format!(" -b \"{name}={key}\"")),
        }
    }
}

impl schema::ApiKey {
    /// Whether the configuration switches keys on or off; `None`: it says nothing, and the store decides.
    pub(crate) fn is_on(&self) -> Option<bool> {
        let begins = begins(&mut self.clone());
        self.enabled.or(begins.is_some().then_some(true))
    }

    pub(crate) fn place(&self) -> KeyPlace {
        let name = |usual: &str| self.name.as_deref().unwrap_or(usual).to_owned();
        match *self.location {
            KeyLocation::Header => KeyPlace::Header(name("X-API-Key")),
            KeyLocation::Query => KeyPlace::Query(name("api_key")),
            KeyLocation::Cookie => KeyPlace::Cookie(name("api_key")),
        }
    }

    /// How a shell finds the key, and the variable that has to be set for that.
    pub(crate) fn in_shell(&self) -> (String, Option<&'static str>) {
        match self.secret.as_ref() {
            Some(SecretText::File(path)) => (format!("$(cat {})", word(&path.to_string_lossy())), None),
            Some(SecretText::Variable(name)) => (format!("${name}"), None),
            Some(SecretText::Written(_)) | None => ("$BATON_API_KEY".to_owned(), Some("BATON_API_KEY")),
        }
    }

    fn scheme(&self, keys: Arc<KeySet>) -> Result<ApiKeys, String> {
        match self.place() {
            KeyPlace::Header(name) => {
                ApiKeys::header(&name, keys).map_err(|_| format!("`{name}` is not the name of a header"))
            }
            KeyPlace::Query(name) | KeyPlace::Cookie(name) if !is_plain(&name) => {
                Err(format!("`{name}` is not a plain name: letters, digits, `_` and `-`"))
            }
            KeyPlace::Query(name) => Ok(ApiKeys::query(&name, keys)),
            KeyPlace::Cookie(name) => Ok(ApiKeys::cookie(&name, keys)),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl Planner<'_> {
    pub(super) fn api_key(&mut self, section: &schema::ApiKey, stored: Option<&StoredKeys>) {
        if *section.enabled == Some(false) && section.secret.is_some() {
            let text = "keys are switched off (`auth.api_key.enabled = false`), so this secret would protect nothing";
            return self.refuse(section.secret.source(), "auth.api_key.secret", text);
        }
        if !section.is_on().unwrap_or(stored.is_some_and(|stored| stored.any)) {
            return;
        }
        let mut section = section.clone();
        let source = begins(&mut section).unwrap_or(Source::Default);
        let keys = match KeySet::new() {
            Ok(keys) => keys,
            Err(error) => return self.refuse(&source, TABLE, error.to_string()),
        };
        let mut secrets = Vec::new();
        if section.secret.is_some() {
            let Some(secret) = self.secret(&section.secret, "auth.api_key.secret") else { return };
            if let Err(error) = keys.add_chosen(secret.reveal(), TABLE, OWNER, Scopes::default()) {
                return self.unusable(&section.secret, "auth.api_key.secret", &error);
            }
            secrets.push(ChosenSecret::new(secret.reveal(), TABLE, OWNER, Scopes::default()));
        }
        // Keys of the store first: they are looked up without hashing what is not one of them.
        let chosen = Arc::new(keys);
        let made = match stored {
            Some(stored) => {
                section.scheme(Arc::clone(&stored.keys)).map(|scheme| scheme.and(Arc::clone(&chosen)))
            }
            None => section.scheme(Arc::clone(&chosen)),
        };
        let scheme = match made {
            Ok(scheme) => scheme,
            Err(text) => return self.refuse(section.name.source(), "auth.api_key.name", text),
        };
        let id = match section.id.is_some() {
            true => section.id.clone(),
            false => Setting::new(Id::from_text(NAME).ok()),
        };
        // No part of the scheme, which is the same with another one.
        section.max_keys = schema::ApiKey::default().max_keys;
        let records = Records::Secrets(chosen, secrets);
        self.add(TABLE, &id, &mut section, &source, (Arc::new(scheme), records));
    }
}

impl AuthPlan {
    /// Whether callers can authenticate with keys.
    pub(crate) fn takes_keys(&self) -> bool {
        self.schemes.iter().any(|plan| plan.table == TABLE)
    }
}
