//! Resolves the names of hosts.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

/// Finds the addresses of a name. Tests have their own.
#[async_trait]
pub(crate) trait Resolve: fmt::Debug + Send + Sync {
    /// All addresses, in the order in which they should be tried.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of a server.
pub(crate) fn system() -> Arc<dyn Resolve> {
    Arc::new(Remembered::new(SystemResolver::new(), Duration::from_secs(5)))
}

/// Most look-ups of the system's resolver at the same time. Each takes a thread until it is done, also if nobody waits for
/// it any more. A name server that does not answer holds one for up to a minute, four times as long as a call lasts; with
/// this many, hosts of slow name servers cannot keep others from being found.
const MAX_LOOKUPS: usize = 256;

/// The operating system's resolver.
#[derive(Debug)]
struct SystemResolver {
    places: Arc<Semaphore>,
}

impl SystemResolver {
    fn new() -> Self {
        SystemResolver { places: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let lookup = move || {
            let _place = place;
            let found = (name.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        };
        tokio::task::spawn_blocking(lookup).await.map_err(io::Error::other)?
    }
}

/// Names that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Asks once for many attempts at the same host within a few seconds, and once for all that ask at the same time. Each
/// attempt still judges the addresses for itself, and connects to one of these.
#[derive(Debug)]
struct Remembered<R> {
    resolver: R,
    time: Duration,
    answers: Mutex<HashMap<String, Answer>>,
}

/// `io::Error` cannot be copied.
type Found = Result<Vec<IpAddr>, Arc<io::Error>>;

#[derive(Debug, Clone)]
struct Answer {
    asked: Instant,
    /// Empty while the look-up is under way.
    found: Arc<OnceCell<Found>>,
}

impl<R> Remembered<R> {
    fn new(resolver: R, time: Duration) -> Self {
        Remembered { resolver, time, answers: Mutex::default() }
    }

    /// The newest answer, or an empty one that whoever comes first fills.
    fn answer(&self, name: &str) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_fresh = |answer: &Answer| now.duration_since(answer.asked) < self.time;
        if let Some(answer) = answers.get(name).filter(|answer| is_fresh(answer)) {
            return answer.clone();
        }
        if answers.len() >= MAX_REMEMBERED {
            answers.retain(|_, answer| is_fresh(answer));
        }
        let answer = Answer { asked: now, found: Arc::default() };
        // Full of fresh names: this one is looked up without being remembered.
        if answers.len() < MAX_REMEMBERED {
            answers.insert(name.to_owned(), answer.clone());
        }
        answer
    }
}

#[async_trait]
impl<R: Resolve> Resolve for Remembered<R> {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let answer = self.answer(name);
        let ask = || async { self.resolver.addresses(name).await.map_err(Arc::new) };
        match answer.found.get_or_init(ask).await {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err(io::Error::new(error.kind(), Arc::clone(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Resolve for Counting {
        async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            match name {
                "missing" => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                _ => Ok(vec![IpAddr::from([10, 0, 0, asked as u8])]),
            }
        }
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = system().addresses("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        system().addresses("no-such-name.invalid").await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_serves_all_for_a_while() {
        let resolver = Remembered::new(Counting::default(), Duration::from_secs(5));
        let (one, two, other) =
            tokio::join!(resolver.addresses("a"), resolver.addresses("a"), resolver.addresses("b"));
        assert_eq!(one.unwrap(), two.unwrap());
        other.unwrap();
        assert_eq!(resolver.resolver.0.load(Ordering::Relaxed), 2);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(resolver.addresses("a").await.unwrap(), [IpAddr::from([10, 0, 0, 2])]);
        for _ in 0..2 {
            let error = resolver.addresses("missing").await.unwrap_err();
            assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::NotFound, "no such name"));
        }
        assert_eq!(resolver.resolver.0.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn names_without_end_are_not_remembered() {
        let resolver = Remembered::new(Counting::default(), Duration::from_secs(3600));
        for number in 0..MAX_REMEMBERED + 10 {
            resolver.addresses(&format!("host-{number}")).await.unwrap();
        }
        assert_eq!(resolver.answers.lock().unwrap().len(), MAX_REMEMBERED);
    }
}
