//! Forms of JSON that stay the same however it was written: what is hashed, and what will be signed.

pub mod jcs;
pub mod message_form;
