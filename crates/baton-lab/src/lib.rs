//! baton-lab
