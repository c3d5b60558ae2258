//! Streams that are held open, and how each of them lives: opened, watched, cut and taken up again, closed at the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_client::RawStream;
use baton_protocol::operation::{Call, CancelTask};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use super::load::Shared;
use super::plan::Streams;
use super::storm::{self, Return, Storm};
use super::tally::{Errors, StreamTally};
use super::trouble::Trouble;
use super::watched::Watched;
use crate::client::error::CallError;

/// How long streams may take to end after their tasks were canceled.
const FAREWELL: Duration = Duration::from_secs(10);

/// The same, for all of it, if the user does not want to wait any more.
const STOPPING: Duration = Duration::from_secs(5);

/// What all streams are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instruction {
    Hold,
    /// Those of the storm lose their connection, and come back.
    Cut(Instant),
    /// It is over.
    End,
}

/// The open streams.
pub(super) struct Held {
    streams: Streams,
    instructions: watch::Sender<Instruction>,
    lives: JoinSet<Life>,
    /// How long it took to open them.
    opened_in: Duration,
}

/// What became of them.
#[derive(Debug, Default)]
pub(super) struct HeldReport {
    pub(super) wanted: usize,
    pub(super) opened: u64,
    pub(super) opened_in: Duration,
    /// Were still open when the time was over.
    pub(super) held: u64,
    /// Did not end in time after that, so that nothing else is known of them.
    pub(super) unfinished: usize,
    pub(super) tally: StreamTally,
    pub(super) errors: Errors,
    pub(super) storm: Option<Storm>,
}

/// One stream, when it is over.
pub(super) struct Life {
    /// Was it opened?
    watched: Option<Watched>,
    trouble: Option<Trouble>,
    was_held: bool,
    returned: Option<Return>,
}

impl Held {
    /// Opens the streams, as many at once as requests may be under way; returns when each has had its first event, or has
    /// failed. The first is opened alone: if it fails, so would the others.
    pub(super) async fn open(shared: &Arc<Shared>, streams: Streams) -> Result<Self, CallError> {
        let start = Instant::now();
        let (instructions, _) = watch::channel(Instruction::Hold);
        let (begun, mut begins) = mpsc::channel(streams.count);
        let mut held = Held { streams, instructions, lives: JoinSet::new(), opened_in: Duration::ZERO };
        for index in 0..streams.count {
            if shared.stop.is_cancelled() {
                break;
            }
            let keeper = Keeper {
                shared: Arc::clone(shared),
                is_cut: index < streams.storm,
                keeps_task: streams.keep_tasks,
                instructions: held.instructions.subscribe(),
            };
            held.lives.spawn(keeper.live(begun.clone()));
            if index == 0 {
                let first = tokio::select! {
                    first = begins.recv() => first,
                    () = shared.stop.cancelled() => break,
                };
                if first == Some(false)
                    && let Some(Ok(Life { trouble: Some(trouble), .. })) = held.lives.join_next().await
                {
                    return Err(trouble.failure(&shared.workload.client.card()));
                }
            }
        }
        drop(begun);
        let all_begun = async { while begins.recv().await.is_some() {} };
        tokio::select! {
            () = all_begun => {}
            () = shared.stop.cancelled() => {}
        }
        held.opened_in = start.elapsed();
        Ok(held)
    }

    /// Cuts the connections of the storm, all at the same moment.
    pub(super) fn cut(&self) {
        if self.streams.storm > 0 {
            self.instructions.send_replace(Instruction::Cut(Instant::now()));
        }
    }

    /// Waits until all streams have ended, or the time is over. Returns those that ended.
    pub(super) async fn wait(&mut self, shared: &Shared, until: Instant) -> Vec<Life> {
        let mut ended = Vec::new();
        while !self.lives.is_empty() {
            tokio::select! {
                life = self.lives.join_next() => ended.extend(life.into_iter().flatten()),
                () = sleep_until(until.into()) => break,
                () = shared.stop.cancelled() => break,
            }
        }
        ended
    }

    /// Ends the streams that are still open, and adds all of them up. Returns those that can be compared, too.
    pub(super) async fn end(mut self, shared: &Shared, ended: Vec<Life>) -> (HeldReport, Vec<Watched>) {
        self.instructions.send_replace(Instruction::End);
        let mut report = HeldReport {
            wanted: self.streams.count,
            opened_in: self.opened_in,
            storm: (self.streams.storm > 0).then(Storm::default),
            ..HeldReport::default()
        };
        let mut samples = Vec::new();
        let mut lives = ended;
        let farewell = match shared.stop.is_cancelled() {
            true => Instant::now() + STOPPING,
            false => shared.backstop(),
        };
        while let Ok(Some(life)) = timeout_at(farewell.into(), self.lives.join_next()).await {
            lives.extend(life);
        }
        report.unfinished = self.lives.len();
        for life in lives {
            report.add(&life);
            // A stream that broke by itself has missed something; one of the storm should not have.
            let is_whole = life.trouble.is_none() || life.returned.is_some();
            samples.extend(life.watched.filter(|watched| is_whole && watched.task().is_some()));
        }
        (report, samples)
    }
}

impl HeldReport {
    fn add(&mut self, life: &Life) {
        if let Some(trouble) = &life.trouble {
            self.errors.add(trouble);
        }
        if let Some(watched) = &life.watched {
            self.opened += 1;
            self.held += u64::from(life.was_held);
            self.tally.add(watched, life.trouble.as_ref());
        }
        if let (Some(storm), Some(returned)) = (&mut self.storm, &life.returned) {
            storm.add(returned);
        }
    }
}

/// Looks after one stream.
struct Keeper {
    shared: Arc<Shared>,
    is_cut: bool,
    keeps_task: bool,
    instructions: watch::Receiver<Instruction>,
}

impl Keeper {
    /// Says on `begun` whether the stream has begun.
    async fn live(mut self, begun: mpsc::Sender<bool>) -> Life {
        let mut life = Life { watched: None, trouble: None, was_held: false, returned: None };
        let opened = self.open().await;
        let _ = begun.send(opened.is_ok()).await;
        drop(begun);
        match opened {
            Err(trouble) => life.trouble = Some(trouble),
            Ok((stream, mut watched)) => {
                life.trouble = self.keep(stream, &mut watched, &mut life).await.err();
                life.watched = Some(watched);
            }
        }
        life
    }

    /// Sends the message and waits for the first event.
    async fn open(&self) -> Result<(RawStream, Watched), Trouble> {
        let _place = self.shared.places.acquire().await;
        let mut watched = Watched::new(Instant::now());
        let call = Call::SendStreamingMessage(self.shared.workload.fresh_message());
        let mut stream = self.shared.workload.client.stream_raw(call, None).await?;
        match timeout_at(self.shared.deadline().into(), stream.next()).await {
            Ok(Ok(Some(event))) => watched.take(event, Instant::now()),
            Ok(Ok(None)) => return Err(Trouble::ClosedEarly),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(Trouble::StreamTimeout),
        }
        Ok((stream, watched))
    }

    /// Reads until the stream ends, or it is over.
    async fn keep(
        &mut self,
        mut stream: RawStream,
        watched: &mut Watched,
        life: &mut Life,
    ) -> Result<(), Trouble> {
        loop {
            if watched.is_settled() {
                return watched.follow(&mut stream, self.shared.deadline()).await;
            }
            let instruction = tokio::select! {
                event = stream.next() => {
                    match event? {
                        Some(event) => watched.take(event, Instant::now()),
                        None => return Err(Trouble::ClosedEarly),
                    }
                    continue;
                }
                changed = self.instructions.changed() => match changed {
                    Ok(()) => *self.instructions.borrow_and_update(),
                    Err(_) => Instruction::End,
                },
            };
            match instruction {
                Instruction::Cut(at) if self.is_cut => {
                    drop(stream);
                    let back = storm::come_back(&self.shared, watched, at).await;
                    life.returned = Some(Return::of(at, &back));
                    stream = back.result?;
                }
                Instruction::Hold | Instruction::Cut(_) => {}
                Instruction::End => {
                    life.was_held = true;
                    return self.leave(stream, watched).await;
                }
            }
        }
    }

    /// Cancels the task, so that it does not go on working for nobody, and waits for the stream to say so: a stream that
    /// has died in silence is found here.
    async fn leave(&self, mut stream: RawStream, watched: &mut Watched) -> Result<(), Trouble> {
        let Some(id) = watched.task().map(|task| task.id.clone()).filter(|_| !self.keeps_task) else {
            return Ok(());
        };
        let deadline = Instant::now() + self.shared.workload.timeout.min(FAREWELL);
        let canceled = async {
            let _place = self.shared.places.acquire().await;
            self.shared.workload.client.call(Call::CancelTask(CancelTask { id, metadata: None })).await
        };
        match timeout_at(deadline.into(), canceled).await {
            Ok(Ok(_)) => watched.follow(&mut stream, deadline).await,
            // It may have ended by itself meanwhile; if not, there is nothing to wait for.
            Ok(Err(_)) | Err(_) => {
                let soon = Instant::now() + Duration::from_secs(1);
                match watched.follow(&mut stream, soon).await {
                    Err(Trouble::StreamTimeout) => Ok(()),
                    other => other,
                }
            }
        }
    }
}
