//! Requests and answers for reports. Secrets are masked before.

use serde::{Deserialize, Serialize};

/// Most bytes of a body that are kept.
pub const MOST_BODY: usize = 64 * 1024;
/// Most events of a stream that are kept.
pub const MOST_EVENTS: usize = 200;

/// One request and its answer, or why there was none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exchange {
    pub sent: Sent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Received>,
    /// Why there was no answer, or why it is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sent {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Received {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Shortened if it is long, with a note.
    pub body: String,
}

/// Any bytes as text, shortened if they are long.
pub fn shown(bytes: &[u8]) -> String {
    beginning_of(bytes, bytes.len())
}

/// The same for data of which only the beginning is available.
pub fn beginning_of(bytes: &[u8], whole: usize) -> String {
    let kept = &bytes[..bytes.len().min(MOST_BODY)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < whole {
        text.push_str(&format!("… ({} more bytes)", whole - kept.len()));
    }
    text
}
