//! The fault proxy over real sockets: what each fault does to both ends, and that a plan replays.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_lab::fault::{Happened, Plan, Proxy, Tally};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy with what it told, before a server that the test plays itself.
struct Rig {
    server: TcpListener,
    at: std::net::SocketAddr,
    proxy: Proxy,
    told: Arc<Mutex<Vec<Happened>>>,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Rig {
    async fn start(fault: &str, seed: u64) -> Self {
        Self::with(fault, seed, 1024).await
    }

    async fn with(fault: &str, seed: u64, most: usize) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let told: Arc<Mutex<Vec<Happened>>> = Arc::default();
        let keep = Arc::clone(&told);
        let recipes = fault.split(',').map(|one| one.parse().unwrap()).collect();
        let proxy = Proxy::new(server.local_addr().unwrap().to_string(), Plan { recipes, every: 1, seed })
            .at_most(most)
            .telling(move |happened| keep.lock().unwrap().push(happened));
        let stop = CancellationToken::new();
        let (running, until) = (proxy.clone(), stop.clone());
        let serving = tokio::spawn(async move { running.serve(listener, until.cancelled()).await });
        Rig { server, at, proxy, told, stop, serving }
    }

    /// Both ends of a connection through the proxy.
    async fn connect(&self) -> (TcpStream, TcpStream) {
        let (client, server) = tokio::join!(TcpStream::connect(self.at), self.server.accept());
        (client.unwrap(), server.unwrap().0)
    }

    async fn stop(self) -> Tally {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.serving).await.expect("it ends in time").unwrap();
        self.proxy.tally()
    }

    fn told(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        told.iter()
            .map(|happened| match happened {
                Happened::Injected { connection, fault, side, at } => {
                    format!("{connection} {fault} {} {at}", side.name())
                }
                Happened::Unreachable { connection, .. } => format!("{connection} unreachable"),
            })
            .collect()
    }
}

/// All that comes until the end, and in how many reads.
async fn all(stream: &mut TcpStream) -> (Vec<u8>, usize) {
    let (mut bytes, mut reads, mut room) = (Vec::new(), 0, vec![0; 4096]);
    loop {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut room)).await.expect("no hang");
        match read {
            Ok(0) | Err(_) => return (bytes, reads),
            Ok(length) => {
                bytes.extend_from_slice(&room[..length]);
                reads += 1;
            }
        }
    }
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|number| u8::try_from(number % 251).unwrap()).collect()
}

#[tokio::test]
async fn split_bytes_come_whole_and_in_pieces() {
    let rig = Rig::start("split", 1).await;
    let (mut client, mut server) = rig.connect().await;
    let sent = text(5000);
    client.write_all(&sent).await.unwrap();
    client.shutdown().await.unwrap();
    let (got, reads) = all(&mut server).await;
    assert_eq!(got, sent);
    assert!(reads >= 4, "{reads} reads are hardly pieces");
    server.write_all(&sent).await.unwrap();
    drop(server);
    assert_eq!(all(&mut client).await.0, sent, "and back");
    assert_eq!(rig.told(), ["1 split up 0", "1 split down 0"]);
    let tally = rig.stop().await;
    assert_eq!((tally.connections, tally.faulted, tally.up, tally.down), (1, 1, 5000, 5000));
}

#[tokio::test]
async fn delays_and_stalls_lose_nothing() {
    let rig = Rig::start("delay=30ms+stall=60ms@100/up", 1).await;
    let (mut client, mut server) = rig.connect().await;
    let started = Instant::now();
    client.write_all(&text(300)).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(all(&mut server).await.0, text(300));
    assert!(
        started.elapsed() >= Duration::from_millis(90),
        "they did not take place: {:?}",
        started.elapsed()
    );
    assert_eq!(rig.told(), ["1 delay=30ms up 0", "1 stall=60ms@100/up up 100"]);
    rig.stop().await;
}

#[tokio::test]
async fn a_slow_way_loses_nothing() {
    let rig = Rig::start("slow=10000/up", 1).await;
    let (mut client, mut server) = rig.connect().await;
    let started = Instant::now();
    client.write_all(&text(2000)).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(all(&mut server).await.0, text(2000));
    assert!(started.elapsed() >= Duration::from_millis(150), "2,000 bytes in {:?}", started.elapsed());
    rig.stop().await;
}

#[tokio::test]
async fn a_cut_ends_both_sides_after_so_many_bytes() {
    for (fault, ends) in [("cut@10/up", "closed"), ("reset@10/up", "reset")] {
        let rig = Rig::start(fault, 1).await;
        let (mut client, mut server) = rig.connect().await;
        client.write_all(&text(10)).await.unwrap();
        let mut first = [0; 10];
        tokio::time::timeout(PATIENCE, server.read_exact(&mut first)).await.expect("no hang").unwrap();
        assert_eq!(first.as_slice(), text(10));
        for end in [&mut client, &mut server] {
            let last = tokio::time::timeout(PATIENCE, end.read(&mut [0; 1])).await.expect("no hang");
            match last {
                Ok(0) => assert_eq!(ends, "closed", "{fault}"),
                Err(error) => assert_eq!(
                    (error.kind(), ends),
                    (std::io::ErrorKind::ConnectionReset, "reset"),
                    "{fault}"
                ),
                Ok(_) => panic!("{fault}: bytes from nowhere"),
            }
        }
        assert_eq!(rig.told().len(), 1, "{:?}", rig.told());
        rig.stop().await;
    }
}

#[tokio::test]
async fn a_cut_comes_in_the_direction_it_is_for() {
    let rig = Rig::start("cut@5/down", 1).await;
    let (mut client, mut server) = rig.connect().await;
    client.write_all(&text(100)).await.unwrap();
    let mut got = [0; 100];
    tokio::time::timeout(PATIENCE, server.read_exact(&mut got)).await.expect("no hang").unwrap();
    server.write_all(b"hello, client").await.unwrap();
    assert_eq!(all(&mut client).await.0, b"hello");
    rig.stop().await;
}

#[tokio::test]
async fn a_half_closed_client_still_gets_its_answer() {
    let rig = Rig::start("half-close@5", 1).await;
    let (mut client, mut server) = rig.connect().await;
    client.write_all(b"hello, server").await.unwrap();
    assert_eq!(all(&mut server).await.0, b"hello");
    server.write_all(b"bye").await.unwrap();
    drop(server);
    assert_eq!(all(&mut client).await.0, b"bye");
    rig.stop().await;
}

/// The same seed does the same to the same connection, in every run.
#[tokio::test]
async fn a_seed_replays() {
    async fn run(seed: u64) -> Vec<String> {
        let rig = Rig::start("cut/up,reset/up,half-close,split", seed).await;
        for _ in 0..12 {
            let (mut client, mut server) = rig.connect().await;
            // Whoever is cut finds out somewhere in here.
            let _ = client.write_all(&text(600)).await;
            let _ = client.shutdown().await;
            all(&mut server).await;
            drop(server);
            all(&mut client).await;
        }
        rig.told()
    }
    let (one, two, other) = (run(3).await, run(3).await, run(4).await);
    assert_eq!(one, two);
    assert_ne!(one, other);
    assert!(one.len() >= 12, "{one:?}");
}

#[tokio::test]
async fn connections_beyond_the_bound_wait() {
    let rig = Rig::with("split", 1, 1).await;
    let (first, first_server) = rig.connect().await;
    // Taken by the kernel, not by the proxy.
    let mut second = TcpStream::connect(rig.at).await.unwrap();
    second.write_all(b"x").await.unwrap();
    assert_eq!(rig.proxy.tally().connections, 1);
    drop((first, first_server));
    let (mut second_server, _) =
        tokio::time::timeout(PATIENCE, rig.server.accept()).await.expect("its turn").unwrap();
    second.shutdown().await.unwrap();
    assert_eq!(all(&mut second_server).await.0, b"x");
    assert_eq!(rig.stop().await.connections, 2);
}

/// Told to stop it takes no more, and does not wait for those who never end.
#[tokio::test]
async fn it_ends_with_connections_open() {
    let rig = Rig::start("split", 1).await;
    let (mut client, server) = rig.connect().await;
    let at = rig.at;
    rig.stop().await;
    assert_eq!(all(&mut client).await.0, b"");
    drop(server);
    TcpStream::connect(at).await.unwrap_err();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let rig = Rig::start("split", 1).await;
    let Rig { server, at, .. } = &rig;
    let gone = server.local_addr().unwrap();
    assert_ne!(gone, *at);
    let mut moved = rig;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    drop(std::mem::replace(&mut moved.server, closed));
    let mut client = TcpStream::connect(moved.at).await.unwrap();
    assert_eq!(all(&mut client).await.0, b"");
    assert_eq!(moved.told(), ["1 unreachable"]);
    assert_eq!(moved.stop().await.unreachable, 1);
}
