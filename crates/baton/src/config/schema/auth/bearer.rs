//! `[auth.bearer]`.

use super::begins;
use crate::config::setting::{Section, Setting, Visit, Written};
use crate::config::value::{Id, SecretText, Word};

/// Static bearer tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bearer {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) written: Written,
}

/// A bearer token, and whose it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Token {
    /// Names it in logs.
    pub(crate) id: Setting<Option<Word>>,
    pub(crate) secret: Setting<Option<SecretText>>,
    /// The id by default.
    pub(crate) owner: Setting<Option<Word>>,
    pub(crate) scopes: Setting<Vec<Word>>,
    pub(crate) written: Written,
}

impl Section for Bearer {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.list("token", &mut self.tokens);
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }

    fn is_there(&mut self) -> bool {
        begins(self).is_some()
    }
}

impl Section for Token {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("secret", &mut self.secret);
        visit.field("owner", &mut self.owner);
        visit.field("scopes", &mut self.scopes);
    }

    fn label(&self) -> Option<String> {
        self.id.as_deref().map(str::to_owned)
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }
}
