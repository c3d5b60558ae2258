//! A server on a free port, a proxy that cuts connections, and servers that do as they are told.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use baton_client::protocol::domain::{AgentCard, AgentSkill, Task};
use baton_client::{Client, Discovered, EventStream, Reconnects, Retries, StreamEvent};
use baton_server::{AgentError, Builder, Server, Turn};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

/// Longest time that a test waits for anything.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct TestServer {
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl TestServer {
    /// Stops the server and waits until it has stopped.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.take().expect("stopped once").send(());
        tokio::time::timeout(TEST_TIMEOUT, &mut self.served).await.expect("it stops").unwrap();
    }
}

pub(crate) fn card() -> AgentCard {
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    card.default_input_modes = vec!["*/*".to_owned()];
    card
}

pub(crate) fn with_agent(agent: impl baton_server::Agent) -> Builder {
    Server::builder(card()).task_skill(AgentSkill::new("test", "test", "test"), agent)
}

pub(crate) async fn serve(builder: Builder) -> TestServer {
    serve_on(builder, TcpListener::bind("127.0.0.1:0").await.unwrap()).await
}

pub(crate) async fn serve_on(builder: Builder, listener: TcpListener) -> TestServer {
    let server = builder.grpc().build().await.expect("the server can be built");
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        server.serve_until(listener, stopped).await.expect("it serves");
    });
    TestServer { url, stop: Some(stop), served }
}

/// Does what the first word of the message says; anything else is echoed.
pub(crate) async fn obedient(turn: Turn) -> Result<(), AgentError> {
    let text = turn.text();
    match text.split(' ').next().unwrap_or_default() {
        "hold" => turn.cancellation().cancelled().await,
        "ask" => drop(turn.ask("What else?")),
        "fail" => turn.fail("as asked").await?,
        "words" => {
            let mut stream = turn.stream_text("words");
            for word in text.split_inclusive(' ').skip(1) {
                stream.write(word).await?;
            }
            stream.finish().await?;
        }
        _ => turn.text_artifact("echo", text).await?,
    }
    Ok(())
}

/// Writes an artifact for each permit, and ends after so many.
pub(crate) fn stepwise(steps: usize) -> (impl baton_server::Agent, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let given = Arc::clone(&permits);
    let agent = move |turn: Turn| {
        let given = Arc::clone(&given);
        async move {
            for step in 0..steps {
                given.acquire().await.unwrap().forget();
                turn.text_artifact(&format!("step-{step}"), format!("text {step}")).await?;
            }
            Ok::<(), AgentError>(())
        }
    };
    (agent, permits)
}

/// Options with some changes.
pub(crate) fn options<T: Default>(change: impl FnOnce(&mut T)) -> T {
    let mut options = T::default();
    change(&mut options);
    options
}

/// A client that does not wait long.
pub(crate) fn quick() -> baton_client::Builder {
    let wait = Duration::from_millis(10);
    let builder = Client::builder().retries(options(|it: &mut Retries| it.first_wait = wait));
    builder.reconnects(options(|it: &mut Reconnects| {
        (it.first_wait, it.longest_wait, it.poll) = (wait, wait, wait);
    }))
}

pub(crate) async fn next(stream: &mut EventStream) -> Option<StreamEvent> {
    let event = tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.expect("the stream goes on");
    event.map(|event| event.expect("no error"))
}

pub(crate) async fn rest(stream: &mut EventStream) -> Vec<StreamEvent> {
    let mut all = Vec::new();
    while let Some(event) = next(stream).await {
        all.push(event);
    }
    all
}

/// The texts of all artifacts, in order.
pub(crate) fn texts(task: &Task) -> Vec<String> {
    let text = |artifact: &Arc<baton_client::protocol::domain::Artifact>| {
        artifact
            .parts
            .iter()
            .map(|part| match &part.content {
                baton_client::protocol::domain::PartContent::Text(text) => text.as_str(),
                other => panic!("not a text: {other:?}"),
            })
            .collect::<String>()
    };
    task.artifacts.iter().map(text).collect()
}

/// Forwards to a server, and can cut everything that is open.
pub(crate) struct CuttingProxy {
    pub(crate) url: String,
    cut: watch::Sender<u32>,
    target: Arc<OnceLock<String>>,
}

impl CuttingProxy {
    /// Its address is known before the server's, so that the server can put it on its card.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (cut, cuts) = watch::channel(0);
        let target = Arc::new(OnceLock::<String>::new());
        let known = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (target, mut cuts) = (Arc::clone(&known), cuts.clone());
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    let address = target.get().expect("the server is known");
                    let Ok(mut server) = TcpStream::connect(address).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        CuttingProxy { url, cut, target }
    }

    pub(crate) fn forward_to(&self, server: &TestServer) {
        self.target.set(server.url.strip_prefix("http://").unwrap().to_owned()).unwrap();
    }

    /// Closes all connections, in the middle of whatever they carry.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|count| *count += 1);
    }
}

/// Serves a router of the test's own.
pub(crate) async fn serve_router(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Answers every connection with these bytes and closes it. Counts the connections.
pub(crate) async fn serve_bytes(bytes: impl Into<Vec<u8>>) -> (String, watch::Receiver<u32>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let bytes = bytes.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.send_modify(|count| *count += 1);
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
        }
    });
    (url, counted)
}

/// A 1.0 card with one JSON-RPC interface there.
pub(crate) fn card_for(url: &str) -> String {
    format!(
        r#"{{"name":"scripted","description":"","version":"1","capabilities":{{"streaming":true}},
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[],
        "supportedInterfaces":[{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
    )
}

/// A client for a scripted JSON-RPC server.
pub(crate) fn scripted_client(builder: baton_client::Builder, url: &str) -> Client {
    builder.with_card(Discovered::from_json(card_for(url)).unwrap()).unwrap()
}
