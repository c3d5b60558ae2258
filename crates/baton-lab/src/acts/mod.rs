//! ACTS documents: reading them, and what their expectations mean.
//!
//! The published draft and the official files disagree with each other and with the protocol; where that matters,
//! [`corrections`] lists what is done about it, by name.

pub mod assertion;
pub mod condition;
pub mod corrections;
pub mod document;
pub mod execute;
pub mod path;
pub mod reading;
pub mod stream;
pub mod variables;
