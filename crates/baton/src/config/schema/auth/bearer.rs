//! `[auth.bearer]`.

use super::begins;
use crate::config::setting::{Place, Section, Setting, Visit};
use crate::config::value::{Id, SecretText, Word};

/// Static bearer tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bearer {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) place: Option<Place>,
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
    pub(crate) place: Option<Place>,
    pub(crate) broken: bool,
}

impl Section for Bearer {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.list("token", &mut self.tokens);
    }

    fn placed(&mut self, place: Place) {
        self.place = Some(place);
    }

    fn is_there(&mut self) -> bool {
        begins(self.place.clone().as_ref(), self).is_some()
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

    fn placed(&mut self, place: Place) {
        self.place = Some(place);
    }

    fn broken(&mut self) {
        self.broken = true;
    }
}
