//! Clients that create tasks with webhooks, in all generations. A call that was not answered is made again if that cannot
//! make a second task or a second webhook; else the client asks what became of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use baton_protocol::Generation;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::caller::Caller;
use super::checker::{Hook, Since};
use super::forms::{self, Said, Webhook};
use super::receiver::{Receiver, Temper};
use crate::faults::runs::{HANG, Random};
use crate::served::Served;

const GENERATIONS: [Generation; 4] = [Generation::V1, Generation::V1, Generation::V0_3, Generation::V0_1];

/// What becomes of a task. In 0.1, all but a talk are an echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// It ends at once.
    Echo,
    /// It ends at once, after two pieces of an artifact.
    Pieces,
    /// It asks, some times; the last answer ends it.
    Talk,
    /// An event every fifth of a second, until it is canceled.
    Story,
    /// It waits until it is canceled.
    Cancel,
}

const WISHES: [Wish; 8] =
    [Wish::Echo, Wish::Pieces, Wish::Pieces, Wish::Talk, Wish::Talk, Wish::Talk, Wish::Story, Wish::Cancel];

/// What begins a talk, and the state of a task that asks.
const TALK: &str = "talk until I say done";
const ASKS: &str = "INPUT_REQUIRED";

pub(crate) struct Senders {
    address: watch::Sender<String>,
    tasks: Arc<Semaphore>,
    hooks: Arc<Mutex<BTreeMap<u64, Hook>>>,
    cut: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Senders {
    /// They wait for [`moved`](Self::moved) and [`feed`](Self::feed).
    pub(crate) fn start(clients: u64, seed: u64, receiver: &Receiver) -> Self {
        let (address, listening) = watch::channel(String::new());
        let tasks = Arc::new(Semaphore::new(0));
        let (hooks, cut) = (Arc::new(Mutex::new(BTreeMap::new())), Arc::new(AtomicU64::new(0)));
        let next = Arc::new(AtomicU64::new(1));
        let clients = (1..=clients).map(|number| {
            let sender = Sender {
                caller: Caller::new(listening.clone(), Arc::clone(&cut)),
                receiver: receiver.clone(),
                tasks: Arc::clone(&tasks),
                hooks: Arc::clone(&hooks),
                next: Arc::clone(&next),
                random: Random::new(seed.wrapping_mul(number)),
            };
            tokio::spawn(sender.work())
        });
        let clients = clients.collect();
        Senders { address, tasks, hooks, cut, clients }
    }

    /// The server is somewhere else now.
    pub(crate) fn moved(&self, server: &Served) {
        self.address.send(server.url.clone()).unwrap();
    }

    /// So many more tasks, by whoever has time.
    pub(crate) fn feed(&self, tasks: u64) {
        self.tasks.add_permits(tasks as usize);
    }

    /// Each client comes to the end of what it is at. Answers their webhooks, by the receiver's numbers.
    pub(crate) async fn finish(&mut self) -> BTreeMap<u64, Hook> {
        self.tasks.close();
        for client in self.clients.drain(..) {
            tokio::time::timeout(HANG, client).await.expect("no client hangs").unwrap();
        }
        self.hooks.lock().unwrap().clone()
    }

    /// Calls that got no answer.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

struct Sender {
    caller: Caller,
    receiver: Receiver,
    tasks: Arc<Semaphore>,
    hooks: Arc<Mutex<BTreeMap<u64, Hook>>>,
    /// The next name, of whatever needs one.
    next: Arc<AtomicU64>,
    random: Random,
}

impl Sender {
    async fn work(mut self) {
        while let Ok(permit) = Arc::clone(&self.tasks).acquire_owned().await {
            permit.forget();
            let generation = *self.random.pick(&GENERATIONS);
            let wish = *self.random.pick(&WISHES);
            match generation {
                Generation::V0_1 => self.legacy(wish).await,
                _ => self.task(generation, wish).await,
            }
        }
    }

    /// A task of 1.0 or 0.3, with one webhook that comes with it and others that come later, of either generation.
    async fn task(&mut self, generation: Generation, wish: Wish) {
        let (prefix, text) = match wish {
            Wish::Echo => ("m", "echo"),
            Wish::Pieces => ("tck-stream-artifact-chunked", "go"),
            Wish::Talk => ("m", TALK),
            Wish::Story => ("m", "tell me a story"),
            Wish::Cancel => ("m", "wait until I cancel"),
        };
        let id = self.name(prefix);
        let (number, webhook) = self.inline(generation);
        let blocking = !matches!(wish, Wish::Story | Wish::Cancel) && self.random.one_in(2);
        let said = Said { id: &id, text, task: None, webhook: Some(&webhook), blocking };
        let task = self.caller.sent(generation, &said).await;
        self.known(number, generation, &task, Some(Since::Birth));
        for _ in 0..self.random.below(4) {
            let generation = if self.random.one_in(2) { Generation::V1 } else { Generation::V0_3 };
            self.add(generation, &task).await;
        }
        match wish {
            Wish::Talk => self.talk(generation, &task).await,
            Wish::Story | Wish::Cancel => self.caller.cancel(&task).await,
            Wish::Echo | Wish::Pieces => {}
        }
        self.caller.until(&task, "").await;
    }

    /// Some answers come with a webhook.
    async fn talk(&mut self, generation: Generation, task: &str) {
        for left in (0..=self.random.below(4)).rev() {
            self.caller.until(task, ASKS).await;
            let id = self.name("m");
            let webhook = self.random.one_in(2).then(|| self.inline(generation));
            let said = Said {
                id: &id,
                text: if left == 0 { "done" } else { "more" },
                task: Some(task),
                webhook: webhook.as_ref().map(|(_, webhook)| webhook),
                blocking: self.random.one_in(2),
            };
            self.caller.sent(generation, &said).await;
            if let Some((number, _)) = webhook {
                self.known(number, generation, task, Some(Since::Message(id)));
            }
        }
    }

    /// A task of 0.1 has one webhook, which comes with it or later. A message has no id: it must not be sent twice.
    async fn legacy(&mut self, wish: Wish) {
        let task = self.name("task");
        let (text, asks) = if wish == Wish::Talk { (TALK, true) } else { ("echo", false) };
        let comes_later = asks && self.random.one_in(2);
        let inline = (!comes_later).then(|| self.webhook());
        let said = |text, webhook| Said { id: "", text, task: Some(&task), webhook, blocking: true };
        let begin = forms::send(Generation::V0_1, &said(text, inline.as_ref().map(|(_, webhook)| webhook)));
        loop {
            if let Ok(answer) = self.caller.call(Generation::V0_1, &begin).await {
                assert!(answer["result"].is_object(), "{answer}");
                break;
            }
            // It is there, with its webhook, or nothing is.
            if self.caller.state(&task).await.is_some() {
                break;
            }
        }
        match inline {
            Some((number, _)) => self.known(number, Generation::V0_1, &task, Some(Since::Birth)),
            None => {
                self.caller.until(&task, ASKS).await;
                self.add(Generation::V0_1, &task).await;
            }
        }
        let mut left = self.random.below(4);
        while asks && self.caller.until(&task, ASKS).await.ends_with(ASKS) {
            let form = forms::send(Generation::V0_1, &said(if left == 0 { "done" } else { "more" }, None));
            left = left.saturating_sub(u64::from(self.caller.call(Generation::V0_1, &form).await.is_ok()));
        }
        self.caller.until(&task, "").await;
    }

    /// Creates a webhook. One that nobody answered for is looked for, and left alone if it is not there.
    async fn add(&mut self, generation: Generation, task: &str) {
        loop {
            let (number, webhook) = self.webhook();
            self.known(number, generation, task, None);
            if let Ok(answer) = self.caller.call(generation, &forms::create(generation, task, &webhook)).await
            {
                assert!(answer["result"].is_object(), "{answer}");
                return self.known(number, generation, task, Some(Since::Time(now())));
            }
            let found = loop {
                if let Ok(answer) =
                    self.caller.call(generation, &forms::get(generation, task, &webhook)).await
                {
                    break answer;
                }
                self.caller.wait().await;
            };
            if found["result"].to_string().contains(&webhook.url) {
                return self.known(number, generation, task, Some(Since::Time(now())));
            }
        }
    }

    /// A webhook that the receiver knows: its number, and what goes into a call.
    fn webhook(&mut self) -> (u64, Webhook) {
        let temper = match self.random.below(20) {
            0 => Temper::Dead,
            1..=5 => Temper::Quick,
            _ => Temper::Mixed,
        };
        let (number, url, token) = self.receiver.hook(temper);
        (number, Webhook { id: Some(format!("w{number}")), url, token })
    }

    /// One that comes with a message. In 1.0 the server may choose its id; in 0.3 it would choose the same for each.
    fn inline(&mut self, generation: Generation) -> (u64, Webhook) {
        let (number, mut webhook) = self.webhook();
        if generation == Generation::V1 && self.random.one_in(2) {
            webhook.id = None;
        }
        (number, webhook)
    }

    fn known(&self, number: u64, generation: Generation, task: &str, since: Option<Since>) {
        self.hooks.lock().unwrap().insert(number, Hook { task: task.to_owned(), generation, since });
    }

    fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Milliseconds since 1970, as the server's log has them.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}
