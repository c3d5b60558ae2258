//! Fuzz targets for the text of `baton.toml` and for the output of programs. See `fuzz/README.md`.

use baton_lab::wire::sse::Reader;
use baton_protocol::wire::sse::SseParser;

use crate::{agents, config};

type Check = fn(&[u8]);

/// In the order of `fuzz/targets.tsv`.
pub(crate) const TARGETS: &[(&str, Check)] = &[
    ("config_file", config::fuzz::file),
    ("exec_output", agents::exec::fuzz::output),
    ("sse_twice", sse_twice),
];

/// The event stream parsers of the client and of the lab share no code, and must agree.
fn sse_twice(bytes: &[u8]) {
    let mut ours = SseParser::new(1 << 20);
    ours.feed(bytes).expect("smaller than the bound");
    let (mut reader, mut theirs) = (Reader::default(), Vec::new());
    reader.feed(bytes, &mut theirs);
    for their in theirs {
        let Some(our) = ours.next_event() else { panic!("only the lab saw {their:?}") };
        assert_eq!(our.data, their.data);
        assert_eq!(our.event.unwrap_or_default(), their.name.unwrap_or_default());
        // The lab returns the event's own id, the client the last id so far.
        if let Some(id) = their.id {
            assert_eq!(our.id.unwrap_or_default(), id);
        }
    }
    assert_eq!(ours.next_event(), None, "the lab did not see it");
}

#[cfg(test)]
mod tests {
    /// Only `cargo xtask fuzz` compiles `libfuzzer.rs`, so a missing module would be noticed late.
    #[test]
    fn libfuzzer_has_the_modules_of_main() {
        let modules = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("mod ") && line.ends_with(';'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(modules(include_str!("libfuzzer.rs")), modules(include_str!("main.rs")));
    }

    baton_fuzz::tests!(super::TARGETS: config_file exec_output sse_twice);
}
