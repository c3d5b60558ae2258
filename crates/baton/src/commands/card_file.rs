//! `--card FILE`: the agent's card, written in the JSON of any generation.

use std::path::{Path, PathBuf};

use baton_protocol::domain::AgentCard;
use baton_protocol::wire::card;

use crate::exit::Failure;

/// Larger than any card somebody would write.
const MOST_BYTES: u64 = 1024 * 1024;

pub(crate) struct CardFile {
    path: PathBuf,
    text: String,
    pub(crate) card: AgentCard,
}

impl CardFile {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let refused = |reason: String| Failure::usage(format!("--card {shown}: {reason}"));
        let size = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(refused(format!("{size} bytes is more than a card may have ({MOST_BYTES})")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        let (_, card) = card::read_any(&text).map_err(|error| refused(error.to_string()))?;
        Ok(CardFile { path: path.to_owned(), text, card })
    }

    /// A refusal that begins with a member's path, with the line that member stands in.
    pub(crate) fn name_line(&self, refusal: &str) -> String {
        let (path, shown) = (refusal.split(':').next().unwrap_or_default(), self.path.display());
        let member = path.rsplit('.').next().unwrap_or_default();
        match self.text.lines().position(|line| line.contains(&format!("\"{member}\""))) {
            Some(line) if !member.is_empty() => format!("{shown}, line {}: {refusal}", line + 1),
            _ => format!("{shown}: {refusal}"),
        }
    }
}
