//! baton-protocol
