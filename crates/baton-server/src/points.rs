//! Named points in the write path, where a fault test lets the process die.
//!
//! In a release build [`reached`] is empty and there is nothing to hook into. In a dev build (`debug_assertions`) the
//! binary may say what happens at a point, so that the tests kill the very program that everybody builds: there is
//! no second build for them. The library itself does nothing at a point, and reads no environment to find out.

#[cfg(debug_assertions)]
use std::sync::OnceLock;

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident $name:literal,)*) => {
        /// A moment at which a crash must lose nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Point {
            $($(#[$doc])* $point,)*
        }

        impl Point {
            /// All of them, in the order of a task's life.
            pub const ALL: &[Point] = &[$(Point::$point,)*];

            /// How a test names it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Point::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// The store's file is locked, and has not been looked into.
    OpenLocked "open-locked",
    /// A migration has run and is not committed.
    MigrateWithin "migrate-within",
    /// The tables are there.
    MigrateAfter "migrate-after",
    /// What a killed process left in its log is in the database.
    OpenFolded "open-folded",
    /// A batch is about to begin.
    WriteBegin "write-begin",
    /// The transaction is open and empty.
    WriteBegun "write-begun",
    /// One write of a batch is done, its neighbours may not be.
    WriteBetween "write-between",
    /// All writes are done, nothing is committed.
    CommitBefore "commit-before",
    /// Committed; nobody knows.
    CommitAfter "commit-after",
    /// Some of the batch have their answers, others not.
    AnswerBetween "answer-between",
    /// The whole batch is answered.
    AnswerAfter "answer-after",
    /// The log is about to be folded into the database.
    LogFoldBefore "log-fold-before",
    /// The log is folded.
    LogFoldAfter "log-fold-after",
    /// Within an append: the head is written, its events are not.
    AppendHead "append-head",
    /// Within an append: one event of several.
    AppendEvent "append-event",
    /// Within an append: the snapshot is written.
    AppendSnapshot "append-snapshot",
    /// Within an append: the message record is written.
    AppendMessage "append-message",
    /// Within an append: a request is settled.
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
    /// A new task or turn is stored; no stream knows, no run has it.
    SendStored "send-stored",
    /// The run of a new turn is started; the client has no answer.
    SendLaunched "send-launched",
    /// A message for a busy task is stored; its run has not been rung.
    FollowUpNoted "follow-up-noted",
    /// A cancel is stored; the run has not been rung.
    CancelNoted "cancel-noted",
    /// What a turn said is about to be appended.
    RunGathered "run-gathered",
    /// What a turn said is stored; no stream has heard of it.
    RunStored "run-stored",
    /// Streams were told of what a turn said.
    RunRung "run-rung",
    /// A turn is over and its task is still registered.
    RunEnded "run-ended",
    /// A message skill's answer is stored; nobody has it.
    ReplyKept "reply-kept",
    /// A frame is about to be given to a connection.
    FrameShown "frame-shown",
    /// After a crash: what becomes of a task is decided and not written.
    TendPlanned "tend-planned",
    /// After a crash: what becomes of a task is written, its run not started.
    TendStored "tend-stored",
    /// A sweep begins.
    SweepBegin "sweep-begin",
    /// A sweep has folded, and not yet purged.
    SweepFolded "sweep-folded",
    /// A stop was asked for and told to the turns.
    StopTold "stop-told",
    /// The turns have ended, or had their time; streams are still open.
    StopDrained "stop-drained",
}

#[cfg(debug_assertions)]
static HOOK: OnceLock<fn(Point)> = OnceLock::new();

/// From now on this is called at every point. The first hook stays.
#[cfg(debug_assertions)]
pub fn hook(at: fn(Point)) {
    HOOK.get_or_init(|| at);
}

/// The program has come to a point.
#[inline(always)]
pub(crate) fn reached(point: Point) {
    #[cfg(debug_assertions)]
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
    #[cfg(not(debug_assertions))]
    let _ = point;
}
