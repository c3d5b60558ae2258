//! baton-server
