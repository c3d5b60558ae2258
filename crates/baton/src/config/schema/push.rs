//! Webhooks. The defaults are the library's.

use std::time::Duration;

use baton_server::PushOptions;

use crate::config::setting::{Section, Setting, Visit};
use crate::config::value::AllowedHost;

#[derive(Debug, Clone)]
pub(crate) struct Push {
    /// `None`: if only authenticated callers or callers on this machine can reach the server.
    pub(crate) enabled: Setting<Option<bool>>,
    /// `None`: for the demo agent on this machine.
    pub(crate) development: Setting<Option<bool>>,
    pub(crate) allow: Setting<Vec<AllowedHost>>,
    pub(crate) jwt: Setting<bool>,
    pub(crate) jwt_key_age: Setting<Duration>,
    pub(crate) timeout: Setting<Duration>,
    pub(crate) at_once: Setting<usize>,
    pub(crate) per_host: Setting<usize>,
    pub(crate) max_per_task: Setting<u32>,
    pub(crate) max_per_owner: Setting<usize>,
    pub(crate) max_open: Setting<usize>,
    pub(crate) max_failed: Setting<u32>,
}

impl Default for Push {
    fn default() -> Self {
        let library = PushOptions::default();
        Push {
            enabled: Setting::default(),
            development: Setting::default(),
            allow: Setting::default(),
            jwt: Setting::new(library.jwt),
            jwt_key_age: Setting::new(library.jwt_key_age),
            timeout: Setting::new(library.timeout).at_least(Duration::from_secs(1)),
            at_once: Setting::new(library.at_once).at_least(1).at_most(10_000),
            per_host: Setting::new(library.per_host).at_least(1).at_most(1000),
            max_per_task: Setting::new(library.max_per_task).at_least(1).at_most(1000),
            max_per_owner: Setting::new(library.max_per_owner).at_least(1),
            max_open: Setting::new(library.max_open).at_least(1),
            max_failed: Setting::new(library.max_failed),
        }
    }
}

impl Push {
    /// For a server that takes webhooks.
    pub(crate) fn options(&self, development: bool) -> PushOptions {
        let mut options = PushOptions::default();
        options.development = development;
        options.allow = self.allow.iter().map(|allowed| allowed.as_str().to_owned()).collect();
        options.jwt = *self.jwt;
        options.jwt_key_age = *self.jwt_key_age;
        options.timeout = *self.timeout;
        options.at_once = *self.at_once;
        options.per_host = *self.per_host;
        options.max_per_task = *self.max_per_task;
        options.max_per_owner = *self.max_per_owner;
        options.max_open = *self.max_open;
        options.max_failed = *self.max_failed;
        options
    }
}

impl Section for Push {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("enabled", &mut self.enabled);
        visit.field("development", &mut self.development);
        visit.field("allow", &mut self.allow);
        visit.field("jwt", &mut self.jwt);
        visit.field("jwt_key_age", &mut self.jwt_key_age);
        visit.field("timeout", &mut self.timeout);
        visit.field("at_once", &mut self.at_once);
        visit.field("per_host", &mut self.per_host);
        visit.field("max_per_task", &mut self.max_per_task);
        visit.field("max_per_owner", &mut self.max_per_owner);
        visit.field("max_open", &mut self.max_open);
        visit.field("max_failed", &mut self.max_failed);
    }
}
