//! Where the administration socket is.

use std::path::{Path, PathBuf};

use super::{Refused, Shown, Value};

/// Where `baton key` finds the running server.
#[derive(Debug, Clone, Default, PartialEq, PartialOrd)]
pub(crate) enum AdminSocket {
    /// Beside the store's file; a store in memory has none.
    #[default]
    Auto,
    Off,
    At(PathBuf),
}

impl Value for AdminSocket {
    fn expected() -> String {
        "\"auto\", \"off\" or a path".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        match text {
            "" => Err(Self::refused("nothing")),
            "auto" => Ok(AdminSocket::Auto),
            "off" => Ok(AdminSocket::Off),
            path => Ok(AdminSocket::At(path.into())),
        }
    }

    fn show(&self) -> Shown {
        match self {
            AdminSocket::Auto => Shown::text("auto"),
            AdminSocket::Off => Shown::text("off"),
            AdminSocket::At(path) => Shown::text(path.display().to_string()),
        }
    }

    fn rebase(&mut self, folder: &Path) {
        if let AdminSocket::At(path) = self {
            *path = folder.join(&*path);
        }
    }
}
