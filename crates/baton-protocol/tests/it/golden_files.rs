use std::fs;
use std::path::{Path, PathBuf};

use baton_protocol::wire::dialect::Dialect;
use baton_protocol::{Error, ErrorKind};

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The `.json` files right inside a folder, sorted; empty when there is no such folder.
pub(crate) fn cases(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

pub(crate) fn content(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.strip_suffix('\n').unwrap_or_else(|| panic!("{} must end with a newline", path.display())).to_owned()
}

/// Reads the file and writes what was understood: that must be what is expected.
pub(crate) fn check(path: &Path, rewrite: impl Fn(&str) -> Result<Vec<u8>, Error>, expected: &str) {
    let text = content(path);
    let got = rewrite(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!got.contains(&b'\n') && !got.contains(&b'\r'), "{} would break an SSE line", path.display());
    assert_eq!(String::from_utf8(got).unwrap(), expected, "{}", path.display());
}

/// Every file of a folder is refused, naming the member and what to do. File names are `<object>.<case>.json`,
/// with `-` for the `/` of requests; `rewrite` gets the object.
pub(crate) fn check_refused(
    folder: &Path,
    objects: &[&str],
    rewrite: impl Fn(&str, &str) -> Result<Vec<u8>, Error>,
) {
    let files = cases(folder);
    assert!(!files.is_empty(), "nothing is refused in {}", folder.display());
    for path in files {
        let (name, shown) = (path.file_name().unwrap().to_str().unwrap(), path.display());
        let prefix = name.split('.').next().unwrap();
        let object = objects.iter().find(|object| object.replace('/', "-") == prefix).unwrap();
        let error = rewrite(object, &content(&path)).expect_err(name);
        let told: Vec<_> =
            error.violations(Dialect::V1).iter().map(|v| format!("{}: {}", v.field, v.description)).collect();
        assert_eq!(told, [content(&path.with_extension("expected"))], "{shown}");
        let kind = if object.starts_with("request/") {
            ErrorKind::InvalidParams
        } else {
            ErrorKind::InvalidAgentResponse
        };
        assert_eq!(error.kind(), kind, "{shown}");
        assert!(!error.to_string().contains("secret"), "{shown} repeats the payload: {error}");
    }
}

/// A folder without a row in the table would be a folder nobody checks.
pub(crate) fn check_folders(root: &Path, objects: &[&str], elsewhere: &[&str]) {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root).unwrap().chain(fs::read_dir(root.join("request")).unwrap()) {
        let path = entry.unwrap().path();
        folders.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
    }
    folders.retain(|folder| !["request", "refused"].contains(&folder.as_str()));
    folders.retain(|folder| !elsewhere.contains(&folder.as_str()));
    for folder in folders {
        assert!(objects.contains(&folder.as_str()), "{folder} is not in the table");
    }
}
