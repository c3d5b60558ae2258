//! tonic as it generates a service: requests are decoded, answers are the messages of `BODY` and `EVENTS`, encoded for each
//! call. Both files have them as they are sent, each with its prefix.

use std::process::ExitCode;
use std::sync::Arc;

use bench_host::{Heap, Host};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use self::a2a::a2a_service_server::{A2aService, A2aServiceServer};
use self::a2a::send_message_response::Payload;
use self::a2a::{GetTaskRequest, SendMessageRequest, SendMessageResponse, StreamResponse, Task};

#[allow(clippy::all, reason = "generated")]
mod a2a {
    tonic::include_proto!("lf.a2a.v1");
}

/// Why a request is refused.
const NOTHING: &str = "no message, or no id";

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Control {
    reply: SendMessageResponse,
    task: Task,
    events: Arc<[StreamResponse]>,
}

async fn serve(host: Host) -> Result<(), String> {
    let control = Control::new(&recorded("BODY")?, &recorded("EVENTS")?)?;
    let listener = TcpListener::bind(host.address()).await.map_err(|error| error.to_string())?;
    let served = tokio::spawn(control.serve(listener)).await;
    served.map_err(|error| error.to_string())?
}

/// A file with Baton's answer.
fn recorded(variable: &str) -> Result<Vec<u8>, String> {
    let path =
        std::env::var(variable).map_err(|_| format!("{variable} is not set: a file with an answer"))?;
    std::fs::read(&path).map_err(|error| format!("{path}: {error}"))
}

impl Control {
    /// From an answer to SendMessage, and one to SendStreamingMessage.
    pub fn new(reply: &[u8], events: &[u8]) -> Result<Self, String> {
        let mut replies = decoded::<SendMessageResponse>(reply)?;
        let reply = replies.pop().filter(|_| replies.is_empty()).ok_or("not one reply")?;
        let Some(Payload::Task(task)) = &reply.payload else {
            return Err("a reply without a task".to_owned());
        };
        Ok(Control { task: task.clone(), reply, events: decoded(events)?.into() })
    }

    pub async fn serve(self, listener: TcpListener) -> Result<(), String> {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = tonic::transport::Server::builder().add_service(A2aServiceServer::new(self));
        server.serve_with_incoming(incoming).await.map_err(|error| error.to_string())
    }
}

#[tonic::async_trait]
impl A2aService for Control {
    async fn send_message(
        &self,
        request: Request<SendMessageRequest>,
    ) -> Result<Response<SendMessageResponse>, Status> {
        has_message(request.get_ref())?;
        Ok(Response::new(self.reply.clone()))
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> Result<Response<Task>, Status> {
        if request.get_ref().id.is_empty() {
            return Err(Status::invalid_argument(NOTHING));
        }
        Ok(Response::new(self.task.clone()))
    }

    /// A task of its own produces the events one by one, as a server's agent does.
    async fn send_streaming_message(
        &self,
        request: Request<SendMessageRequest>,
    ) -> Result<Response<BoxStream<StreamResponse>>, Status> {
        has_message(request.get_ref())?;
        let (sender, receiver) = mpsc::channel(64);
        let events = Arc::clone(&self.events);
        tokio::spawn(async move {
            for event in events.iter() {
                if sender.send(Ok(event.clone())).await.is_err() {
                    break;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

fn has_message(request: &SendMessageRequest) -> Result<(), Status> {
    match &request.message {
        Some(message) if !message.message_id.is_empty() => Ok(()),
        _ => Err(Status::invalid_argument(NOTHING)),
    }
}

/// The messages of a body, each after its prefix.
fn decoded<M: Message + Default>(mut body: &[u8]) -> Result<Vec<M>, String> {
    let mut all = Vec::new();
    while let Some(([_, length @ ..], rest)) = body.split_first_chunk::<5>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (message, rest) = rest.split_at_checked(length).ok_or("a message that is cut")?;
        all.push(M::decode(message).map_err(|error| error.to_string())?);
        body = rest;
    }
    Ok(all)
}
