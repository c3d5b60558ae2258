//! Raw requests and answers.
//!
//! Requests are built by hand, member by member, and answers are read as plain JSON: no codec of Baton's server or
//! client is used.

pub mod answer;
pub mod credentials;
pub mod curl;
pub mod detour;
mod digest;
pub mod errors;
pub mod evidence;
pub mod json;
pub mod no_answer;
pub mod probe;
pub mod proto_json;
pub mod request;
pub mod secrets;
pub mod socket;
pub mod sse;
pub mod trust;

pub use answer::{Answer, WireError};
pub use credentials::{Credentials, Login};
pub use detour::Detour;
pub use evidence::{Exchange, Received, Sent};
pub use no_answer::NoAnswer;
pub use probe::{Probe, ProbeOptions};
pub use request::Request;
pub use secrets::Secrets;
pub use trust::{Trust, TrustOptions};
