//! The configuration without a process around it: files, variables and flags in, values or messages out.

mod broken;
mod changes;
mod defaults;
mod followed;
mod layers;
mod listening;
mod show;

use std::path::Path;

use super::{Flag, Inputs, Loaded, Problems};

/// What `baton.toml` with this text, these variables and these flags come to.
fn load(
    text: &str,
    variables: &[(&str, &str)],
    flags: &[(&'static str, &'static str, &str)],
) -> Result<Loaded, Problems> {
    let flags = flags.iter().map(|(name, key, text)| Flag { name, key, text: (*text).to_owned() });
    let inputs = Inputs {
        flags: flags.collect(),
        variables: variables.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect(),
        ..Inputs::default()
    };
    let (loaded, problems) =
        inputs.apply_layers(Some((Path::new("baton.toml"), text)), None, Problems::default());
    problems.unless_any(loaded)
}

/// A file that must be right.
fn file(text: &str) -> Loaded {
    load(text, &[], &[]).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// All complaints, one per line.
fn complaints(loaded: Result<Loaded, Problems>) -> String {
    let problems = loaded.map(|_| ()).expect_err("something is wrong with it");
    problems.lines().collect::<Vec<_>>().join("\n")
}

/// With BATON_WRITE_GOLDEN, the file is written and then to be looked at.
fn write_golden(name: &str, text: &str) {
    if std::env::var_os("BATON_WRITE_GOLDEN").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests");
        std::fs::write(folder.join(name), text).unwrap();
    }
}
