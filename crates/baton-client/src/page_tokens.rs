//! Lists that lead in circles, or on and on, end here.

use std::collections::HashSet;

/// Pages may be empty although others follow, but not for ever.
const MOST_EMPTY_PAGES: usize = 100;
/// Tokens are kept to recognise them: no more than this, in bytes.
const MOST_TOKEN_BYTES: usize = 16 << 20;

/// The tokens of a list's pages, for programs that go through pages on their own. [`TaskPages`](crate::TaskPages) does it for
/// tasks.
#[derive(Debug, Default)]
pub struct PageTokens {
    seen: HashSet<String>,
    seen_bytes: usize,
    empty_pages: usize,
}

/// The list has no end: a token came a second time, too many pages were empty, or there are more tokens than can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent's list has no end: {0}")]
pub struct EndlessList(&'static str);

impl PageTokens {
    /// For a list that begins with the page of this token, or with the first.
    pub fn new(first: Option<&str>) -> Self {
        let mut tokens = PageTokens::default();
        tokens.seen.extend(first.map(str::to_owned));
        tokens
    }

    /// Takes the token that a page leads on with; `None` if that was the last page.
    pub fn follow(&mut self, next: &str, is_empty_page: bool) -> Result<Option<String>, EndlessList> {
        if next.is_empty() {
            return Ok(None);
        }
        self.empty_pages = if is_empty_page { self.empty_pages + 1 } else { 0 };
        self.seen_bytes += next.len();
        if self.empty_pages > MOST_EMPTY_PAGES {
            return Err(EndlessList("too many empty pages in a row"));
        }
        if self.seen_bytes > MOST_TOKEN_BYTES {
            return Err(EndlessList("more pages than can be remembered"));
        }
        match self.seen.insert(next.to_owned()) {
            true => Ok(Some(next.to_owned())),
            false => Err(EndlessList("a page leads back to an earlier one")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_lists_in_circles_are_recognised() {
        let mut tokens = PageTokens::new(Some("a"));
        assert_eq!(tokens.follow("b", false), Ok(Some("b".to_owned())));
        assert_eq!(tokens.follow("c", false), Ok(Some("c".to_owned())));
        assert!(tokens.follow("b", false).is_err());
        assert!(tokens.follow("a", false).is_err());
        assert_eq!(tokens.follow("", true), Ok(None));
    }

    #[test]
    fn p09_lists_that_only_go_on_are_given_up() {
        let mut tokens = PageTokens::new(None);
        let followed = (0..=MOST_EMPTY_PAGES).map(|number| tokens.follow(&number.to_string(), true));
        assert_eq!(followed.filter(Result::is_err).count(), 1);
        let mut tokens = PageTokens::new(None);
        let large = "x".repeat(MOST_TOKEN_BYTES / 4);
        let followed = (0..5).map(|number| tokens.follow(&format!("{number}{large}"), false));
        assert!(followed.filter(Result::is_err).count() > 0);
    }
}
