//! Fields as text. Values may contain what a client sent (a task's id, an error's text): they must not end the line,
//! move the cursor, colour the terminal or change the direction of text.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FormatFields, FormattedFields};

/// `name=value`, separated by spaces.
#[derive(Debug)]
pub(super) struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = Line { writer, begun: false, written: Ok(()) };
        fields.record(&mut line);
        line.written
    }

    fn add_fields(&self, current: &'writer mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let begun = !current.fields.is_empty();
        let mut line = Line { writer: current.as_writer(), begun, written: Ok(()) };
        fields.record(&mut line);
        line.written
    }
}

struct Line<'writer> {
    writer: Writer<'writer>,
    begun: bool,
    written: fmt::Result,
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Fields that are for traces only.
        if self.written.is_ok() && !field.name().starts_with("otel.") {
            self.written = self.write(field.name(), value);
        }
    }
}

impl Line<'_> {
    fn write(&mut self, name: &str, value: &dyn fmt::Debug) -> fmt::Result {
        if std::mem::replace(&mut self.begun, true) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            write!(self.writer, "{name}=")?;
        }
        write!(Escaping(&mut self.writer), "{value:?}")
    }
}

/// Escapes control characters.
struct Escaping<W>(W);

impl<W: fmt::Write> fmt::Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_harmful) {
            let harmful = rest[at..].chars().next().expect("it was found there");
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", harmful.escape_default())?;
            rest = &rest[at + harmful.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .without_time()
            .with_ansi(false)
            .with_target(false)
            .fmt_fields(Fields)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_value_ends_its_line_or_speaks_to_the_terminal() {
        let hostile = "a\nERROR forged\r\u{1b}[31mred\u{9b}2J\u{202e}\0\u{7f}";
        let text = logged(|| {
            let span = tracing::info_span!("request", task.id = %hostile, otel.kind = "server");
            let _entered = span.enter();
            tracing::info!(cause = hostile, shown = %hostile, "message {hostile}");
        });
        assert_eq!(text.lines().count(), 1, "{text:?}");
        assert!(!text.trim_end().chars().any(is_harmful), "{text:?}");
        assert!(text.contains("\\u{1b}[31mred"), "{text}");
        assert!(text.contains("request{task.id=a\\nERROR forged"), "{text}");
        assert!(!text.contains("otel"), "{text}");
    }

    #[test]
    fn harmless_text_is_left_alone() {
        let text = logged(|| tracing::info!(count = 3, name = %"grün — ok", "it works"));
        assert_eq!(text, " INFO it works count=3 name=grün — ok\n");
    }
}
