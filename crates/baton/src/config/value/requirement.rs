//! What a caller needs: schemes that are all necessary, each with its scopes.

use baton_protocol::domain::security::SecurityRequirement;

use super::{Refused, Shown, Value, quoted};

/// The word for "no credential at all".
const NONE: &str = "none";

/// `jwt`, `jwt(read write)`, `jwt(read)+mtls`, or `none`. A list of them is met if one is.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct Requirement(Vec<(String, Vec<String>)>);

impl Requirement {
    /// As cards have it.
    pub(crate) fn on_card(&self) -> SecurityRequirement {
        SecurityRequirement { schemes: self.0.clone() }
    }

    /// The names of its schemes.
    pub(crate) fn schemes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl Value for Requirement {
    fn expected() -> String {
        "schemes such as \"apiKey\", \"jwt(read write)\" or \"jwt+mtls\", or \"none\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if text.trim() == NONE {
            return Ok(Requirement(Vec::new()));
        }
        let schemes: Option<Vec<_>> = text.split('+').map(scheme).collect();
        let schemes = schemes.ok_or_else(|| Self::refused(&quoted(text)))?;
        let is_twice = |at: usize| schemes[..at].iter().any(|(name, _)| *name == schemes[at].0);
        if (0..schemes.len()).any(is_twice) {
            return Err(Self::refused_because(text, "a scheme is there twice"));
        }
        Ok(Requirement(schemes))
    }

    fn show(&self) -> Shown {
        let scheme = |(name, scopes): &(String, Vec<String>)| match &scopes[..] {
            [] => name.clone(),
            scopes => format!("{name}({})", scopes.join(" ")),
        };
        match &self.0[..] {
            [] => Shown::text(NONE),
            schemes => Shown::text(schemes.iter().map(scheme).collect::<Vec<_>>().join("+")),
        }
    }
}

/// `name` or `name(scope scope)`.
fn scheme(text: &str) -> Option<(String, Vec<String>)> {
    let text = text.trim();
    let (name, scopes) = match text.split_once('(') {
        Some((name, rest)) => (name.trim_end(), Some(rest.strip_suffix(')')?)),
        None => (text, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name == NONE || name.len() > 64 || !name.bytes().all(is_name) {
        return None;
    }
    let scopes: Vec<_> = scopes.into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
    // What a scope may have: RFC 6749, section 3.3. Brackets and `+` would not be read again.
    let is_scope = |byte: u8| byte.is_ascii_graphic() && !b"\"\\()+,".contains(&byte);
    let readable = scopes.iter().all(|scope| scope.bytes().all(is_scope));
    (readable && !(text.ends_with(')') && scopes.is_empty())).then(|| (name.to_owned(), scopes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p05_requirements_are_read_and_written() {
        for (text, schemes) in [
            ("none", &[][..]),
            ("api_key", &[("api_key", &[][..])]),
            ("jwt(read)", &[("jwt", &["read"])]),
            (" jwt ( read  tasks:write ) ", &[("jwt", &["read", "tasks:write"])]),
            ("jwt(read)+mtls", &[("jwt", &["read"]), ("mtls", &[])]),
            ("a + b + c", &[("a", &[]), ("b", &[]), ("c", &[])]),
        ] {
            let read = Requirement::from_text(text).unwrap();
            let owned = |(name, scopes): &(&str, &[&str])| {
                ((*name).to_owned(), scopes.iter().map(|scope| (*scope).to_owned()).collect::<Vec<_>>())
            };
            assert_eq!(read.on_card().schemes, schemes.iter().map(owned).collect::<Vec<_>>(), "{text}");
            let Shown::Text(shown) = read.show() else { panic!("{read:?}") };
            assert_eq!(Requirement::from_text(&shown).unwrap(), read);
        }
        for text in
            ["", " ", "+", "a+", "a+none", "a()", "a(", "a(b", "a)b", "a(b)c", "a b", "a+a", "a(b,c)", "ä"]
        {
            assert!(Requirement::from_text(text).is_err(), "{text:?}");
        }
    }
}
