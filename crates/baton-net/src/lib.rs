#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod accept;
mod answers;
mod application;
mod authority;
mod bodies;
mod body_room;
mod caps;
mod client_certificates;
mod connection;
mod cors;
mod customer;
mod executor;
mod frames;
mod framing;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod half_close;
mod head;
mod hosts;
#[cfg(test)]
mod hyper_reliance;
mod in_flight;
mod lent;
mod network;
mod options;
mod patience;
mod preface;
mod proxy;
mod pulse;
mod refusal;
mod requests;
mod settings;
mod socket;
#[cfg(feature = "tls")]
mod tls;
mod transport;

pub use axum_core::body::Body;

pub use answers::{Asker, NoRoom, SMALL, Share};
pub use application::{Application, Observer};
pub use caps::one_customer;
pub use client_certificates::ClientCertificates;
pub use customer::Customer;
pub use in_flight::TooManyRequests;
pub use network::Network;
pub use options::{Connections, Cors};
pub use proxy::{BadRange, IpRange, forwarded_base, forwarded_for, is_forwarded};
pub use settings::{BadSetting, CorsAnswers, OpenPaths, Settings};
#[cfg(feature = "tls")]
pub use tls::Tls;
