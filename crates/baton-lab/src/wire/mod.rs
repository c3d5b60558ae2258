//! Raw requests and what came back.
//!
//! Requests are built here by hand, member by member, and answers are read as plain JSON: no codec of the server's or
//! the client's stands between a case and the bytes.

pub mod answer;
pub mod curl;
pub mod detour;
pub mod errors;
pub mod evidence;
pub mod json;
pub mod probe;
pub mod proto_json;
pub mod request;
pub mod secrets;
pub mod sse;

pub use answer::{Answer, WireError};
pub use detour::Detour;
pub use evidence::{Exchange, Received, Sent};
pub use probe::{Credentials, Probe, ProbeOptions};
pub use request::Request;
pub use secrets::Secrets;
