//! Signatures of webhooks, as the Standard Webhooks specification 1.0 describes them: HMAC-SHA256 over id, time and body,
//! with a secret that sender and receiver share.
//!
//! No clock in here: the time of an attempt is an argument, and so is the receiver's time.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The header with the id of an event. It is the same at every attempt.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures, separated by spaces.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

const PREFIX: &str = "whsec_";
/// How the text of a signature begins: the version of the scheme.
const VERSION: &str = "v1,";
/// The sizes of secrets that the specification allows.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Longest id.
const MAX_ID_BYTES: usize = 256;
/// Most signatures that are looked at: senders have one for each secret, the current one and the one before.
const MAX_SIGNATURES: usize = 16;

/// Secrets come from people, who sometimes lose the padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret that sender and receiver of webhooks share. Its text begins with `whsec_`.
#[derive(Clone)]
pub struct WebhookSecret {
    bytes: Vec<u8>,
    /// With the secret already taken in: that is half of the work for a short body.
    mac: Hmac<Sha256>,
}

/// A text or bytes that cannot be a secret. It does not say which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret is `whsec_` and 24 to 64 bytes as base64")]
pub struct BadSecret;

impl WebhookSecret {
    /// Takes 24 to 64 bytes, which should be random.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, BadSecret> {
        let bytes = bytes.into();
        if !SECRET_BYTES.contains(&bytes.len()) {
            return Err(BadSecret);
        }
        let mac = Hmac::new_from_slice(&bytes).map_err(|_| BadSecret)?;
        Ok(WebhookSecret { bytes, mac })
    }

    /// Reads `whsec_…`; the prefix may be missing.
    pub fn parse(text: &str) -> Result<Self, BadSecret> {
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        Self::new(LENIENT.decode(encoded).map_err(|_| BadSecret)?)
    }

    /// The text to give to a receiver. The secret is not shown in any other way.
    pub fn to_text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.bytes))
    }

    fn mac(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// True if a text can be the id of a webhook: visible ASCII characters without a full stop. A full stop would let one part
/// of what is signed pass for another.
pub fn is_webhook_id(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.')
}

/// The value of `webhook-signature`, with one signature for each secret. Two secrets are used while a receiver changes from
/// one to the other.
///
/// The id must be one by [`is_webhook_id`]: receivers refuse others.
pub fn sign<'a>(
    secrets: impl IntoIterator<Item = &'a WebhookSecret>,
    id: &str,
    timestamp: u64,
    body: &[u8],
) -> String {
    debug_assert!(is_webhook_id(id), "{id:?}");
    let timestamp = timestamp.to_string();
    let mut value = String::with_capacity(48);
    for secret in secrets {
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(VERSION);
        STANDARD.encode_string(secret.mac(id, &timestamp, body).finalize().into_bytes(), &mut value);
    }
    value
}

/// The headers of a webhook, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedHeaders<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

/// Why a webhook is not what its sender signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadWebhook {
    #[error("its id is not one")]
    Id,
    #[error("its time is not a number of seconds")]
    Timestamp,
    #[error("it was sent too long ago")]
    TooOld,
    #[error("it was sent in the future")]
    TooNew,
    #[error("none of its signatures is by a known secret")]
    Signature,
}

/// Verifies a webhook: one of its signatures is by one of the secrets, and it was sent about now. Returns the time at which
/// it was sent, in seconds since 1970, as `now` is. Signatures are compared in constant time.
pub fn verify<'a>(
    secrets: impl IntoIterator<Item = &'a WebhookSecret>,
    headers: &SignedHeaders<'_>,
    body: &[u8],
    now: u64,
    tolerance: Duration,
) -> Result<u64, BadWebhook> {
    if !is_webhook_id(headers.id) {
        return Err(BadWebhook::Id);
    }
    let timestamp = read_timestamp(headers.timestamp).ok_or(BadWebhook::Timestamp)?;
    if timestamp.saturating_add(tolerance.as_secs()) < now {
        return Err(BadWebhook::TooOld);
    }
    if timestamp > now.saturating_add(tolerance.as_secs()) {
        return Err(BadWebhook::TooNew);
    }
    // Signatures of other versions are left to receivers that know them.
    let signatures: Vec<Vec<u8>> = (headers.signature.split(' ').take(MAX_SIGNATURES))
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix(VERSION)?).ok())
        .collect();
    for secret in secrets {
        let mac = secret.mac(headers.id, headers.timestamp, body);
        if signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok()) {
            return Ok(timestamp);
        }
    }
    Err(BadWebhook::Signature)
}

/// Digits as a sender writes them: no sign, no leading zero, no spaces.
fn read_timestamp(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Duration = Duration::from_secs(300);

    fn secret(text: &str) -> WebhookSecret {
        WebhookSecret::parse(text).unwrap()
    }

    /// The first vector is the one that the public libraries of the specification share; the others were made with
    /// Python's `hmac`.
    #[test]
    fn signatures_are_those_of_other_implementations() {
        let all_bytes: Vec<u8> = (0..=255).collect();
        let rows: [(&str, &str, u64, &[u8], &str); 5] = [
            (
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                br#"{"test": 2432232314}"#,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            // Id, time and body of the example in the specification's text.
            (
                "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4",
                "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
                1_674_087_231,
                br#"{"type":"contact.created","timestamp":"2022-11-03T20:26:10.344522Z","data":{"id":"1f81eb52-5198-4599-803e-771906343485"}}"#,
                "v1,kMYOmyquhyoUlSWLehLeSXoXGrS0nRJjaoDbiBOFLhA=",
            ),
            (
                "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
                "wh_1",
                1_700_000_000,
                br#"{"task":{"id":"t"}}"#,
                "v1,MUy4EgWI3Qhej894t+u0Y4PjT/bB7bYBv2aezCopxzM=",
            ),
            (
                "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
                "wh_1",
                1_700_000_000,
                b"",
                "v1,P+YRFCSdZxYmh+rEoywMi/b/DV+qfj6If0kshrV+k+o=",
            ),
            (
                "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
                "a",
                0,
                &all_bytes,
                "v1,XdvGC9qsFdChSCD2Kv4K5t3DmIVcX0mIK+Y+8LLXQgc=",
            ),
        ];
        for (text, id, timestamp, body, expected) in rows {
            let secret = secret(text);
            assert_eq!(sign([&secret], id, timestamp, body), expected, "{id}");
            let time = timestamp.to_string();
            let headers = SignedHeaders { id, timestamp: &time, signature: expected };
            assert_eq!(verify([&secret], &headers, body, timestamp, TOLERANCE), Ok(timestamp), "{id}");
        }
    }

    #[test]
    fn anything_that_was_changed_is_refused() {
        let (secret, other) = (WebhookSecret::new([1; 32]).unwrap(), WebhookSecret::new([2; 32]).unwrap());
        let (id, time, body) = ("wh_1", 1_700_000_000, br#"{"task":{}}"#.as_slice());
        let signature = sign([&secret], id, time, body);
        let judge = |id: &str, timestamp: &str, signature: &str, body: &[u8]| {
            verify([&secret], &SignedHeaders { id, timestamp, signature }, body, time, TOLERANCE)
        };
        assert_eq!(judge(id, "1700000000", &signature, body), Ok(time));
        let changed: [(&str, &str, &str, &[u8], BadWebhook); 22] = [
            ("wh_2", "1700000000", &signature, body, BadWebhook::Signature),
            (id, "1700000001", &signature, body, BadWebhook::Signature),
            (id, "1700000000", &signature, &body[1..], BadWebhook::Signature),
            (id, "1700000000", &signature, &body[..body.len() - 1], BadWebhook::Signature),
            (id, "1700000000", &signature, b"", BadWebhook::Signature),
            // The full stop moved: the same bytes are signed, so nothing but the check of the id tells them apart.
            ("wh_1.1700000000", "1700000000", &signature, body, BadWebhook::Id),
            ("", "1700000000", &signature, body, BadWebhook::Id),
            ("wh 1", "1700000000", &signature, body, BadWebhook::Id),
            ("wh_é", "1700000000", &signature, body, BadWebhook::Id),
            (id, "", &signature, body, BadWebhook::Timestamp),
            (id, "01700000000", &signature, body, BadWebhook::Timestamp),
            (id, "+1700000000", &signature, body, BadWebhook::Timestamp),
            (id, " 1700000000", &signature, body, BadWebhook::Timestamp),
            (id, "1700000000.0", &signature, body, BadWebhook::Timestamp),
            (id, "99999999999999999999", &signature, body, BadWebhook::Timestamp),
            (id, "1700000000", "", body, BadWebhook::Signature),
            (id, "1700000000", "v1,", body, BadWebhook::Signature),
            (id, "1700000000", &signature[3..], body, BadWebhook::Signature),
            (id, "1700000000", &signature.replace("v1,", "v2,"), body, BadWebhook::Signature),
            (id, "1700000000", &signature.replace("v1,", "v1a,"), body, BadWebhook::Signature),
            (id, "1700000000", &signature[..signature.len() - 4], body, BadWebhook::Signature),
            (id, "1700000000", &sign([&other], id, time, body), body, BadWebhook::Signature),
        ];
        for (id, timestamp, signature, body, expected) in changed {
            assert_eq!(judge(id, timestamp, signature, body), Err(expected), "{id} {timestamp} {signature}");
        }
        let none: [&WebhookSecret; 0] = [];
        let headers = SignedHeaders { id, timestamp: "1700000000", signature: &signature };
        assert_eq!(verify(none, &headers, body, time, TOLERANCE), Err(BadWebhook::Signature));
    }

    #[test]
    fn a_webhook_is_valid_for_a_while() {
        let secret = WebhookSecret::new([1; 24]).unwrap();
        let signature = sign([&secret], "a", 1000, b"x");
        let headers = SignedHeaders { id: "a", timestamp: "1000", signature: &signature };
        for (now, expected) in [
            (700, Ok(1000)),
            (699, Err(BadWebhook::TooNew)),
            (1300, Ok(1000)),
            (1301, Err(BadWebhook::TooOld)),
            (0, Err(BadWebhook::TooNew)),
            (u64::MAX, Err(BadWebhook::TooOld)),
        ] {
            assert_eq!(verify([&secret], &headers, b"x", now, TOLERANCE), expected, "{now}");
        }
        assert_eq!(verify([&secret], &headers, b"x", 0, Duration::MAX), Ok(1000));
    }

    #[test]
    fn a_secret_can_be_replaced_without_a_gap() {
        let (old, new) = (WebhookSecret::new([1; 32]).unwrap(), WebhookSecret::new([2; 32]).unwrap());
        let signature = sign([&new, &old], "a", 1, b"x");
        assert_eq!(signature.split(' ').count(), 2);
        let with = |signature: &str, secrets: &[&WebhookSecret]| {
            let headers = SignedHeaders { id: "a", timestamp: "1", signature };
            verify(secrets.iter().copied(), &headers, b"x", 1, TOLERANCE).is_ok()
        };
        assert!(with(&signature, &[&old]) && with(&signature, &[&new]));
        // A receiver that knows both, and a sender that uses one; other versions beside it.
        let one = format!("v1a,AAAA v9,?? {}", sign([&old], "a", 1, b"x"));
        assert!(with(&one, &[&new, &old]) && !with(&one, &[&new]));
        // Signatures without end are not looked at.
        let many = format!("{}{}", "v1,AAAA ".repeat(MAX_SIGNATURES), sign([&old], "a", 1, b"x"));
        assert!(!with(&many, &[&old]));
    }

    #[test]
    fn secrets_have_a_size_and_are_not_printed() {
        for size in [0, 1, 23, 65, 1000] {
            assert_eq!(WebhookSecret::new(vec![7; size]).unwrap_err(), BadSecret);
        }
        let secret = WebhookSecret::new([7; 24]).unwrap();
        assert_eq!(secret.to_text(), "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH");
        assert_eq!(WebhookSecret::parse(&secret.to_text()).unwrap().to_text(), secret.to_text());
        assert_eq!(format!("{secret:?}"), "WebhookSecret(…)");
        for bad in [
            "",
            "whsec_",
            "whsec_short",
            "whsec_*WcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
            "whpk_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
        ] {
            WebhookSecret::parse(bad).unwrap_err();
        }
    }
}
