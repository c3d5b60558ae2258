//! Webhooks of a task as text. Tokens and credentials are not shown.

use super::text::Section;
use super::view::PushConfig;

pub(crate) fn push_configs(task_id: &str, configs: &[PushConfig]) -> String {
    let mut section = Section::default();
    section.field("Task", task_id);
    for config in configs {
        section.optional("Push config", config.id.as_deref());
        section.field("URL", &config.url);
    }
    section.end()
}

pub(crate) fn removed(task_id: &str, id: &str) -> String {
    let mut section = Section::default();
    section.field("Task", task_id);
    section.field("Removed", id);
    section.end()
}
