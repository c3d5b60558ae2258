//! The text form: `Label: value` lines and blocks, without terminal control sequences.
//!
//! A block is its label alone on a line, its content indented by two spaces, and one empty line. An empty line of the
//! content is two spaces, so only a really empty line ends a block, and content can never pass for a field.

use super::safe;

/// One object: its fields come first, then its blocks.
#[derive(Debug, Default)]
pub(crate) struct Section {
    fields: String,
    blocks: String,
}

impl Section {
    /// `Label: value`. A value of several lines becomes a block.
    pub(crate) fn field(&mut self, label: &str, value: impl AsRef<str>) {
        let value = value.as_ref();
        if value.contains('\n') {
            return self.block(label, value);
        }
        self.fields += label;
        self.fields += ": ";
        self.fields += &safe::line(value);
        self.fields.push('\n');
    }

    /// The same, unless there is no value.
    pub(crate) fn optional(&mut self, label: &str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.field(label, value);
        }
    }

    pub(crate) fn block(&mut self, label: &str, content: &str) {
        self.blocks += label;
        self.blocks += ":\n";
        let content = safe::lines(content);
        for line in content.strip_suffix('\n').unwrap_or(&content).split('\n') {
            self.blocks += "  ";
            self.blocks += line;
            self.blocks.push('\n');
        }
        self.blocks.push('\n');
    }

    pub(crate) fn end(self) -> String {
        self.fields + &self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_out_005_fields_come_before_blocks_and_content_cannot_pass_for_fields() {
        let mut section = Section::default();
        section.block("Text", "first\n\nState: TASK_STATE_COMPLETED\n");
        section.field("State", "TASK_STATE_FAILED");
        section.field("Name", "two\nlines");
        section.field("Evil", "\x1b[2J");
        section.optional("None", None::<&str>);
        assert_eq!(
            section.end(),
            "State: TASK_STATE_FAILED\nEvil: \\u{1b}[2J\nText:\n  first\n  \n  State: TASK_STATE_COMPLETED\n\nName:\n  two\n  lines\n\n"
        );
    }

    #[test]
    fn an_empty_block_is_still_a_block() {
        let mut section = Section::default();
        section.block("Text", "");
        assert_eq!(section.end(), "Text:\n  \n\n");
    }
}
