//! A generation in one binding, as a scripted agent speaks it.

use std::fmt;

use crate::generation::{Binding, Generation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    pub generation: Generation,
    pub binding: Binding,
}

const fn variant(generation: Generation, binding: Binding) -> Variant {
    Variant { generation, binding }
}

impl Variant {
    pub const ALL: [Self; 5] = [
        variant(Generation::V1, Binding::Jsonrpc),
        variant(Generation::V1, Binding::Rest),
        variant(Generation::V0_3, Binding::Jsonrpc),
        variant(Generation::V0_3, Binding::Rest),
        variant(Generation::V0_1, Binding::Jsonrpc),
    ];

    /// Finds a variant by its name in addresses.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.to_string() == name)
    }

    pub fn is_rest(self) -> bool {
        self.binding == Binding::Rest
    }

    /// The beginning of the binding's paths; in 0.3 it is the version.
    pub fn prefix(self) -> &'static str {
        match (self.generation, self.binding) {
            (Generation::V0_3, Binding::Rest) => "/v1",
            _ => "",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.generation, self.binding)
    }
}
