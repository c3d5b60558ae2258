//! A secret of the configuration: written there, in a file of its own (`@FILE`), or in a variable (`env:NAME`).

use std::cmp::Ordering;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::secret::kind;
use super::{Refused, Secret, Shown, Value};
use crate::config::environment::Variables;
use crate::config::file;

/// Where a secret is. A secret that is written here is hidden when it is shown. The name of a variable is not secret, nor is
/// that of a file that is there; a file that is not there may be a secret in the wrong place (`BATON_MASTER_KEY_FILE=SECRET`), or
/// one that begins with `@`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SecretText {
    Written(Secret),
    File(PathBuf),
    Variable(String),
}

impl SecretText {
    /// Begins an error about the secret: it names the file or the variable.
    pub(crate) fn whence(&self) -> String {
        match self {
            SecretText::Written(_) => String::new(),
            SecretText::File(path) => format!("{}: ", name_of_file(path)),
            SecretText::Variable(name) => format!("the variable {name}: "),
        }
    }

    /// The secret itself, which is one line of a file.
    pub(crate) fn read(&self, variables: &Variables) -> Result<Secret, String> {
        let secret = self.read_lines(variables)?;
        if matches!(self, SecretText::File(_)) && secret.reveal().contains('\n') {
            return Err(format!("{}it has more than one line", self.whence()));
        }
        Ok(secret)
    }

    /// The same for a secret that may have several lines, as a key in PEM has. A file's last line break does not count,
    /// because editors and `echo` add one.
    pub(crate) fn read_lines(&self, variables: &Variables) -> Result<Secret, String> {
        let text = match self {
            SecretText::Written(secret) => return Ok(secret.clone()),
            SecretText::File(path) => {
                let text = file::text_of(path).map_err(|reason| format!("{}{reason}", self.whence()))?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                text.strip_suffix('\r').unwrap_or(text).to_owned()
            }
            SecretText::Variable(name) => {
                let value = variables.get(name).ok_or_else(|| format!("the variable {name} is not set"))?;
                OsString::clone(value).into_string().map_err(|_| format!("{name} is not UTF-8 text"))?
            }
        };
        if text.is_empty() {
            return Err(format!("{}it is empty", self.whence()));
        }
        Ok(Secret::new(text))
    }
}

/// Names a file that should hold a secret.
pub(crate) fn name_of_file(path: &Path) -> String {
    if is_there(path) {
        format!("the file `{}`", path.display())
    } else {
        "the file (its name is not shown, since it may be the secret itself)".to_owned()
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Secrets have no order; bounds on them make no sense.
impl PartialOrd for SecretText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Value for SecretText {
    const SECRET: bool = true;

    fn expected() -> String {
        "a secret, or \"@FILE\" or \"env:NAME\" for where it is".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if text.is_empty() {
            return Err(vec![Refused::new("the secret is empty".to_owned())]);
        }
        if let Some(path) = text.strip_prefix('@') {
            return if path.is_empty() {
                Err(Self::refused("`@` alone"))
            } else {
                Ok(SecretText::File(path.into()))
            };
        }
        if let Some(name) = text.strip_prefix("env:") {
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            // What is refused may be a secret that begins like this by chance.
            return if is_name {
                Ok(SecretText::Variable(name.to_owned()))
            } else {
                Err(Self::refused("this text"))
            };
        }
        Ok(SecretText::Written(Secret::new(text)))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let text = value.as_str().ok_or_else(|| Self::refused(kind(value)))?;
        Self::from_text(text)
    }

    fn show(&self) -> Shown {
        match self {
            SecretText::Written(_) => Secret::show(),
            SecretText::File(path) if is_there(path) => Shown::text(format!("@{}", path.display())),
            SecretText::File(_) => Shown::text("@*** (there is no such file)"),
            SecretText::Variable(name) => Shown::text(format!("env:{name}")),
        }
    }

    fn rebase(&mut self, folder: &Path) {
        if let SecretText::File(path) = self {
            *path = folder.join(&*path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("line"), "from-file\n").unwrap();
        std::fs::write(path("windows"), "from-file\r\n").unwrap();
        std::fs::write(path("empty"), "\n").unwrap();
        std::fs::write(path("two"), "canary-1\ncanary-2\n").unwrap();
        let variables: Variables = [("SECRET".to_owned(), "from-variable".into())].into();
        let read = |text: &str| {
            let mut value = SecretText::from_text(text).unwrap();
            value.rebase(folder.path());
            value.read(&variables).map(|secret| secret.reveal().to_owned())
        };
        assert_eq!(read("as it is").unwrap(), "as it is");
        assert_eq!(read("$argon2id$v=19").unwrap(), "$argon2id$v=19");
        assert_eq!(read("@line").unwrap(), "from-file");
        assert_eq!(read("@windows").unwrap(), "from-file");
        assert_eq!(read("env:SECRET").unwrap(), "from-variable");
        assert_eq!(read("env:OTHER").unwrap_err(), "the variable OTHER is not set");
        for (file, reason) in [("empty", "it is empty"), ("two", "it has more than one line")] {
            let said = read(&format!("@{file}")).unwrap_err();
            assert_eq!(said, format!("the file `{}`: {reason}", path(file).display()));
        }
        assert_eq!(
            read("@canary").unwrap_err(),
            "the file (its name is not shown, since it may be the secret itself): No such file or directory (os error 2)"
        );
        assert_eq!(SecretText::from_text("").unwrap_err()[0].text, "the secret is empty");
    }

    #[test]
    fn a_secret_is_never_shown() {
        let value = SecretText::from_text("canary").unwrap();
        assert_eq!(value.show(), Shown::text("***"));
        assert!(!format!("{value:?}").contains("canary"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f").display().to_string();
        let shown = || SecretText::from_text(&format!("@{file}")).unwrap().show();
        assert_eq!(shown(), Shown::text("@*** (there is no such file)"));
        std::fs::write(&file, "canary").unwrap();
        assert_eq!(shown(), Shown::text(format!("@{file}")));
        for refused in ["@", "env:", "env:a canary"] {
            let refused = format!("{:?}", SecretText::from_text(refused).unwrap_err());
            assert!(!refused.contains("canary"), "{refused}");
        }
    }
}
