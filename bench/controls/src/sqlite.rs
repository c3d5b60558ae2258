//! The probe for durable sends: the axum control with one insert per request before the answer. A writer thread commits
//! all waiting inserts together (group commit), with WAL and `synchronous=FULL`: the most that SQLite can do.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use bench_host::{Heap, Host};
use rusqlite::Connection;
use tokio::sync::oneshot;

const QUEUE: usize = 4096;
const BATCH: usize = 512;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

struct Insert {
    bytes: Bytes,
    done: oneshot::Sender<()>,
}

struct Probe {
    body: Bytes,
    writer: SyncSender<Insert>,
}

async fn serve(host: Host) -> Result<(), String> {
    let (writer, inserts) = mpsc::sync_channel(QUEUE);
    let path = std::env::var("STORE").map_err(|_| "STORE is not set: the path of a new database")?;
    let connection = open(&path).map_err(|error| format!("{path}: {error}"))?;
    std::thread::spawn(move || write(connection, &inserts));
    let probe = Arc::new(Probe { body: crate::recorded("BODY")?.into(), writer });
    let router = Router::new().route("/", post(answer)).with_state(probe);
    let listener = tokio::net::TcpListener::bind(host.address()).await.map_err(|error| error.to_string())?;
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    let served = tokio::spawn(async move { axum::serve(listener, router).await }).await;
    served.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn open(path: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("CREATE TABLE requests (number INTEGER PRIMARY KEY, body BLOB NOT NULL)")?;
    Ok(connection)
}

/// Waiting requests are answered after the commit; what cannot be written is not acknowledged.
fn write(mut connection: Connection, inserts: &Receiver<Insert>) {
    while let Ok(first) = inserts.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = inserts.try_recv()
        {
            batch.push(next);
        }
        if commit(&mut connection, &batch).is_ok() {
            for insert in batch {
                let _ = insert.done.send(());
            }
        }
    }
}

fn commit(connection: &mut Connection, batch: &[Insert]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached("INSERT INTO requests (body) VALUES (?1)")?;
        for request in batch {
            insert.execute([&request.bytes[..]])?;
        }
    }
    transaction.commit()
}

async fn answer(State(probe): State<Arc<Probe>>, bytes: Bytes) -> Response {
    let (done, written) = oneshot::channel();
    // A full queue would block a worker; 4,096 is more than the bench has connections.
    if probe.writer.try_send(Insert { bytes, done }).is_err() || written.await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    ([(CONTENT_TYPE, "application/json")], probe.body.clone()).into_response()
}
