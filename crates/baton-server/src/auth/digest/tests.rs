use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, Method, Uri};

use super::*;

const REALM: &str = "baton";

fn digest(options: DigestOptions) -> Digest {
    let stored = |user: &str, password: &str| digest_password(user, REALM, &password.into());
    let users = vec![
        StoredUser::new("ann", stored("ann", "pw")),
        StoredUser::new("Jäsøn", stored("Jäsøn", "pässwörd")).owner("team").scopes(["read"]),
    ];
    Digest::new(users, options).unwrap()
}

fn nonce(scheme: &Digest, refused: Option<&Refusal>) -> (String, bool) {
    let challenge = scheme.challenge(refused).unwrap();
    let challenge = challenge.to_str().unwrap();
    let (_, rest) = challenge.split_once("nonce=\"").unwrap();
    (rest.split_once('"').unwrap().0.to_owned(), challenge.ends_with(", stale=true"))
}

/// A client that does what RFC 7616 says, without our code.
struct Client<'a> {
    user: &'a str,
    password: &'a str,
    realm: &'a str,
    nonce: &'a str,
    count: u32,
    uri: &'a str,
}

impl Client<'_> {
    fn header(&self, method: &str) -> String {
        let hash = |text: String| {
            let bytes = Sha256::digest(text.as_bytes());
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let Client { user, password, realm, nonce, count, uri } = self;
        let first = hash(format!("{user}:{realm}:{password}"));
        let second = hash(format!("{method}:{uri}"));
        let response = hash(format!("{first}:{nonce}:{count:08x}:abc:auth:{second}"));
        format!(
            "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", cnonce=\"abc\", \
             nc={count:08x}, qop=auth, response=\"{response}\", algorithm=SHA-256"
        )
    }
}

async fn ask(scheme: &Digest, header: &str, method: Method, uri: &'static str) -> Verdict {
    let value = HeaderValue::from_bytes(header.as_bytes()).unwrap();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value), (HOST, HeaderValue::from_static("a"))]);
    scheme.verify(&AuthRequest::new(&method, &Uri::from_static(uri), &headers)).await
}

/// The owner, `-` for absent, `!reason` for refused.
async fn shown(scheme: &Digest, header: &str) -> String {
    match ask(scheme, header, Method::POST, "/a?b").await {
        Verdict::Absent => "-".to_owned(),
        Verdict::Verified(identity) => identity.owner.to_string(),
        Verdict::Refused(refusal) => format!("!{}", refusal.reason),
        Verdict::Unavailable(why) => panic!("{why}"),
    }
}

#[tokio::test]
async fn users_are_verified_by_their_passwords() {
    let scheme = digest(DigestOptions::default());
    let (nonce, _) = nonce(&scheme, None);
    let right = Client { user: "ann", password: "pw", realm: REALM, nonce: &nonce, count: 1, uri: "/a?b" };
    const WRONG: &str = "!wrong user or password";
    for (client, expected) in [
        (Client { password: "pv", ..right }, WRONG),
        (Client { user: "bob", ..right }, WRONG),
        (Client { user: "Ann", ..right }, WRONG),
        (Client { realm: "other", ..right }, "!another realm"),
        (Client { uri: "/a", ..right }, "!the uri is not that of the request"),
        (Client { nonce: "abc", ..right }, "!stale nonce"),
        (Client { nonce: "abc", password: "pv", ..right }, WRONG),
        (Client { ..right }, "ann"),
        (Client { ..right }, "!stale nonce"),
        (Client { count: 2, ..right }, "ann"),
        (Client { count: 2, uri: "http://a/a?b", ..right }, "!stale nonce"),
        (Client { count: 3, uri: "http://a/a?b", ..right }, "ann"),
        (Client { user: "Jäsøn", password: "pässwörd", ..right }, "team"),
    ] {
        let header = client.header("POST");
        assert_eq!(shown(&scheme, &header).await, expected, "{header}");
    }
    // The method is part of the hash.
    let header = Client { count: 9, ..right }.header("POST");
    assert!(matches!(ask(&scheme, &header, Method::GET, "/a?b").await, Verdict::Refused(_)));
    assert!(matches!(ask(&scheme, &header, Method::POST, "/a?b").await, Verdict::Verified(_)));
}

#[tokio::test]
async fn s16_users_who_stay_keep_their_nonces_and_others_start_anew() {
    let scheme = digest(DigestOptions::default());
    let stored =
        |user: &str, password: &str| StoredUser::new(user, digest_password(user, REALM, &password.into()));
    let (nonce, _) = nonce(&scheme, None);
    let ann = Client { user: "ann", password: "pw", realm: REALM, nonce: &nonce, count: 1, uri: "/a?b" };
    let team = Client { user: "Jäsøn", password: "pässwörd", ..ann };
    let verified =
        async |client: &Client<'_>| match ask(&scheme, &client.header("POST"), Method::POST, "/a?b").await {
            Verdict::Verified(identity) => identity,
            other => panic!("{other:?}"),
        };
    let (first, second) = (verified(&ann).await, verified(&team).await);
    scheme.set_users(vec![stored("ann", "pw")]).unwrap();
    assert_eq!((first.is_still_valid(), second.is_still_valid()), (true, false));
    assert_eq!(shown(&scheme, &ann.header("POST")).await, "!stale nonce", "it was used");
    assert_eq!(shown(&scheme, &Client { count: 2, ..ann }.header("POST")).await, "ann");
    assert_eq!(shown(&scheme, &team.header("POST")).await, "!wrong user or password");
    // Who comes back cannot be replayed, although it is not known any more which nonces were used.
    let back = stored("Jäsøn", "pässwörd").owner("team").scopes(["read"]);
    scheme.set_users(vec![stored("ann", "pw"), back]).unwrap();
    assert_eq!(shown(&scheme, &team.header("POST")).await, "!stale nonce");
    assert!(!second.is_still_valid() && first.is_still_valid());
}

/// Changing any byte of a right header makes it wrong, or it is a right one with another user name or spelling.
#[tokio::test]
async fn every_part_of_the_header_counts() {
    let scheme = digest(DigestOptions::default());
    let mut count = 0;
    let header = |count| {
        let (nonce, _) = nonce(&scheme, None);
        Client { user: "ann", password: "pw", realm: REALM, nonce: &nonce, count, uri: "/a?b" }.header("POST")
    };
    let length = header(1).len();
    for at in "Digest ".len()..length {
        count += 1;
        let mut changed = header(count).into_bytes();
        changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(shown(&scheme, &changed).await.starts_with('!'), "{changed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_nonce_is_stale_and_only_with_the_right_password() {
    let scheme = digest(DigestOptions::default());
    let (first, stale) = nonce(&scheme, None);
    assert!(!stale);
    let client = Client { user: "ann", password: "pw", realm: REALM, nonce: &first, count: 1, uri: "/a?b" };
    tokio::time::advance(Duration::from_secs(300)).await;
    let Verdict::Refused(refusal) = ask(&scheme, &client.header("POST"), Method::POST, "/a?b").await else {
        panic!()
    };
    assert!(!refusal.is_failure, "the client only has to try again");
    let (second, stale) = nonce(&scheme, Some(&refusal));
    assert!(stale && second != first);
    assert_eq!(shown(&scheme, &Client { nonce: &second, ..client }.header("POST")).await, "ann");
    let wrong = Client { password: "pv", ..client }.header("POST");
    let Verdict::Refused(refusal) = ask(&scheme, &wrong, Method::POST, "/a?b").await else { panic!() };
    assert!(refusal.is_failure);
    assert!(!nonce(&scheme, Some(&refusal)).1);
}

/// As after a reload: which nonces were used is forgotten with the first scheme.
#[tokio::test]
async fn a_request_cannot_be_sent_again_to_another_scheme_with_the_same_users() {
    let scheme = digest(DigestOptions::default());
    let (first, _) = nonce(&scheme, None);
    let client = Client { user: "ann", password: "pw", realm: REALM, nonce: &first, count: 1, uri: "/a?b" };
    assert_eq!(shown(&scheme, &client.header("POST")).await, "ann");
    let next = digest(DigestOptions::default());
    assert_eq!(shown(&next, &client.header("POST")).await, "!stale nonce");
    let (second, _) = nonce(&next, None);
    assert_eq!(shown(&next, &Client { nonce: &second, ..client }.header("POST")).await, "ann");
}

#[tokio::test]
async fn many_nonces_of_one_user_do_not_touch_another() {
    let scheme = digest(DigestOptions { max_nonces: 4, ..DigestOptions::default() });
    let (others, _) = nonce(&scheme, None);
    let other =
        Client {
            user: "Jäsøn", password: "pässwörd", realm: REALM, nonce: &others, count: 1, uri: "/a?b"
        };
    assert_eq!(shown(&scheme, &other.header("POST")).await, "team");
    let nonces: Vec<_> = (0..20).map(|_| nonce(&scheme, None).0).collect();
    let ann = |nonce, count| {
        Client { user: "ann", password: "pw", realm: REALM, nonce, count, uri: "/a?b" }.header("POST")
    };
    for nonce in &nonces {
        assert_eq!(shown(&scheme, &ann(nonce, 1)).await, "ann");
    }
    assert_eq!(shown(&scheme, &ann(&nonces[0], 2)).await, "!stale nonce");
    assert_eq!(shown(&scheme, &ann(&nonces[19], 2)).await, "ann");
    assert_eq!(shown(&scheme, &Client { count: 2, ..other }.header("POST")).await, "team");
}

#[test]
fn users_that_cannot_be_used_are_refused_at_the_start() {
    let refused = |users| Digest::new(users, DigestOptions::default()).unwrap_err();
    let stored = || digest_password("ann", REALM, &"pw".into());
    let twice = vec![StoredUser::new("ann", stored()), StoredUser::new("ann", stored())];
    assert_eq!(refused(twice).to_string(), "user `ann` is there twice");
    for bad in ["", "hunter2", &"g".repeat(64), &"a".repeat(63), &"a".repeat(32)] {
        let error = refused(vec![StoredUser::new("ann", bad)]);
        assert_eq!(error, DigestError::Password("ann".to_owned()));
        assert!(!error.to_string().contains("hunter2"));
    }
    assert!(Digest::new(vec![StoredUser::new("ann", "A".repeat(64))], DigestOptions::default()).is_ok());
}

#[test]
fn nothing_secret_is_printed() {
    let stored = digest_password("ann", REALM, &"pw".into());
    let user = StoredUser::new("ann", stored.clone());
    let scheme = Digest::new(vec![user.clone()], DigestOptions::default()).unwrap();
    assert!(!format!("{user:?} {scheme:?} {stored:?}").contains(stored.expose_secret()));
}

#[test]
fn the_challenge_is_for_sha_256_only() {
    let scheme = digest(DigestOptions::default());
    let challenge = scheme.challenge(None).unwrap();
    let (before, rest) = challenge.to_str().unwrap().split_once("nonce=\"").unwrap();
    assert_eq!(before, r#"Digest realm="baton", qop="auth", algorithm=SHA-256, "#);
    assert_eq!(rest.split_once('"').unwrap().1, ", charset=UTF-8");
}
