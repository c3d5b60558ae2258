//! What can be replaced in a scheme while it serves: secrets, users, names, keys. What is open of callers whose record stays
//! the same goes on.

use std::collections::HashMap;
use std::sync::Arc;

use baton_server::auth::jwt::Jwt;
use baton_server::auth::{Basic, ChosenSecret, Digest, KeySet, MutualTls, StoredUser};

/// The records of a scheme: a handle to replace them with, and those of the configuration.
#[derive(Debug, Clone)]
pub(super) enum Records {
    /// The scheme has none: it can only be replaced as a whole.
    None,
    Secrets(Arc<KeySet>, Vec<ChosenSecret>),
    Basic(Basic, Vec<StoredUser>),
    Digest(Digest, Vec<StoredUser>),
    Certificates(MutualTls, HashMap<String, String>),
    SigningKeys(Arc<Jwt>, String),
}

impl Records {
    /// The keys of the scheme's table that are records: a value, or a list of tables. All others are options.
    pub(super) fn keys(&self) -> &'static [&'static str] {
        match self {
            Records::None => &[],
            Records::Secrets(..) => &["token", "secret", "enabled"],
            Records::Basic(..) | Records::Digest(..) => &["user"],
            Records::Certificates(..) => &["client"],
            Records::SigningKeys(..) => &["jwks"],
        }
    }

    pub(super) fn is_like(&self, other: &Records) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Puts the records of `new` into the scheme of this one. Records of another kind change nothing.
    pub(super) fn follow(&mut self, new: &Records) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        match (self, new) {
            (Records::Secrets(keys, secrets), Records::Secrets(_, new)) => {
                keys.set_chosen(new).map_err(|error| text(&error))?;
                secrets.clone_from(new);
            }
            (Records::Basic(basic, users), Records::Basic(_, new)) => {
                basic.set_users(new.clone()).map_err(|error| text(&error))?;
                users.clone_from(new);
            }
            (Records::Digest(digest, users), Records::Digest(_, new)) => {
                digest.set_users(new.clone()).map_err(|error| text(&error))?;
                users.clone_from(new);
            }
            (Records::Certificates(mtls, owners), Records::Certificates(_, new)) => {
                mtls.set_owners(new);
                owners.clone_from(new);
            }
            (Records::SigningKeys(jwt, keys), Records::SigningKeys(_, new)) => {
                jwt.set_keys(new).map_err(|error| text(&error))?;
                keys.clone_from(new);
            }
            _ => {}
        }
        Ok(())
    }
}
