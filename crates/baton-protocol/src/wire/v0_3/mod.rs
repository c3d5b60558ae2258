//! The JSON of 0.3.
