//! What a client sends: the parameters of `Authorization: Digest`, and the hash that they must have.

use std::borrow::Cow;

use http::{HeaderMap, Uri};
use sha2::{Digest as _, Sha256};

use super::super::authorization::Parameters;

/// Longest nonce of the client.
const MAX_CNONCE: usize = 256;

/// The parameters of the header, each checked on its own. It has no `Debug`.
pub(in super::super) struct Response<'a> {
    pub(in super::super) user: Cow<'a, str>,
    pub(super) realm: &'a str,
    pub(super) nonce: &'a str,
    pub(super) count: u32,
    pub(super) response: &'a str,
    uri: &'a str,
    nc: &'a str,
    cnonce: &'a str,
    qop: &'a str,
}

impl<'a> Response<'a> {
    pub(in super::super) fn read(
        parameters: &'a Parameters<'_>,
        max_user: usize,
    ) -> Result<Self, &'static str> {
        let get = |name| parameters.get(name);
        // Without the parameter it would be MD5.
        if !get("algorithm").is_some_and(|algorithm| algorithm.eq_ignore_ascii_case("SHA-256")) {
            return Err("the algorithm is not SHA-256");
        }
        let qop = get("qop").filter(|qop| *qop == "auth").ok_or("the qop is not auth")?;
        if get("userhash").is_some_and(|hashed| !hashed.eq_ignore_ascii_case("false")) {
            return Err("userhash is not supported");
        }
        let user = match (get("username"), get("username*")) {
            (Some(user), None) => Cow::Borrowed(user),
            (None, Some(user)) => Cow::Owned(extended(user).ok_or("the username* is not UTF-8''NAME")?),
            (None, None) => return Err("no username"),
            (Some(_), Some(_)) => return Err("a username and a username*"),
        };
        if user.is_empty() || user.len() > max_user {
            return Err("the username is empty or too long");
        }
        if user.contains(char::is_control) {
            return Err("a control character in the username");
        }
        let nc = get("nc").filter(|nc| nc.len() == 8 && nc.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let nc = nc.ok_or("the nc is not eight hexadecimal digits")?;
        let count = u32::from_str_radix(nc, 16).ok().filter(|count| *count > 0).ok_or("the nc is zero")?;
        let cnonce = get("cnonce").filter(|cnonce| (1..=MAX_CNONCE).contains(&cnonce.len()));
        Ok(Response {
            user,
            realm: get("realm").ok_or("no realm")?,
            nonce: get("nonce").ok_or("no nonce")?,
            count,
            response: get("response").filter(|text| is_hash(text)).ok_or("the response is not a SHA-256")?,
            uri: get("uri").ok_or("no uri")?,
            nc,
            cnonce: cnonce.ok_or("no cnonce, or a long one")?,
            qop,
        })
    }

    /// Whether its `uri` is the target of this request: in origin form, as clients send it, or in absolute form with the
    /// host of the request. If a proxy removes the path of the public URL, it may be there, because the client sent it.
    pub(super) fn is_for(&self, target: &Uri, headers: &HeaderMap, public_path: &str) -> bool {
        let Some(ours) = target.path_and_query().map(|target| target.as_str()) else { return false };
        let origin = match self.uri.split_once("://") {
            Some((scheme, rest))
                if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
            {
                let (authority, origin) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                let host = headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
                let host = target.authority().map(|authority| authority.as_str()).or(host);
                if !host.is_some_and(|host| host.eq_ignore_ascii_case(authority)) {
                    return false;
                }
                origin
            }
            _ => self.uri,
        };
        // `/agents` and `/agents/` are different targets, so nothing but the whole text counts. Only a proxy that removes
        // the whole path has to write the slash.
        let is_root = |rest: &str| rest.is_empty() || rest.starts_with('?');
        let is_rest = |rest: &str| rest == ours || is_root(rest) && ours.strip_prefix('/') == Some(rest);
        origin == ours || !public_path.is_empty() && origin.strip_prefix(public_path).is_some_and(is_rest)
    }

    /// The only right `response`, for the user's stored `SHA-256(user:realm:password)`.
    pub(super) fn expected(&self, stored: &str, method: &str) -> String {
        let request = hash(&[method, self.uri]);
        hash(&[stored, self.nonce, self.nc, self.cnonce, self.qop, &request])
    }
}

/// SHA-256 of the parts with colons between, in hexadecimal.
fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            hash.update(b":");
        }
        hash.update(part.as_bytes());
    }
    hexadecimal(&hash.finalize().into())
}

pub(super) fn hexadecimal(bytes: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Whether the text is a SHA-256 as the RFC writes it: 64 hexadecimal digits in lower case.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// `UTF-8'language'percent-encoded` of RFC 8187.
fn extended(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    if !charset.eq_ignore_ascii_case("UTF-8") {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'\'' | b'*' => return None,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::super::super::authorization::{Found, find};
    use super::*;

    /// The header of the RFC's example (3.9.1) with SHA-256.
    const EXAMPLE: &str = r#"Digest username="Mufasa",
       realm="http-auth@example.org",
       uri="/dir/index.html",
       algorithm=SHA-256,
       nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
       nc=00000001,
       cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
       qop=auth,
       response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
       opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;

    fn read(header: &str) -> Result<(String, u32), &'static str> {
        let value = HeaderValue::from_str(&header.replace("\n      ", "")).unwrap();
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]);
        let Found::Credentials(credentials) = find(&headers, "digest") else { panic!("{header}") };
        let parameters = credentials.parameters()?;
        Response::read(&parameters, 128).map(|response| (response.user.into_owned(), response.count))
    }

    #[test]
    fn the_example_of_the_rfc() {
        let value = HeaderValue::from_str(&EXAMPLE.replace("\n      ", "")).unwrap();
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]);
        let Found::Credentials(credentials) = find(&headers, "digest") else { panic!() };
        let parameters = credentials.parameters().unwrap();
        let response = Response::read(&parameters, 128).unwrap();
        let stored = hash(&["Mufasa", "http-auth@example.org", "Circle of Life"]);
        assert_eq!(response.expected(&stored, "GET"), response.response);
        assert_ne!(response.expected(&stored, "POST"), response.response);
        assert!(response.is_for(&Uri::from_static("/dir/index.html"), &HeaderMap::new(), ""));
    }

    #[test]
    fn headers_are_read_strictly() {
        assert_eq!(read(EXAMPLE), Ok(("Mufasa".to_owned(), 1)));
        let with = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from), "{from}");
            read(&EXAMPLE.replace(from, to))
        };
        let user = |name: &str| Ok((name.to_owned(), 1));
        const NAME: &str = r#"username="Mufasa""#;
        for (from, to, expected) in [
            // As Python's requests writes them.
            ("algorithm=SHA-256", r#"algorithm="SHA-256""#, user("Mufasa")),
            ("algorithm=SHA-256", "algorithm=sha-256", user("Mufasa")),
            ("qop=auth", r#"qop="auth""#, user("Mufasa")),
            ("nc=00000001", r#"nc="00000001""#, user("Mufasa")),
            ("nc=00000001", "nc=0000000A", Ok(("Mufasa".to_owned(), 10))),
            (NAME, r#"username="M\"ufasa""#, user("M\"ufasa")),
            (NAME, "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe", user("Jäsøn Doe")),
            (NAME, "username*=utf-8'en'a", user("a")),
            (NAME, r#"username="Mufasa", userhash=false"#, user("Mufasa")),
            (NAME, r#"username="Mufasa", userhash=true"#, Err("userhash is not supported")),
            (NAME, r#"username="Mufasa", username*=UTF-8''a"#, Err("a username and a username*")),
            (NAME, "username*=ISO-8859-1''a", Err("the username* is not UTF-8''NAME")),
            (NAME, "username*=UTF-8''%", Err("the username* is not UTF-8''NAME")),
            (NAME, "username*=UTF-8''%4", Err("the username* is not UTF-8''NAME")),
            (NAME, "username*=UTF-8''%+4", Err("the username* is not UTF-8''NAME")),
            (NAME, "username*=UTF-8''%ff", Err("the username* is not UTF-8''NAME")),
            (NAME, "username*=UTF-8''%00", Err("a control character in the username")),
            (NAME, "username*=UTF-8", Err("the username* is not UTF-8''NAME")),
            (NAME, r#"username="""#, Err("the username is empty or too long")),
            (NAME, "other=x", Err("no username")),
            ("algorithm=SHA-256,", "", Err("the algorithm is not SHA-256")),
            ("algorithm=SHA-256", "algorithm=MD5", Err("the algorithm is not SHA-256")),
            ("algorithm=SHA-256", "algorithm=SHA-256-sess", Err("the algorithm is not SHA-256")),
            ("qop=auth,", "", Err("the qop is not auth")),
            ("qop=auth", "qop=auth-int", Err("the qop is not auth")),
            ("qop=auth", r#"qop="auth,auth-int""#, Err("the qop is not auth")),
            ("nc=00000001", "nc=1", Err("the nc is not eight hexadecimal digits")),
            ("nc=00000001", "nc=000000001", Err("the nc is not eight hexadecimal digits")),
            ("nc=00000001", "nc=+0000001", Err("the nc is not eight hexadecimal digits")),
            ("nc=00000001", "nc=00000000", Err("the nc is zero")),
            ("nc=00000001,", "", Err("the nc is not eight hexadecimal digits")),
            ("6cb6c1", "6CB6C1", Err("the response is not a SHA-256")),
            ("6cb6c1", "6cb6c", Err("the response is not a SHA-256")),
            ("realm=", "realn=", Err("no realm")),
            (" nonce=", " nance=", Err("no nonce")),
            ("uri=", "url=", Err("no uri")),
            ("cnonce=", "dnonce=", Err("no cnonce, or a long one")),
            ("qop=auth", "qop=auth, nc=00000001", Err("a parameter is there twice")),
        ] {
            assert_eq!(with(from, to), expected, "{to}");
        }
        assert_eq!(
            with(NAME, &format!(r#"username="{}""#, "a".repeat(129))),
            Err("the username is empty or too long")
        );
        assert!(with("cnonce=\"", &format!("cnonce=\"{}", "a".repeat(256))).is_err());
    }

    #[test]
    fn the_uri_is_that_of_the_request() {
        let host = HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static("a.example:80"))]);
        for (uri, target, public_path, good) in [
            ("/", "/", "", true),
            ("/a?b=c%20d&e", "/a?b=c%20d&e", "", true),
            ("/a?b=c", "/a", "", false),
            ("/a", "/a?b=c", "", false),
            ("/a?", "/a?", "", true),
            ("/a?", "/a", "", false),
            ("/a", "/A", "", false),
            ("/%61", "/a", "", false),
            ("/a/../b", "/b", "", false),
            ("/a/", "/a", "", false),
            ("", "/", "", false),
            ("*", "/", "", false),
            ("http://a.example:80/x?y", "/x?y", "", true),
            ("HTTPS://A.example:80/x?y", "/x?y", "", true),
            ("http://b.example/x", "/x", "", false),
            ("http://a.example/x", "/x", "", false),
            ("ftp://a.example:80/x", "/x", "", false),
            ("http://a.example:80", "/", "", false),
            ("http://c.example/x", "http://c.example/x", "", true),
            ("/x", "http://c.example/x", "", true),
            ("http://a.example:80/x", "http://c.example/x", "", false),
            ("/pre/x?y", "/x?y", "/pre", true),
            ("/x?y", "/x?y", "/pre", true),
            ("/pre/pre/x", "/x", "/pre", false),
            ("/pre", "/", "/pre", true),
            ("/pre?y", "/?y", "/pre", true),
            ("/pre/", "/", "/pre", true),
            ("/pre", "/x", "/pre", false),
            ("/prefix", "/fix", "/pre", false),
            ("/pre/x", "/x", "", false),
            ("/other/x", "/x", "/pre", false),
        ] {
            let response = Response {
                user: Cow::Borrowed("u"),
                realm: "r",
                nonce: "n",
                count: 1,
                response: "",
                uri,
                nc: "00000001",
                cnonce: "c",
                qop: "auth",
            };
            let found = response.is_for(&Uri::try_from(target).unwrap(), &host, public_path);
            assert_eq!(found, good, "{uri} for {target}, public path {public_path:?}");
        }
    }
}
