//! Raw requests and answers.
//!
//! Requests are built by hand, member by member, and answers are read as plain JSON, or by a reader of protobuf of
//! the lab's own: no codec of Baton's server or client is used.

pub mod answer;
pub mod credentials;
pub mod curl;
pub mod detour;
mod digest;
pub mod errors;
pub mod evidence;
pub(crate) mod grpc;
pub mod json;
pub mod no_answer;
pub mod open;
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
pub use open::Open;
pub use probe::{Probe, ProbeOptions};
pub use request::Request;
pub use secrets::Secrets;
pub use trust::{Trust, TrustOptions};
