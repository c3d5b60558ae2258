use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Uri};

use super::*;

/// A hash that is fast to compute, for tests that are about something else.
fn weak(password: &str) -> String {
    use argon2::password_hash::PasswordHasher as _;
    let params = argon2::Params::new(8, 1, 1, None).unwrap();
    let hasher = argon2::Argon2::from(params);
    hasher.hash_password(password.as_bytes()).unwrap().to_string()
}

fn basic(users: &[(&str, &str)]) -> Basic {
    let users = users.iter().map(|(user, password)| StoredUser::new(*user, weak(password))).collect();
    Basic::new(users, BasicOptions::default()).unwrap()
}

fn encoded(text: &str) -> String {
    format!("Basic {}", STANDARD.encode(text))
}

async fn ask(basic: &Basic, header: &str) -> Verdict {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(header).unwrap())]);
    let uri = Uri::from_static("/");
    basic.verify(&AuthRequest::new(&Method::POST, &uri, &headers)).await
}

/// The owner and scopes, `-` for absent, `!reason` for refused.
async fn shown(basic: &Basic, header: &str) -> String {
    match ask(basic, header).await {
        Verdict::Absent => "-".to_owned(),
        Verdict::Verified(identity) => {
            let scopes: Vec<_> = identity.scopes.iter().collect();
            [vec![&*identity.owner], scopes].concat().join(" ")
        }
        Verdict::Refused(refusal) => format!("!{}", refusal.reason),
        Verdict::Unavailable(why) => panic!("{why}"),
    }
}

#[tokio::test]
async fn users_are_verified_by_their_passwords() {
    let users = vec![
        StoredUser::new("ann", weak("open sesame")),
        StoredUser::new("Jäsøn", weak("pässwörd:with:colons")).owner("team").scopes(["read", "write"]),
        StoredUser::new("empty", weak("")),
    ];
    let basic = Basic::new(users, BasicOptions::default()).unwrap();
    for (text, expected) in [
        ("ann:open sesame", "ann"),
        ("ann:open sesame", "ann"),
        ("ann:open sesamf", "!wrong user or password"),
        ("ann:", "!wrong user or password"),
        ("Ann:open sesame", "!wrong user or password"),
        ("bob:open sesame", "!wrong user or password"),
        ("Jäsøn:pässwörd:with:colons", "team read write"),
        ("empty:", "empty"),
        ("empty:a", "!wrong user or password"),
    ] {
        assert_eq!(shown(&basic, &encoded(text)).await, expected, "{text}");
    }
    let Verdict::Refused(refusal) = ask(&basic, &encoded("bob:x")).await else { panic!() };
    assert_eq!(refusal.credential.as_deref(), Some("bob"));
}

#[tokio::test]
async fn other_headers_are_refused_before_anything_is_hashed() {
    let basic = Basic::new(vec![StoredUser::new("ann", weak("pw"))], BasicOptions::default()).unwrap();
    let long = "!user or password is too long";
    for (header, expected) in [
        (encoded("ann:pw"), "ann"),
        (encoded("ann:pw").replace("Basic ", "bASIC  "), "ann"),
        ("Bearer YW5uOnB3".to_owned(), "-"),
        ("Digest username=\"ann\"".to_owned(), "-"),
        ("Basic".to_owned(), "!no credentials after the scheme"),
        ("Basic ann:pw".to_owned(), "!the credentials are not one token"),
        ("Basic YW5uOnB3, Bearer x".to_owned(), "!the credentials are not one token"),
        // `ann:pwd` and `ann:pw1`, with the end of the base64 changed.
        ("Basic YW5uOnB3ZA==".to_owned(), "!wrong user or password"),
        ("Basic YW5uOnB3ZA".to_owned(), "!the credentials are not base64 with padding"),
        ("Basic YW5uOnB3ZA=".to_owned(), "!the credentials are not base64 with padding"),
        ("Basic YW5uOnB3ZB==".to_owned(), "!the credentials are not base64 with padding"),
        ("Basic YW5uOnB3====".to_owned(), "!the credentials are not base64 with padding"),
        // The alphabet for URLs.
        ("Basic YW5uOn5-fn5_".to_owned(), "!the credentials are not base64 with padding"),
        (encoded("annpw"), "!no colon between user and password"),
        (encoded(":pw"), "!no user"),
        (encoded("ann:p\0w"), "!a control character in user or password"),
        (encoded("ann\0:pw"), "!a control character in user or password"),
        (encoded("ann:p\nw"), "!a control character in user or password"),
        (encoded("ann:p\u{7f}w"), "!a control character in user or password"),
        (encoded("ann:p\u{85}w"), "!a control character in user or password"),
        // Latin-1.
        (format!("Basic {}", STANDARD.encode(b"ann:p\xe4")), "!the credentials are not UTF-8"),
        (encoded(&format!("{}:pw", "a".repeat(128))), "!wrong user or password"),
        (encoded(&format!("{}:pw", "a".repeat(129))), long),
        (encoded(&format!("ann:{}", "p".repeat(1024))), "!wrong user or password"),
        (encoded(&format!("ann:{}", "p".repeat(1025))), long),
        (encoded(&format!("ann:{}", "p".repeat(100_000))), long),
    ] {
        assert_eq!(shown(&basic, &header).await, expected, "{header:.80}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verified_header_passes_for_a_minute() {
    let scheme = basic(&[("ann", "pw")]);
    let since = |scheme: &Basic| {
        let users = scheme.users.load();
        let verified = users.all[0].verified.lock().unwrap();
        verified.map(|(_, since)| since)
    };
    assert_eq!(since(&scheme), None);
    assert_eq!(shown(&scheme, &encoded("ann:wrong")).await, "!wrong user or password");
    assert_eq!(since(&scheme), None, "only a right password is remembered");
    assert_eq!(shown(&scheme, &encoded("ann:pw")).await, "ann");
    let first = since(&scheme).unwrap();
    tokio::time::advance(Duration::from_millis(59_999)).await;
    assert_eq!(shown(&scheme, &encoded("ann:pw")).await, "ann");
    assert_eq!(since(&scheme), Some(first), "it was not hashed again");
    assert_eq!(shown(&scheme, &encoded("ann:wrong")).await, "!wrong user or password");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(shown(&scheme, &encoded("ann:pw")).await, "ann");
    assert!(since(&scheme).unwrap() > first);
}

/// Users are compared by what is stored; their headers are remembered if they stay.
#[tokio::test(start_paused = true)]
async fn s16_users_who_stay_are_remembered_and_others_are_not() {
    let stored: Vec<_> = ["a", "b", "c", "d"].map(weak).into();
    let user = |name: &str, at: usize| StoredUser::new(name, stored[at].clone());
    let scheme = Basic::new(
        vec![user("ann", 0), user("bob", 1), user("cid", 2).scopes(["read"]), user("dan", 3)],
        BasicOptions::default(),
    )
    .unwrap();
    let headers = ["ann:a", "bob:b", "cid:c", "dan:d"].map(encoded);
    let mut verified = Vec::new();
    for header in &headers {
        let Verdict::Verified(identity) = ask(&scheme, header).await else { panic!("{header}") };
        verified.push(identity);
    }
    let shared = scheme.clone();
    // One goes, one has another password, one has other scopes; the order does not matter.
    let new = vec![user("dan", 3), user("cid", 2), StoredUser::new("bob", weak("b"))];
    shared.set_users(new).unwrap();
    let valid: Vec<_> = verified.iter().map(Identity::is_still_valid).collect();
    assert_eq!(valid, [false, false, false, true]);
    for (header, expected) in headers.iter().zip(["!wrong user or password", "bob", "cid", "dan"]) {
        assert_eq!(shown(&scheme, header).await, expected);
    }
    // One list with a mistake changes nothing.
    assert!(scheme.set_users(vec![user("ann", 0), user("ann", 0)]).is_err());
    assert!(verified[3].is_still_valid());
    scheme.set_users(vec![]).unwrap();
    assert!(!verified[3].is_still_valid());
    assert_eq!(shown(&scheme, &headers[3]).await, "!wrong user or password");
}

/// The hashes are slow ones, so that the users change while they are computed.
#[tokio::test]
async fn s16_users_who_change_while_their_password_is_hashed_are_refused() {
    use crate::auth::{Authenticator as _, Chain, hash_password};
    let user = |password: &str| StoredUser::new("ann", hash_password(&password.into()).unwrap());
    let scheme = Basic::new(vec![user("pw")], BasicOptions::default()).unwrap();
    let chain = Chain::new().scheme("basic", scheme.clone());
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&encoded("ann:pw")).unwrap())]);
    let uri = Uri::from_static("/");
    let request = AuthRequest::new(&Method::POST, &uri, &headers);
    let mut before = chain.authenticate(&request);
    assert!(futures_util::poll!(before.as_mut()).is_pending());
    scheme.set_users(vec![user("other")]).unwrap();
    // It must not get the result of the one before, which is that the password is right.
    let after = chain.authenticate(&request);
    let (before, after) = futures_util::join!(before, after);
    for (refused, why) in [(before, "no longer valid"), (after, WRONG)] {
        let refused = refused.unwrap_err().error().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    scheme.set_users(vec![]).unwrap();
    assert!(chain.authenticate(&request).await.is_err());
}

#[test]
fn an_unknown_user_costs_what_a_known_one_does() {
    let scheme = basic(&[("ann", "a"), ("bob", "b"), ("cid", "c")]);
    let users = scheme.users.load();
    assert_eq!(users.hashed_for("bob"), users.by_name.get("bob").copied());
    let mut chosen = [0; 3];
    for number in 0..300 {
        let name = format!("user{number}");
        let at = users.hashed_for(&name).unwrap();
        assert_eq!(users.hashed_for(&name), Some(at), "the same each time");
        chosen[at] += 1;
    }
    assert!(chosen.iter().all(|count| *count > 30), "{chosen:?}");
    assert_eq!(basic(&[]).users.load().hashed_for("ann"), None);
}

/// The stored password that is hashed for an unknown user never lets it in.
#[tokio::test]
async fn an_unknown_user_with_anothers_password_is_refused() {
    let scheme = basic(&[("ann", "pw")]);
    assert_eq!(shown(&scheme, &encoded("bob:pw")).await, "!wrong user or password");
    assert_eq!(shown(&scheme, &encoded("bob:pw")).await, "!wrong user or password");
}

#[test]
fn users_that_cannot_be_used_are_refused_at_the_start() {
    let refused =
        |users: Vec<StoredUser>| Basic::new(users, BasicOptions::default()).unwrap_err().to_string();
    let user = |name: &str| StoredUser::new(name, weak("pw"));
    assert_eq!(refused(vec![user("ann"), user("ann")]), "user `ann` is there twice");
    for name in ["", "a:b", "a\0", "a\nb", &"a".repeat(129)] {
        assert!(refused(vec![user(name)]).contains("is empty, too long"), "{name:?}");
    }
    for owner in ["", "anonymous", "a\tb"] {
        assert!(refused(vec![user("ann").owner(owner)]).starts_with("the owner of user `ann`"), "{owner:?}");
    }
    let costly = "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    let error = refused(vec![StoredUser::new("ann", costly)]);
    assert_eq!(
        error,
        "the password of user `ann` costs too much to verify: at most m=65536 (KiB), t=10, p=4"
    );
    let error = refused(vec![StoredUser::new("ann", "hunter2")]);
    assert!(!error.contains("hunter2"), "{error}");
    for realm in ["", "a\"b", "a\\b", "ä", "a\nb", &"a".repeat(257)] {
        let options = BasicOptions { realm: realm.to_owned(), ..BasicOptions::default() };
        assert_eq!(
            Basic::new(Vec::new(), options).unwrap_err(),
            BasicError::User(BadUser::Realm),
            "{realm:?}"
        );
    }
}

#[test]
fn nothing_secret_is_printed() {
    let stored = weak("pw");
    let user = StoredUser::new("ann", stored.clone());
    let scheme = Basic::new(vec![user.clone()], BasicOptions::default()).unwrap();
    let printed = format!("{user:?} {scheme:?}");
    assert!(!printed.contains("$argon2id") && !printed.contains(&stored), "{printed}");
}

#[test]
fn the_challenge_names_realm_and_charset() {
    let expected = r#"Basic realm="baton", charset="UTF-8""#;
    assert_eq!(basic(&[]).challenge(None).unwrap(), expected);
    let kind = SchemeKind::Http { scheme: "basic".to_owned(), bearer_format: None };
    assert_eq!(basic(&[]).declared(), SecurityScheme { description: None, kind });
}
