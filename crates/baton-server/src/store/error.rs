//! How a store fails.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a store operation failed. The texts are for logs, not for peers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// No space left: writes are refused, reads still work.
    Full(Cause),
    /// Failed for now; may work later.
    Unavailable(Cause),
    /// Stored data cannot be read.
    Damaged(Cause),
    /// Durability can no longer be promised; the process must end.
    Fatal(Cause),
}

/// What happened, and the error behind it if there is one. Two are equal if they say the same.
#[derive(Clone)]
pub struct Cause(Box<Told>);

#[derive(Clone)]
struct Told {
    text: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// [`StoreError::Full`], of a text or a [`Cause`].
    pub fn full(cause: impl Into<Cause>) -> Self {
        Self::Full(cause.into())
    }

    /// [`StoreError::Unavailable`], of a text or a [`Cause`].
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }

    /// [`StoreError::Damaged`], of a text or a [`Cause`].
    pub fn damaged(cause: impl Into<Cause>) -> Self {
        Self::Damaged(cause.into())
    }

    /// [`StoreError::Fatal`], of a text or a [`Cause`].
    pub fn fatal(cause: impl Into<Cause>) -> Self {
        Self::Fatal(cause.into())
    }

    fn cause(&self) -> &Cause {
        let (Self::Full(cause) | Self::Unavailable(cause) | Self::Damaged(cause) | Self::Fatal(cause)) = self;
        cause
    }
}

impl Cause {
    /// Says that this happened.
    pub fn new(text: impl Into<String>) -> Self {
        Cause(Box::new(Told { text: text.into(), source: None }))
    }

    /// Says what the error says.
    pub fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Cause::new(error.to_string()).with_source(error)
    }

    /// With the error behind it, which [`StoreError`] then gives as its source.
    pub fn with_source(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(error));
        self
    }

    /// The same in other words.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.0.text = text.into();
        self
    }

    /// What happened.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Cause::new(text)
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        Cause::new(text)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Cause {}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text(), f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Full(_) => "the store is full",
            Self::Unavailable(_) => "the store is unavailable",
            Self::Damaged(_) => "the store is damaged",
            Self::Fatal(_) => "the store failed for good",
        };
        write!(f, "{what}: {}", self.cause())
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause().0.source.as_deref().map(|error| error as _)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_error_behind_it_can_be_told_apart() {
        let error = StoreError::full(
            Cause::of(io::Error::from(io::ErrorKind::StorageFull)).with_text("tasks.db: no room"),
        );
        assert_eq!(error.to_string(), "the store is full: tasks.db: no room");
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        assert!(StoreError::damaged("bits rotted").source().is_none());
    }
}
