//! A name server: A and AAAA over UDP, never to be remembered (TTL 0). It knows what every name is asked for how often.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::internal::address;
use super::namespace::NAME_SERVER;

/// Longest time until a name is asked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What names lead to that nobody has set: a URL that the guard reads differently than it should ends here.
const UNKNOWN: [&str; 2] = ["10.0.0.5", "fc00::5"];

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const NO_SUCH_NAME: u16 = 3;

/// What a name server says about a name.
#[derive(Debug, Clone)]
pub(super) enum Zone {
    /// The addresses of the first question, those of the second one, and so on, over and over.
    Turns(Vec<Vec<IpAddr>>),
    /// Another name for this one, with its addresses.
    Alias(String, Vec<IpAddr>),
    NoSuchName,
}

impl Zone {
    /// The same addresses at every question.
    pub(super) fn of(addresses: &[&str]) -> Self {
        Self::turns(&[addresses])
    }

    pub(super) fn turns(turns: &[&[&str]]) -> Self {
        Self::Turns(turns.iter().map(|turn| read(turn)).collect())
    }

    pub(super) fn alias(name: &str, addresses: &[&str]) -> Self {
        Self::Alias(name.to_owned(), read(addresses))
    }
}

fn read(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|text| address(text)).collect()
}

/// A cheap handle.
#[derive(Debug, Clone)]
pub(super) struct Names(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    zones: HashMap<String, Zone>,
    /// Questions by name, for A and for AAAA.
    asked: Mutex<HashMap<String, [usize; 2]>>,
    more: Notify,
}

impl Names {
    /// Serves these until the process ends. `*.domain` stands for every name with one more label.
    pub(super) fn serve(zones: HashMap<String, Zone>) -> Self {
        let socket = UdpSocket::bind((NAME_SERVER, 53)).unwrap();
        let shared = Arc::new(Shared { zones, asked: Mutex::default(), more: Notify::new() });
        let names = Names(Arc::clone(&shared));
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                if let Some(answer) = shared.answer(&question[..length]) {
                    let _gone = socket.send_to(&answer, from);
                }
            }
        });
        names
    }

    /// How often the IPv4 addresses of a name were asked for; each look-up does it once.
    pub(super) fn asked(&self, name: &str) -> usize {
        self.0.asked.lock().unwrap().get(name).map_or(0, |asked| asked[0])
    }

    pub(super) fn asked_in_all(&self) -> usize {
        self.0.asked.lock().unwrap().values().map(|asked| asked[0]).sum()
    }

    /// Waits until each of the names was asked for.
    pub(super) async fn until_asked(&self, names: &[String]) {
        let wait = async {
            for name in names {
                loop {
                    let more = self.0.more.notified();
                    if self.asked(name) > 0 {
                        break;
                    }
                    more.await;
                }
            }
        };
        let missing = || names.iter().filter(|name| self.asked(name) == 0).collect::<Vec<_>>();
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("nobody asks for {:?}", missing()));
    }
}

impl Shared {
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (name, end) = read_name(question)?;
        let kind = u16::from_be_bytes(question.get(end..end + 2)?.try_into().ok()?);
        let turn = self.count(&name, kind);
        let unknown = Zone::of(&UNKNOWN);
        let zone = self.zone(&name).unwrap_or(&unknown);
        let (alias, addresses) = match zone {
            Zone::Turns(turns) => (None, turns[turn % turns.len()].as_slice()),
            Zone::Alias(alias, addresses) => (Some(alias), addresses.as_slice()),
            Zone::NoSuchName => (None, [].as_slice()),
        };
        let mut records = Vec::new();
        // The question's own name stands at byte 12.
        let mut owner = vec![0xc0, 12];
        if let Some(alias) = alias {
            write_record(&mut records, &owner, CNAME, &write_name(alias));
            owner = write_name(alias);
        }
        let mut count = u16::from(alias.is_some());
        for address in addresses {
            let (its_kind, bytes) = match address {
                IpAddr::V4(v4) => (A, v4.octets().to_vec()),
                IpAddr::V6(v6) => (AAAA, v6.octets().to_vec()),
            };
            if its_kind == kind {
                write_record(&mut records, &owner, its_kind, &bytes);
                count += 1;
            }
        }
        let code = if matches!(zone, Zone::NoSuchName) { NO_SUCH_NAME } else { 0 };
        let mut answer = question.get(..2)?.to_vec();
        // A response, authoritative, of a server that resolves for others.
        for word in [0x8580 | code, 1, count, 0, 0] {
            answer.extend(word.to_be_bytes());
        }
        answer.extend(question.get(12..end + 4)?);
        answer.extend(records);
        Some(answer)
    }

    /// Which turn it is for this question.
    fn count(&self, name: &str, kind: u16) -> usize {
        let mut asked = self.asked.lock().unwrap();
        let asked = asked.entry(name.to_owned()).or_default();
        let count = &mut asked[usize::from(kind == AAAA)];
        *count += 1;
        self.more.notify_waiters();
        *count - 1
    }

    fn zone(&self, name: &str) -> Option<&Zone> {
        let any = || name.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        self.zones.get(name).or_else(|| self.zones.get(&any()?))
    }
}

/// The name that is asked for, in lower case, and where it ends.
fn read_name(question: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        if length == 0 {
            return Some((labels.join("."), at + 1));
        }
        let label = question.get(at + 1..at + 1 + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + length;
    }
}

fn write_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn write_record(records: &mut Vec<u8>, owner: &[u8], kind: u16, data: &[u8]) {
    records.extend(owner);
    for word in [kind, 1, 0, 0, data.len() as u16] {
        records.extend(word.to_be_bytes());
    }
    records.extend(data);
}
