//! The A2A client. Nothing is here yet.
