//! Why there was no answer.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// There was no answer; the text is the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NoAnswer {
    pub why: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The agent's certificate is not trusted.
    Untrusted,
    /// The other side does not speak TLS.
    NotTls,
    /// The TLS handshake failed because of the caller's certificate, or because it had none.
    CallerRefused,
    Other,
}

impl NoAnswer {
    pub fn new(why: impl Into<String>) -> Self {
        NoAnswer { why: why.into(), kind: Kind::Other }
    }

    /// Describes the innermost cause, which is the most informative.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        if let Some(tls) = tls_inside(error) {
            return of_tls(tls);
        }
        let (mut why, mut cause) = (error.to_string(), error.source());
        while let Some(inner) = cause {
            why = inner.to_string();
            cause = inner.source();
        }
        Self::new(why)
    }
}

/// The TLS error that is the reason. An I/O error does not name the error that it holds as its source.
fn tls_inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(tls) = error.downcast_ref() {
        return Some(tls);
    }
    let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let held = held.map(|held| -> &(dyn Error + 'static) { held });
    held.or_else(|| error.source()).and_then(tls_inside)
}

fn of_tls(error: &rustls::Error) -> NoAnswer {
    let (kind, why) = match error {
        rustls::Error::InvalidCertificate(reason) => {
            (Kind::Untrusted, format!("its certificate is not trusted: {}", in_words(reason)))
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            (Kind::NotTls, "what answers there does not speak TLS".to_owned())
        }
        rustls::Error::AlertReceived(alert) if is_about_the_caller(*alert) => {
            let why =
                format!("the agent refused the TLS connection because of the client certificate ({alert:?})");
            (Kind::CallerRefused, why)
        }
        other => (Kind::Other, other.to_string()),
    };
    NoAnswer { why, kind }
}

fn is_about_the_caller(alert: AlertDescription) -> bool {
    use AlertDescription as A;
    matches!(
        alert,
        A::CertificateRequired
            | A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::AccessDenied
            // How TLS 1.2 says that a certificate is needed.
            | A::HandshakeFailure
    )
}

fn in_words(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => {
            "no certificate authority known here has signed it (it may be self-signed)".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("it is for {}, not for {}", presented.join(", "), expected.to_str())
        }
        CertificateError::NotValidForName => "it is for another name".to_owned(),
        CertificateError::Revoked => "it was revoked".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_inside() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        assert_eq!(NoAnswer::of(&wrapped).kind, Kind::Untrusted);
        let tls = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        let found = NoAnswer::of(&io::Error::new(io::ErrorKind::InvalidData, tls));
        assert_eq!(found.kind, Kind::CallerRefused);
        assert_eq!(NoAnswer::of(&io::Error::other("gone")), NoAnswer::new("gone"));
    }
}
