//! What was sent and what came back, as a report shows it. Secrets are masked before they get here.

use serde::{Deserialize, Serialize};

/// Most bytes of a body that are kept.
pub const MOST_BODY: usize = 64 * 1024;
/// Most events of a stream that are kept.
pub const MOST_EVENTS: usize = 200;

/// One request and its answer, or why there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exchange {
    pub sent: Sent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Received>,
    /// Why nothing came, or why no more came.
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
    /// Cut where it is long, and said so.
    pub body: String,
}

/// Text of bytes that may be anything, cut where it is long.
pub fn shown(bytes: &[u8]) -> String {
    beginning_of(bytes, bytes.len())
}

/// The same of something of which only the beginning is at hand.
pub fn beginning_of(bytes: &[u8], whole: usize) -> String {
    let kept = &bytes[..bytes.len().min(MOST_BODY)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < whole {
        text.push_str(&format!("… ({} more bytes)", whole - kept.len()));
    }
    text
}
