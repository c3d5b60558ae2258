//! A fuzz target: the text of a configuration file. Errors must name an existing line; a valid file must be shown as a
//! file with the same meaning.

use std::path::Path;

use super::change::Changes;
use super::{Inputs, Loaded, Problems, changes, show_json, show_toml};

pub(crate) fn file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match load(text) {
        Err(problems) => {
            let last = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            for line in problems.lines() {
                assert!(!line.trim().is_empty() && line.len() < 4000, "{line:?}");
                let number =
                    line.strip_prefix("baton.toml:").and_then(|rest| rest.split(':').next()?.parse().ok());
                assert!(number.is_none_or(|number: usize| number <= last), "{line}, of {last} lines");
            }
        }
        Ok(Loaded { mut config, auth, .. }) => {
            let _ = show_json(&mut config, true);
            let shown = show_toml(&mut config, true);
            // Secrets are hidden, so such a file cannot be read again.
            if shown.contains("***") {
                return;
            }
            let again = load(&shown).unwrap_or_else(|problems| panic!("{problems}\n{shown}"));
            let different = changes(&config, &again.config);
            assert_eq!(different, Changes::default(), "{shown}");
            // A table that is shown though it was not written would switch a scheme on.
            assert!(auth.names().eq(again.auth.names()), "{shown}");
        }
    }
}

fn load(text: &str) -> Result<Loaded, Problems> {
    let (loaded, problems) =
        Inputs::default().apply_layers(Some((Path::new("baton.toml"), text)), None, Problems::default());
    problems.unless_any(loaded)
}
