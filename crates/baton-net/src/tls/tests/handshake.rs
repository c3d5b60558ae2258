//! Who gets in, with which protocol, and what happens to those who do not.

use std::time::Duration;

use rustls::version::{TLS12, TLS13};

use super::*;

#[tokio::test]
async fn both_versions_serve_both_protocols_on_one_port() {
    let authority = Authority::new();
    let server = serve(&Tls::new(config(authority.signs("localhost"))), Echo::default()).await;
    for version in [&TLS12, &TLS13] {
        for (offered, chosen) in [
            (&["h2", "http/1.1"][..], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&["http/1.0"], Some("http/1.0")),
            (&[], None),
        ] {
            let client = client(&authority, &[version], offered, None);
            // HTTP/2 with prior knowledge, where nothing was negotiated.
            let stream = connect(&client, server.address).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), chosen.map(str::as_bytes), "{offered:?}");
            if chosen.is_none_or(|chosen| chosen == "h2") {
                let (mut h2, connection) = h2::client::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                let request = Request::get("https://localhost/").body(()).unwrap();
                let answer = h2.send_request(request, true).unwrap().0.await.unwrap();
                assert_eq!(answer.status(), 200, "{version:?} {offered:?}");
            }
            if chosen != Some("h2") {
                let mut stream = connect(&client, server.address).await.unwrap();
                let answer = ask(&mut stream, GET).await;
                assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("HTTP/1.1, 0"), "{answer}");
                // The connection is kept, and framing is as strict as without TLS.
                assert!(ask(&mut stream, GET).await.starts_with("HTTP/1.1 200"));
                stream.write_all(b"GET / HTTP/1.1\nhost: localhost\n\n").await.unwrap();
                let mut refused = String::new();
                // An end without `close_notify` would be an error.
                stream.read_to_string(&mut refused).await.unwrap();
                assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
            }
        }
    }
}

/// ALPN decides: what the client speaks then is read as that, not guessed again.
#[tokio::test]
async fn a_client_that_does_not_speak_what_it_asked_for_is_refused() {
    let authority = Authority::new();
    let server = serve(&Tls::new(config(authority.signs("localhost"))), Echo::default()).await;
    let http1 = usual_client(&authority);
    let mut stream = connect(&http1, server.address).await.unwrap();
    stream.write_all(crate::preface::HTTP2_PREFACE).await.unwrap();
    assert!(read_until(&mut stream, "\n\r\n").await.starts_with("HTTP/1.1 505"));
    let http2 = client(&authority, &[&TLS13], &["h2"], None);
    let mut stream = connect(&http2, server.address).await.unwrap();
    stream.write_all(GET.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).await.unwrap();
    assert!(!came.starts_with(b"HTTP/1"), "no answer in HTTP/1");
    let none_of_ours = client(&authority, &[&TLS13], &["spdy/3"], None);
    assert!(connect(&none_of_ours, server.address).await.is_err());
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_told_so() {
    let authority = Authority::new();
    let server = serve(&Tls::new(config(authority.signs("localhost"))), Echo::default()).await;
    for first in [GET.as_bytes(), crate::preface::HTTP2_PREFACE] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(first).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n") && answer.contains("https://"),
            "{answer}"
        );
        assert!(!answer.to_ascii_lowercase().contains("strict-transport-security"));
    }
}

#[tokio::test]
async fn tls_on_a_plain_port_fails_at_once() {
    let authority = Authority::new();
    let server = serve_with(None, Echo::default(), |_| {}).await;
    let failed = connect(&usual_client(&authority), server.address).await.unwrap_err();
    assert!(failed.to_string().contains("InvalidContentType"), "{failed}");
}

/// A handshake that stops in the middle is closed by its own limit, and counts as a connection until then.
#[tokio::test]
async fn half_a_handshake_is_closed_in_time() {
    let authority = Authority::new();
    let tls = Tls::new(config(authority.signs("localhost")));
    let server = serve_with(Some(&tls), Echo::default(), |connections| {
        connections.handshake = Duration::from_millis(50);
        connections.first_byte = Duration::from_millis(50);
    })
    .await;
    // Nothing; the start of a record; a record that is no hello.
    for sent in [&[][..], &[0x16, 3, 1], &[0x16, 3, 1, 0, 4, 1, 0, 0, 0xff]] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut came = Vec::new();
        let _ended = stream.read_to_end(&mut came).await;
        assert!(came.len() < 16, "an alert at most");
    }
    // Many of them do not keep out a client that is honest.
    let tls_of_two =
        serve_with(Some(&tls), Echo::default(), |connections| connections.max_connections = 2).await;
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(tls_of_two.address).await.unwrap();
        stream.write_all(&[0x16, 3, 1]).await.unwrap();
        held.push(stream);
    }
    let mut stream = connect(&usual_client(&authority), tls_of_two.address).await.unwrap();
    assert!(ask(&mut stream, GET).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn client_certificates_are_verified_and_given_to_the_application() {
    let (authority, others) = (Authority::new(), Authority::new());
    let ours = || Some(authority.signs("client.example"));
    let foreign = || Some(others.signs("client.example"));
    let expired = || {
        Some(authority.signs_with("client.example", |params| {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }))
    };
    let identity = || authority.signs("localhost");
    let off = serve(&Tls::new(config(identity())), Echo::default()).await;
    let optional =
        serve(&Tls::new(config_with_clients(identity(), &authority, false)), Echo::default()).await;
    let required = serve(&Tls::new(config_with_clients(identity(), &authority, true)), Echo::default()).await;
    for version in [&TLS12, &TLS13] {
        for (server, identity, served) in [
            (&off, None, Some("0 certificates")),
            (&off, ours(), Some("0 certificates")),
            (&optional, None, Some("0 certificates")),
            (&optional, ours(), Some("1 certificates")),
            (&optional, foreign(), None),
            (&optional, expired(), None),
            (&required, None, None),
            (&required, ours(), Some("1 certificates")),
            (&required, foreign(), None),
            (&required, expired(), None),
        ] {
            let client = client(&authority, &[version], &["http/1.1"], identity);
            // With TLS 1.3 a client learns of it only when it reads.
            let answer = async {
                let mut stream = connect(&client, server.address).await?;
                stream.write_all(GET.as_bytes()).await?;
                let mut came = Vec::new();
                while !came.ends_with(b".") && stream.read_buf(&mut came).await? > 0 {}
                std::io::Result::Ok(String::from_utf8(came).unwrap())
            };
            let answer = answer.await;
            match served {
                Some(served) => assert!(answer.unwrap().contains(served)),
                None => assert!(answer.is_err(), "{answer:?}"),
            }
        }
    }
}

/// Handshakes all the time, while the certificate is replaced again and again; one connection stays open throughout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_fails_no_handshake_and_drops_no_connection() {
    const CLIENTS: usize = 4;
    let authority = Authority::new();
    let tls = Tls::new(config(authority.signs("localhost")));
    let server = serve(&tls, Echo::default()).await;
    let client = usual_client(&authority);
    let mut kept = connect(&client, server.address).await.unwrap();
    assert!(ask(&mut kept, GET).await.contains("200 OK"));
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (client, done, address) = (client.clone(), Arc::clone(&done), server.address);
            tokio::spawn(async move {
                let mut served = 0;
                while !done.load(SeqCst) {
                    let mut stream = connect(&client, address).await.expect("no handshake fails");
                    assert!(ask(&mut stream, GET).await.contains("200 OK"));
                    served += 1;
                }
                served
            })
        })
        .collect();
    let certificate_of =
        |stream: &TlsStream<TcpStream>| stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    for _ in 0..20 {
        let (chain, key) = authority.signs("localhost");
        tls.replace(config((chain.clone(), key)));
        let mut stream = connect(&client, server.address).await.unwrap();
        assert_eq!(certificate_of(&stream), chain[0], "the next handshake shows the new one");
        assert!(ask(&mut stream, GET).await.contains("200 OK"));
        assert!(ask(&mut kept, GET).await.contains("200 OK"), "the open connection goes on");
    }
    done.store(true, SeqCst);
    for client in clients {
        assert!(client.await.unwrap() > 0);
    }
}

/// What was verified for a session is not taken over by a configuration that may not trust it.
#[tokio::test]
async fn sessions_are_resumed_until_the_configuration_is_replaced() {
    let authority = Authority::new();
    for version in [&TLS12, &TLS13] {
        let tls = Tls::new(config(authority.signs("localhost")));
        let server = serve(&tls, Echo::default()).await;
        let client = client(&authority, &[version], &["http/1.1"], None);
        let kind = async || {
            let mut stream = connect(&client, server.address).await.unwrap();
            // The ticket comes with or after the answer.
            assert!(ask(&mut stream, GET).await.contains("200 OK"));
            stream.get_ref().1.handshake_kind().unwrap()
        };
        use rustls::HandshakeKind::{Full, Resumed};
        assert_eq!((kind().await, kind().await), (Full, Resumed), "{version:?}");
        tls.replace(config(authority.signs("localhost")));
        assert_eq!((kind().await, kind().await), (Full, Resumed), "{version:?}");
    }
}
