//! Why a caller is refused.

use baton_protocol::{Error, ErrorKind};
use http::{HeaderName, HeaderValue};

use super::principal::ReservedOwner;

/// Why a caller is refused: an error, and headers such as `WWW-Authenticate` that tell how to authenticate.
#[derive(Debug, Clone)]
pub struct Challenge {
    error: Error,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Challenge {
    /// A refusal without headers.
    pub fn new(error: Error) -> Self {
        Challenge { error, headers: Vec::new() }
    }

    /// Adds a header to the response, such as `WWW-Authenticate`.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The error that the caller gets.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The headers of the response, in order; a name may be there several times.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }
}

impl From<Error> for Challenge {
    fn from(error: Error) -> Self {
        Challenge::new(error)
    }
}

impl From<ReservedOwner> for Challenge {
    /// The reason is logged and not shown: the caller did not choose the name.
    fn from(error: ReservedOwner) -> Self {
        Challenge::new(Error::of(ErrorKind::Unauthenticated).with_log(error))
    }
}
