//! Rate limits: how many calls one caller may make in a second, by kind of operation.

use std::time::Instant;

use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind};

use crate::engine::caller::Caller;
use crate::engine::options::OwnerLimits;
use crate::token_buckets::{TokenBuckets, retry_after};

/// Kinds of operations that are limited apart from each other, since they cost a server different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    /// Starts or changes something.
    Send,
    Read,
    /// Opens a stream of a task that exists.
    Subscribe,
}

impl Class {
    fn of(operation: Operation) -> Self {
        match operation {
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::CancelTask
            | Operation::CreatePushConfig
            | Operation::DeletePushConfig => Class::Send,
            Operation::GetTask
            | Operation::ListTasks
            | Operation::GetPushConfig
            | Operation::ListPushConfigs
            | Operation::GetExtendedCard => Class::Read,
            Operation::SubscribeToTask => Class::Subscribe,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Class::Send => "messages and changes",
            Class::Read => "reads",
            Class::Subscribe => "subscriptions",
        }
    }

    /// Calls per second; 0: no limit.
    fn per_second(self, limits: &OwnerLimits) -> u32 {
        match self {
            Class::Send => limits.rate_send,
            Class::Read => limits.rate_read,
            Class::Subscribe => limits.rate_subscribe,
        }
    }
}

/// Counts the calls of each caller.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    buckets: TokenBuckets,
}

impl RateLimiter {
    /// `max_callers`: about how many callers are remembered.
    pub(crate) fn new(max_callers: usize) -> Self {
        RateLimiter { buckets: TokenBuckets::new(max_callers.saturating_mul(3)) }
    }

    /// Counts a call, or refuses it.
    pub(crate) fn admit(
        &self,
        limits: &OwnerLimits,
        caller: &Caller,
        operation: Operation,
    ) -> Result<(), Error> {
        let class = Class::of(operation);
        let Some(rate) = limits.rate(class.per_second(limits)).filter(|_| caller.is_limited()) else {
            return Ok(());
        };
        self.buckets.take(&(caller, class), rate, Instant::now()).map_err(|wait| {
            let (most, what) = (class.per_second(limits), class.name());
            let message = format!("This caller may make {most} calls per second ({what}); wait, then go on");
            Error::new(ErrorKind::QuotaExceeded, message).with_retry_after(retry_after(wait))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_caller_and_kind_has_its_own_rate() {
        let limiter = RateLimiter::new(100);
        let limits = OwnerLimits { rate_send: 1, rate_read: 0, rate_burst: 3, ..OwnerLimits::default() };
        let (one, other) = (Caller::Owner(Arc::from("one")), Caller::Owner(Arc::from("other")));
        let admit = |caller: &Caller, operation| limiter.admit(&limits, caller, operation);
        for _ in 0..3 {
            admit(&one, Operation::SendMessage).unwrap();
        }
        for operation in [Operation::SendStreamingMessage, Operation::CancelTask] {
            let refused = admit(&one, operation).unwrap_err();
            assert_eq!((refused.kind(), refused.retry_after_seconds()), (ErrorKind::QuotaExceeded, Some(1)));
        }
        admit(&other, Operation::SendMessage).unwrap();
        for _ in 0..100 {
            admit(&one, Operation::GetTask).unwrap();
            admit(&Caller::Unknown, Operation::SendMessage).unwrap();
        }
    }
}
