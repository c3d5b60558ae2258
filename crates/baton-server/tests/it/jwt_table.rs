//! Row S13: tokens with one fault each, and what is right about them. The tokens are made here, with keys of this run.

use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::hmac;
use baton_server::auth::Verdict;
use baton_server::auth::jwt::{Jwt, JwtOptions};
use serde_json::{Value, json};

use crate::fixtures::TestClock;
use crate::issuer::{AUDIENCE, Issuer, fetcher, now, owner, verdict};
use crate::signers::{Signer, base64url};

/// Signers of all kinds, and the issuer that knows them.
struct Scene {
    issuer: Arc<Issuer>,
    es256: Signer,
    es384: Signer,
    rs256: Signer,
    ps256: Signer,
    eddsa: Signer,
    /// Not published.
    stranger: Signer,
    rows: Vec<(String, String, Result<&'static str, &'static str>)>,
}

const NOT_JWT: &str = "not a signed JWT";
const NOT_OBJECT: &str = "a part is not an object with unique members";
const ALGORITHM: &str = "the signature algorithm is not allowed";
const SIGNATURE: &str = "wrong signature";
const UNKNOWN: &str = "signed with an unknown key";
const BAD_KID: &str = "the name of the key is not valid";
const BAD_TIME: &str = "a time in the token is not valid";
const TYPE: &str = "not an access token by its type";
const EXTENSION: &str = "the header has an extension that is not supported";
const AUDIENCE_OF_ANOTHER: &str = "for another audience";
const ISSUER_IS_ANOTHER: &str = "from another issuer";
const NO_OWNER: &str = "the token names no owner";
const BAD_OWNER: &str = "the token names an owner that cannot be used";
const ONE_TOKEN: &str = "the credentials are not one token";
const ALICE: Result<&str, &str> = Ok("jwt:alice");

impl Scene {
    async fn new() -> Self {
        let [es256, es384, rs256] = [("es", "ES256"), ("es384", "ES384"), ("rs", "RS256")].map(signer);
        let [ps256, eddsa, stranger] = [("ps", "PS256"), ("ed", "EdDSA"), ("es", "ES256")].map(signer);
        let issuer = Issuer::start(&[]).await;
        let mut keys: Vec<_> = [&es256, &es384, &rs256, &ps256, &eddsa].map(Signer::jwk).to_vec();
        let changed = |signer: &Signer, kid: &str, name: &str, value: Value| {
            let mut jwk = signer.jwk();
            jwk["kid"] = json!(kid);
            jwk[name] = value;
            jwk
        };
        // Two keys of different kinds with one name; the right one is found by its kind.
        keys.push(changed(&es256, "shared", "use", json!("sig")));
        keys.push(changed(&rs256, "shared", "use", json!("sig")));
        // Two of the same kind; either may have signed.
        keys.push(changed(&stranger, "twins", "use", json!("sig")));
        keys.push(changed(&es256, "twins", "use", json!("sig")));
        keys.push(changed(&rs256, "only-ps", "alg", json!("PS256")));
        keys.push(changed(&rs256, "other-kind", "alg", json!("ES256")));
        keys.push(changed(&es256, "for-encryption", "use", json!("enc")));
        keys.push(changed(&es256, "signs-only", "key_ops", json!(["sign"])));
        keys.push(changed(&es256, "verifies", "key_ops", json!(["verify"])));
        keys.push(changed(&es256, "private", "d", json!("AAAA")));
        keys.push(changed(&es256, "wrong-curve", "crv", json!("P-384")));
        keys.push(json!({"kty": "oct", "kid": "shared-secret", "k": base64url([7; 32])}));
        keys.push(json!({"kty": "AKP", "kid": "future", "alg": "ML-DSA-44", "pub": "AAAA"}));
        issuer.publish(keys);
        Scene { issuer, es256, es384, rs256, ps256, eddsa, stranger, rows: Vec::new() }
    }

    fn row(&mut self, name: &str, token: String, expected: Result<&'static str, &'static str>) {
        self.rows.push((name.to_owned(), token, expected));
    }

    /// The usual token with one claim changed; `null` takes it away.
    fn claim(&mut self, name: &str, claim: &str, value: Value, expected: Result<&'static str, &'static str>) {
        let mut claims = self.issuer.claims();
        change(&mut claims, claim, value);
        let token = self.es256.token(&claims);
        self.row(name, token, expected);
    }

    /// The usual token with one member of its header changed; `null` takes it away.
    fn head(&mut self, name: &str, member: &str, value: Value, expected: Result<&'static str, &'static str>) {
        let mut header = self.es256.header();
        change(&mut header, member, value);
        let token = self.es256.token_with(&header.to_string(), &self.issuer.claims().to_string());
        self.row(name, token, expected);
    }

    fn kid(&mut self, kid: &str, expected: Result<&'static str, &'static str>) {
        self.head(&format!("kid {:.40}", kid), "kid", json!(kid), expected);
    }

    fn good(&self) -> String {
        self.es256.token(&self.issuer.claims())
    }
}

fn signer((kid, alg): (&'static str, &'static str)) -> Signer {
    Signer::new(kid, alg)
}

fn change(object: &mut Value, member: &str, value: Value) {
    if value.is_null() {
        object.as_object_mut().unwrap().remove(member);
    } else {
        object[member] = value;
    }
}

/// The other valid form of an ECDSA signature: `s` is replaced by the order of P-256 minus `s`.
fn other_form(token: &str, signer: &Signer) -> String {
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
        0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let (message, _) = token.rsplit_once('.').unwrap();
    let mut signature = signer.sign("ES256", message.as_bytes());
    let mut borrow = 0;
    for (byte, order) in signature[32..].iter_mut().zip(ORDER).rev() {
        let difference = i16::from(order) - i16::from(*byte) - borrow;
        borrow = i16::from(difference < 0);
        *byte = difference.rem_euclid(256) as u8;
    }
    format!("{message}.{}", base64url(signature))
}

fn algorithms(scene: &mut Scene) {
    let claims = scene.issuer.claims();
    let tokens = [&scene.es256, &scene.es384, &scene.rs256, &scene.ps256, &scene.eddsa]
        .map(|signer| (signer.alg, signer.token(&claims)));
    for (alg, token) in tokens {
        scene.row(&format!("alg {alg}"), token, ALICE);
    }
    for alg in
        ["none", "None", "NONE", "nOnE", "", "ES256 ", "es256", "HS256", "HS512", "ES256K", "ES512", "RS1"]
    {
        scene.head(&format!("alg {alg:?} on an ES256 signature"), "alg", json!(alg), Err(ALGORITHM));
    }
    scene.head("alg is absent", "alg", Value::Null, Err(ALGORITHM));
    scene.head("alg is a list", "alg", json!(["ES256"]), Err(ALGORITHM));
    for alg in ["none", "None", "NONE"] {
        let header = base64url(json!({"alg": alg}).to_string());
        let unsigned = format!("{header}.{}.", base64url(claims.to_string()));
        scene.row(&format!("alg {alg} without a signature"), unsigned, Err(ALGORITHM));
    }
    for (name, secret) in [
        ("the RSA key as DER", scene.rs256.public_der()),
        ("the modulus as text", scene.rs256.jwk()["n"].as_str().unwrap().as_bytes().to_vec()),
        ("a symmetric key of the set", vec![7; 32]),
    ] {
        let header = json!({"alg": "HS256", "kid": if secret.len() == 32 { "shared-secret" } else { "rs" }});
        let message = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
        let token = format!("{message}.{}", base64url(tag));
        scene.row(&format!("HS256 with {name}"), token, Err(ALGORITHM));
    }
    let header = json!({"alg": "RS384", "kid": "rs"}).to_string();
    let message = format!("{}.{}", base64url(header), base64url(claims.to_string()));
    let rs384 = format!("{message}.{}", base64url(scene.rs256.sign("RS384", message.as_bytes())));
    scene.row("an asymmetric algorithm that is not in the list", rs384, Err(ALGORITHM));
    scene.head("alg of another kind than the key", "alg", json!("RS256"), Err(UNKNOWN));
    scene.head("alg for another curve than the key's", "alg", json!("ES384"), Err(UNKNOWN));
    let header = json!({"alg": "Ed25519", "kid": "ed"}).to_string();
    let ed25519 = scene.eddsa.token_with(&header, &claims.to_string());
    scene.row("alg Ed25519, the new name of EdDSA", ed25519, ALICE);
}

fn keys(scene: &mut Scene) {
    for kid in ["shared", "twins", "verifies"] {
        scene.kid(kid, ALICE);
    }
    for kid in ["for-encryption", "signs-only", "private", "wrong-curve", "shared-secret", "future"] {
        scene.kid(kid, Err(UNKNOWN));
    }
    for kid in
        ["../../x", "' or 1=1 --", "es\u{0}", "ES", " es", "es ", "ключ", "file:///etc/passwd", "__proto__"]
    {
        scene.kid(kid, Err(UNKNOWN));
    }
    scene.kid("", Err(UNKNOWN));
    scene.kid(&"k".repeat(128), Err(UNKNOWN));
    scene.kid(&"k".repeat(129), Err(BAD_KID));
    scene.kid(&"k".repeat(1 << 20), Err("the token is too long"));
    scene.head("kid is a number", "kid", json!(7), Err(BAD_KID));
    scene.head("kid is a list", "kid", json!(["es"]), Err(BAD_KID));
    let claims = scene.issuer.claims().to_string();
    // Three keys of the set are for ES256 in several names; all together more than are tried.
    scene.head(
        "no kid, and too many keys fit",
        "kid",
        Value::Null,
        Err("the token does not say which key it was signed with"),
    );
    let unnamed = scene.eddsa.token_with(r#"{"alg":"EdDSA"}"#, &claims);
    scene.row("no kid, and one key fits", unnamed, ALICE);
    let ps = scene.rs256.token_with(r#"{"alg":"RS256","kid":"only-ps"}"#, &claims);
    scene.row("the key is for another algorithm of its kind", ps, Err(UNKNOWN));
    let other = scene.rs256.token_with(r#"{"alg":"RS256","kid":"other-kind"}"#, &claims);
    scene.row("the key is for an algorithm of another kind", other, Err(UNKNOWN));
    let forged = scene.stranger.token(&scene.issuer.claims());
    scene.row("signed by somebody else under a known kid", forged, Err(SIGNATURE));
    let jwk = scene.stranger.jwk();
    for (member, value) in [
        ("jwk", jwk.clone()),
        ("jku", json!("https://evil.test/keys")),
        ("x5u", json!("https://evil.test/cert")),
        ("x5c", json!(["MIIB"])),
    ] {
        let mut header = scene.stranger.header();
        header[member] = value;
        let token = scene.stranger.token_with(&header.to_string(), &claims);
        scene.row(&format!("brings its own key in {member}"), token, Err(SIGNATURE));
    }
    let mut header = scene.es256.header();
    header["jwk"] = jwk;
    let token = scene.es256.token_with(&header.to_string(), &claims);
    scene.row("a foreign jwk in a token that is right otherwise is not looked at", token, ALICE);
}

fn signatures(scene: &mut Scene) {
    let good = scene.good();
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, claims) = message.split_once('.').unwrap();
    let twice = other_form(&good, &scene.es256);
    scene.row("the other form of s", twice, ALICE);
    let mut bytes = scene.es256.sign("ES256", message.as_bytes());
    bytes[63] ^= 1;
    scene.row("one bit of the signature", format!("{message}.{}", base64url(&bytes)), Err(SIGNATURE));
    scene.row("a signature of zeros", format!("{message}.{}", base64url([0; 64])), Err(SIGNATURE));
    bytes.truncate(63);
    scene.row("a short signature", format!("{message}.{}", base64url(bytes)), Err(SIGNATURE));
    scene.row("an empty signature", format!("{message}."), Err(SIGNATURE));
    // ASN.1, as TLS has it, instead of r and s.
    scene.row("a signature in ASN.1", format!("{message}.{}", base64url([0x30; 70])), Err(SIGNATURE));
    let other = base64url(scene.issuer.claims().to_string().replace("alice", "bob"));
    scene.row("other claims", format!("{header}.{other}.{signature}"), Err(SIGNATURE));
    scene.row("a truncated token", good[..good.len() - 22].to_owned(), Err(SIGNATURE));
    scene.row("a token without its last part", message.to_owned(), Err(NOT_JWT));
    scene.row("one part", header.to_owned(), Err(NOT_JWT));
    scene.row("an extra part", format!("{good}.{signature}"), Err(NOT_JWT));
    scene.row("an extra dot", format!("{good}."), Err(NOT_JWT));
    scene.row("a dot before", format!(".{good}"), Err(NOT_JWT));
    scene.row("only dots", "..".to_owned(), Err(NOT_OBJECT));
    scene.row("four dots, as encrypted tokens have", format!("{header}.a.b.c.d"), Err(NOT_JWT));
    scene.row("an empty header", format!(".{claims}.{signature}"), Err(NOT_OBJECT));
    scene.row("empty claims", format!("{header}..{signature}"), Err(NOT_OBJECT));
    scene.row("padding after the signature", format!("{good}=="), Err(NOT_JWT));
    scene.row("padding inside", format!("{header}=.{claims}.{signature}"), Err(ONE_TOKEN));
    scene.row("the alphabet of plain base64", good.replace(['-', '_'], "+") + "+/", Err(NOT_JWT));
    scene.row("a space inside", format!("{header}. {claims}.{signature}"), Err(ONE_TOKEN));
    scene.row("a comma after", format!("{good},{good}"), Err(ONE_TOKEN));
    let long = scene.es256.token(&json!({"pad": "x".repeat(7000)}));
    assert!(long.len() > 8192);
    scene.row("more than 8 KiB", long, Err("the token is too long"));
}

fn shapes(scene: &mut Scene) {
    let (header, claims) = (scene.es256.header().to_string(), scene.issuer.claims().to_string());
    let raw = |header: &str, claims: &str| scene.es256.token_with(header, claims);
    let inner = &claims[1..claims.len() - 1];
    let head = &header[1..header.len() - 1];
    let rows = [
        ("a claim is there twice", raw(&header, &format!("{{\"sub\":\"bob\",{inner}}}")), NOT_OBJECT),
        (
            "a claim is there twice, once escaped",
            raw(&header, &format!("{{\"s\\u0075b\":\"bob\",{inner}}}")),
            NOT_OBJECT,
        ),
        ("exp is there twice", raw(&header, &format!("{{{inner},\"exp\":99999999999}}")), NOT_OBJECT),
        (
            "a nested member is there twice",
            raw(&header, &format!("{{{inner},\"x\":{{\"a\":1,\"a\":2}}}}")),
            NOT_OBJECT,
        ),
        ("alg is there twice", raw(&format!("{{\"alg\":\"none\",{head}}}"), &claims), NOT_OBJECT),
        ("kid is there twice", raw(&format!("{{{head},\"kid\":\"x\"}}"), &claims), NOT_OBJECT),
        ("claims are a list", raw(&header, "[]"), NOT_OBJECT),
        ("claims are a text", raw(&header, "\"alice\""), NOT_OBJECT),
        ("claims are not JSON", raw(&header, "sub=alice"), NOT_OBJECT),
        ("something follows the claims", raw(&header, &format!("{claims}{{}}")), NOT_OBJECT),
        ("the header is a list", raw("[]", &claims), NOT_OBJECT),
        ("a byte order mark", raw(&format!("\u{feff}{header}"), &claims), NOT_OBJECT),
        (
            "claims nested too deeply",
            raw(&header, &format!("{{{inner},\"x\":{}{}}}", "[".repeat(200), "]".repeat(200))),
            NOT_OBJECT,
        ),
    ];
    for (name, token, reason) in rows {
        scene.row(name, token, Err(reason));
    }
    let bytes = [&b"{\"alg\":\"ES256\",\"x\":\""[..], b"\xff\xfe", b"\"}"].concat();
    let token = format!("{}.{}.AAAA", base64url(bytes), base64url(&claims));
    scene.row("the header is not UTF-8", token, Err(NOT_JWT));
    let spaced = scene.es256.token_with(&format!(" {header}\n"), &claims.replace(',', " ,\n"));
    scene.row("white space in the JSON", spaced, ALICE);
    for (typ, expected) in [
        (Value::Null, ALICE),
        (json!("JWT"), ALICE),
        (json!("jwt"), ALICE),
        (json!("AT+JWT"), ALICE),
        (json!("application/at+jwt"), ALICE),
        (json!("id_token+jwt"), Err(TYPE)),
        (json!("dpop+jwt"), Err(TYPE)),
        (json!("logout+jwt"), Err(TYPE)),
        (json!(""), Err(TYPE)),
        (json!(1), Err(TYPE)),
        (json!(["JWT"]), Err(TYPE)),
    ] {
        scene.head(&format!("typ {typ}"), "typ", typ, expected);
    }
    for crit in [json!(["exp"]), json!([]), json!(["b64"]), json!("exp"), json!(["urn:x"])] {
        scene.head(&format!("crit {crit}"), "crit", crit, Err(EXTENSION));
    }
    scene.head("b64 false", "b64", json!(false), Err(EXTENSION));
}

fn times(scene: &mut Scene) {
    let now = now();
    for (name, value, expected) in [
        ("exp is absent", Value::Null, Err("the token does not expire")),
        ("exp at the border of the leeway", json!(now - 59), ALICE),
        ("exp just over the leeway", json!(now - 60), Err("expired")),
        ("exp long ago", json!(1), Err("expired")),
        ("exp is 0", json!(0), Err("expired")),
        ("exp is negative", json!(-1), Err(BAD_TIME)),
        ("exp has a fraction", json!(now as f64 + 0.5), ALICE),
        ("exp is a text", json!((now + 600).to_string()), Err(BAD_TIME)),
        ("exp is a list", json!([now + 600]), Err(BAD_TIME)),
        ("exp is true", json!(true), Err(BAD_TIME)),
        ("exp in the year 9999", json!(253_402_300_799_i64), ALICE),
        ("exp after the year 9999", json!(253_402_300_800_i64), Err(BAD_TIME)),
        ("exp is the largest integer", json!(u64::MAX), Err(BAD_TIME)),
        ("exp in milliseconds", json!((now + 600) * 1000), Err(BAD_TIME)),
    ] {
        scene.claim(name, "exp", value, expected);
    }
    for (name, text) in [("exp 1e400", "1e400"), ("exp null", "null"), ("exp 1e300", "1e300")] {
        let claims = scene.issuer.claims().to_string().replace(&(now + 600).to_string(), text);
        let token = scene.es256.token_with(&scene.es256.header().to_string(), &claims);
        let reason = if text == "1e400" { NOT_OBJECT } else { BAD_TIME };
        scene.row(name, token, Err(reason));
    }
    for (name, value, expected) in [
        ("nbf in the past", json!(now - 1), ALICE),
        ("nbf at the border of the leeway", json!(now + 60), ALICE),
        ("nbf in the future", json!(now + 61), Err("not valid yet")),
        ("nbf is a text", json!("0"), Err(BAD_TIME)),
        ("nbf is an object", json!({}), Err(BAD_TIME)),
    ] {
        scene.claim(name, "nbf", value, expected);
    }
    for (name, value, expected) in [
        ("iat is absent", Value::Null, ALICE),
        ("iat at the border of the leeway", json!(now + 60), ALICE),
        ("iat in the future", json!(now + 61), Err("issued in the future")),
        ("iat is a text", json!("now"), Err(BAD_TIME)),
        ("iat is negative", json!(-5), Err(BAD_TIME)),
    ] {
        scene.claim(name, "iat", value, expected);
    }
}

fn parties(scene: &mut Scene) {
    let issuer = scene.issuer.url.clone();
    for (name, value) in [
        ("iss is absent", Value::Null),
        ("iss of another", json!("https://evil.test")),
        ("iss with a slash", json!(format!("{issuer}/"))),
        ("iss in capitals", json!(issuer.to_uppercase())),
        ("iss with more behind", json!(format!("{issuer}.evil.test"))),
        ("iss is empty", json!("")),
        ("iss is a list", json!([issuer])),
    ] {
        scene.claim(name, "iss", value, Err(ISSUER_IS_ANOTHER));
    }
    for (name, value, expected) in [
        ("aud is absent", Value::Null, Err(AUDIENCE_OF_ANOTHER)),
        ("aud of another", json!("https://other.test"), Err(AUDIENCE_OF_ANOTHER)),
        ("aud with a slash", json!(format!("{AUDIENCE}/")), Err(AUDIENCE_OF_ANOTHER)),
        ("aud is empty", json!(""), Err(AUDIENCE_OF_ANOTHER)),
        ("aud is a list with ours", json!(["https://other.test", AUDIENCE]), ALICE),
        ("aud is a list without ours", json!(["https://other.test"]), Err(AUDIENCE_OF_ANOTHER)),
        ("aud is an empty list", json!([]), Err(AUDIENCE_OF_ANOTHER)),
        ("aud is a list with a number", json!([AUDIENCE, 7]), Err(AUDIENCE_OF_ANOTHER)),
        ("aud is an object", json!({"a": AUDIENCE}), Err(AUDIENCE_OF_ANOTHER)),
    ] {
        scene.claim(name, "aud", value, expected);
    }
    for (name, value, expected) in [
        ("sub is absent", Value::Null, Err(NO_OWNER)),
        ("sub is a number", json!(7), Err(NO_OWNER)),
        ("sub is a list", json!(["alice"]), Err(NO_OWNER)),
        ("sub is empty", json!(""), Err(BAD_OWNER)),
        ("sub is long", json!("a".repeat(252)), Err(BAD_OWNER)),
        ("sub has a line break", json!("alice\nroot"), Err(BAD_OWNER)),
        ("sub has a zero", json!("alice\u{0}"), Err(BAD_OWNER)),
        ("sub is anonymous", json!("anonymous"), Ok("jwt:anonymous")),
        ("sub in other letters", json!("алиса"), Ok("jwt:алиса")),
    ] {
        scene.claim(name, "sub", value, expected);
    }
    for (name, value, expected) in [
        ("scope is absent", Value::Null, ALICE),
        ("scope is a list", json!(["read"]), ALICE),
        ("scope is a list with a number", json!(["read", 7]), Err("the scopes of the token cannot be read")),
        ("scope is a number", json!(7), Err("the scopes of the token cannot be read")),
    ] {
        scene.claim(name, "scope", value, expected);
    }
    let bound = "the token is bound to a key of its holder, which is not supported";
    scene.claim("bound to a key", "cnf", json!({"jkt": "AAAA"}), Err(bound));
}

#[tokio::test]
async fn s16_the_table_of_jwt_faults() {
    let mut scene = Scene::new().await;
    for rows in [algorithms, keys, signatures, shapes, times, parties] {
        rows(&mut scene);
    }
    let mut options = JwtOptions::jwks(&scene.issuer.url, AUDIENCE, scene.issuer.keys_url());
    options.verified.entries = 1000;
    let scheme = Jwt::new(options, fetcher()).unwrap().clock(TestClock::new());
    let (mut wrong, began) = (Vec::new(), Instant::now());
    for (name, token, expected) in &scene.rows {
        // The second time accepted tokens come from the cache.
        for time in 0..2 {
            let found = owner(&scheme, token).await;
            if found.as_deref().map_err(String::as_str) != *expected {
                wrong.push(format!("{name}, time {time}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), scene.rows.len(), wrong.join("\n"));
    assert!(scene.rows.len() >= 60, "{}", scene.rows.len());
    let allowed = 1 + began.elapsed().as_secs() as usize / 10;
    assert!(scene.issuer.keys_fetched() <= allowed, "unknown names cause a fetch every 10 s at most");
}

#[tokio::test]
async fn s16_what_is_not_a_bearer_token_is_absent_or_refused() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let options = JwtOptions::jwks(&issuer.url, AUDIENCE, issuer.keys_url());
    let scheme = Jwt::new(options, fetcher()).unwrap().clock(TestClock::new());
    let token = signer.token(&issuer.claims());
    for (header, expected) in [
        (format!("Bearer {token}"), "verified"),
        (format!("bEARER {token}"), "verified"),
        (format!("Bearer   {token}"), "verified"),
        (format!("Basic {token}"), "absent"),
        (format!("DPoP {token}"), "absent"),
        (token.clone(), "absent"),
        ("Bearer".to_owned(), "refused"),
        ("Bearer ".to_owned(), "refused"),
        (format!("Bearer\t{token}"), "refused"),
        (format!("Bearer {token} x"), "refused"),
        (format!("Bearer token=\"{token}\""), "refused"),
    ] {
        let found = match verdict(&scheme, &header).await {
            Verdict::Verified(_) => "verified",
            Verdict::Absent => "absent",
            Verdict::Refused(_) => "refused",
            Verdict::Unavailable(_) => "unavailable",
        };
        assert_eq!(found, expected, "{header}");
    }
}
