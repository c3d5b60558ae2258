//! The generations and bindings of a case.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A generation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Generation {
    #[serde(rename = "1.0")]
    V1,
    #[serde(rename = "0.3")]
    V0_3,
    #[serde(rename = "0.1")]
    V0_1,
}

/// A protocol binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    Jsonrpc,
    Rest,
    Grpc,
}

impl Generation {
    pub const ALL: [Self; 3] = [Self::V1, Self::V0_3, Self::V0_1];

    pub fn version(self) -> &'static str {
        match self {
            Self::V1 => "1.0",
            Self::V0_3 => "0.3",
            Self::V0_1 => "0.1",
        }
    }
}

impl Binding {
    pub const ALL: [Self; 3] = [Self::Jsonrpc, Self::Rest, Self::Grpc];

    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::Rest => "rest",
            Self::Grpc => "grpc",
        }
    }

    /// The name in cards.
    pub fn in_cards(self) -> &'static str {
        match self {
            Self::Jsonrpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Generation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|generation| {
            let digits = |text: &str| text.trim_start_matches(['v', 'V']).replace('_', ".");
            digits(text) == generation.version()
        });
        known.ok_or_else(|| format!("`{text}` is no generation; there are 1.0, 0.3 and 0.1"))
    }
}

impl FromStr for Binding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "jsonrpc" | "json-rpc" => Ok(Self::Jsonrpc),
            "rest" | "http+json" | "http-json" => Ok(Self::Rest),
            "grpc" => Ok(Self::Grpc),
            _ => Err(format!("`{text}` is no binding; there are jsonrpc, rest and grpc")),
        }
    }
}
