//! Named points in the write path, where a fault test can kill the process.
//!
//! In a release build `reached` is empty and no hook can be set. In a dev build (`debug_assertions`) the binary can set a
//! hook, so that fault tests run the ordinary dev build and need no special one. The library itself does nothing at a
//! point and reads no environment variables.

#[cfg(debug_assertions)]
use std::sync::OnceLock;

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident $name:literal,)*) => {
        /// A point at which a crash must lose nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Point {
            $($(#[$doc])* $point,)*
        }

        impl Point {
            /// All points.
            pub const ALL: &[Point] = &[$(Point::$point,)*];

            /// The name that tests use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Point::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// The store's file is locked and has not been read.
    OpenLocked "open-locked",
    /// A migration has run and is not committed.
    MigrateWithin "migrate-within",
    /// All migrations are committed.
    MigrateAfter "migrate-after",
    /// At open: the write-ahead log of a killed process has been checkpointed.
    OpenCheckpointed "open-checkpointed",
    /// A batch is about to begin.
    WriteBegin "write-begin",
    /// The transaction is open and empty.
    WriteBegun "write-begun",
    /// One write of a batch is done; the others may not be.
    WriteBetween "write-between",
    /// All writes are done, nothing is committed.
    CommitBefore "commit-before",
    /// The batch is committed; no caller has been answered.
    CommitAfter "commit-after",
    /// Some callers of the batch have been answered, others not.
    AnswerBetween "answer-between",
    /// All callers of the batch have been answered.
    AnswerAfter "answer-after",
    /// The write-ahead log is about to be checkpointed.
    CheckpointBefore "checkpoint-before",
    /// The write-ahead log has been checkpointed.
    CheckpointAfter "checkpoint-after",
    /// Within an append: the head is written, its events are not.
    AppendHead "append-head",
    /// Within an append: one of several events is written.
    AppendEvent "append-event",
    /// Within an append: the snapshot is written.
    AppendSnapshot "append-snapshot",
    /// Within an append: the message record is written.
    AppendMessage "append-message",
    /// Within an append: a request (a stored message or cancel for a busy task) is marked as settled.
    AppendSettled "append-settled",
    /// Within a request: it is numbered and not yet inserted.
    RequestNumbered "request-numbered",
    /// Within a request: inserted, without its message record.
    RequestInserted "request-inserted",
    /// A secret is written and not committed.
    SecretMade "secret-made",
    /// Retention: a task's events are gone and it is not marked as folded.
    FoldEvents "fold-events",
    /// Retention: some of a task's rows are gone.
    PurgeRows "purge-rows",
    /// Retention: a message record is gone.
    PurgeRecord "purge-record",
    /// A new task or turn is stored; no reader has been woken, no run is started.
    SendStored "send-stored",
    /// The run of a new turn is started; the client has no answer.
    SendLaunched "send-launched",
    /// A message for a busy task is stored; its run has not been woken.
    FollowUpNoted "follow-up-noted",
    /// A cancel is stored; the run has not been woken.
    CancelNoted "cancel-noted",
    /// A turn's events are about to be appended.
    RunGathered "run-gathered",
    /// A turn's events are stored; no reader has been woken.
    RunStored "run-stored",
    /// Readers have been woken for a turn's events.
    RunRung "run-rung",
    /// A turn is over and its task is still registered.
    RunEnded "run-ended",
    /// A message skill's reply is stored; the client has no answer.
    ReplyKept "reply-kept",
    /// A frame is about to be given to a connection.
    FrameShown "frame-shown",
    /// A webhook is about to be called.
    PushCalling "push-calling",
    /// A webhook's receiver has answered, or the call has failed; nothing of it is stored.
    PushAnswered "push-answered",
    /// How far a webhook has got is stored; a further call may be under way.
    PushStored "push-stored",
    /// Recovery after a crash: the decision about a task is made and not stored.
    TendPlanned "tend-planned",
    /// Recovery after a crash: the decision is stored, the task's run is not started.
    TendStored "tend-stored",
    /// A sweep begins.
    SweepBegin "sweep-begin",
    /// A sweep has folded, and not yet purged.
    SweepFolded "sweep-folded",
    /// Shutdown: the turns have been told to stop.
    StopTold "stop-told",
    /// Shutdown: the turns have ended or the drain time is over; streams are still open.
    StopDrained "stop-drained",
}

#[cfg(debug_assertions)]
static HOOK: OnceLock<fn(Point)> = OnceLock::new();

/// Sets the function that is called at every point. Only the first call has an effect.
#[cfg(debug_assertions)]
pub fn hook(at: fn(Point)) {
    HOOK.get_or_init(|| at);
}

/// Called where the program reaches a point.
#[inline(always)]
pub(crate) fn reached(point: Point) {
    #[cfg(debug_assertions)]
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
    #[cfg(not(debug_assertions))]
    let _ = point;
}
