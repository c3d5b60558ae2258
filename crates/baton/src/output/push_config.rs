//! Webhooks of a task as text. Tokens and credentials are not shown.

use super::text::Section;
use super::view::{PushConfig, Task};

/// The task that webhooks belong to, and its state if that is known.
pub(crate) struct Of<'a> {
    pub(crate) task_id: &'a str,
    pub(crate) task: Option<Task>,
}

impl Of<'_> {
    fn section(&self) -> Section {
        let mut section = Section::default();
        section.field("Task", self.task_id);
        section.optional("Context", self.task.as_ref().map(|task| &task.context_id));
        section.optional("State", self.task.as_ref().map(|task| task.status.state.as_str()));
        section
    }
}

pub(crate) fn push_configs(of: &Of<'_>, configs: &[PushConfig]) -> String {
    let mut section = of.section();
    for config in configs {
        section.optional("Push config", config.id.as_deref());
        section.field("URL", &config.url);
    }
    section.end()
}

pub(crate) fn removed(of: &Of<'_>, id: &str) -> String {
    let mut section = of.section();
    section.field("Removed", id);
    section.end()
}
