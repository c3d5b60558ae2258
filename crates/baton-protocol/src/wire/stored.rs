//! The form in which tasks, events and messages are stored. It is the JSON of 1.0: whoever speaks that is answered with
//! the stored bytes as they are.

use super::dialect::Dialect;

pub use super::v1::{
    PageWriter, around_stored_reply as around_reply, cut_history, read_message, read_stream_item, read_task,
    status_says_nothing, write_message, write_stream_artifact, write_stream_status, write_task,
};

impl Dialect {
    /// Is this the form in which things are stored?
    pub fn is_stored_form(self) -> bool {
        self == Self::V1
    }
}
