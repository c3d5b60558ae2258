//! A target of the fuzzers: the text of a configuration file. What is wrong is told with a line that is there; what is
//! right is shown as a file that means the same.

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
        Ok(Loaded { mut config, .. }) => {
            let _ = show_json(&mut config, true);
            let shown = show_toml(&mut config, true);
            // Secrets are not shown, so they cannot be read again.
            if shown.contains("***") {
                return;
            }
            let again = load(&shown).unwrap_or_else(|problems| panic!("{problems}\n{shown}"));
            let different = changes(&config, &again.config);
            assert_eq!(different, Changes::default(), "{shown}");
        }
    }
}

fn load(text: &str) -> Result<Loaded, Problems> {
    let (loaded, problems) =
        Inputs::default().lay(Some((Path::new("baton.toml"), text)), Problems::default());
    problems.unless_any(loaded)
}
