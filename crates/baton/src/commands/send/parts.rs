//! The parts of a message, in the order in which they were typed: texts, files, data, and media types for them.

use std::io::Read as _;
use std::path::Path;

use baton_protocol::domain::{JsonText, Part, PartContent};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::media_type;
use crate::client::error::CallError;

/// The flags as typed, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    typed: Vec<Typed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Typed {
    /// A positional argument; `-` is the standard input.
    Word(String),
    Text(String),
    File(String),
    Data(String),
    MediaType(String),
}

type Make = fn(String) -> Typed;
const ARGS: [(&str, Make); 5] = [
    ("words", Typed::Word),
    ("text", Typed::Text),
    ("file", Typed::File),
    ("data", Typed::Data),
    ("media_type", Typed::MediaType),
];

const HEADING: &str = "Message";

impl clap::Args for Parts {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name(value)
                .action(ArgAction::Append)
                .help(help)
                .help_heading(HEADING)
        };
        command
            .arg(
                Arg::new("words")
                    .value_name("TEXT")
                    .action(ArgAction::Append)
                    .help("A text part; `-` reads it from the standard input"),
            )
            .arg(flag("text", "TEXT", "A text part. Repeatable, as all parts; they keep their order").allow_hyphen_values(true))
            .arg(flag(
                "file",
                "PATH|URL",
                "A file part: the content of a local file, or a reference if it is an address, which is not fetched",
            ))
            .arg(flag("data", "PATH", "A data part: a JSON file; `-` reads the standard input"))
            .arg(
                flag("media_type", "TYPE", "The media type of the part right before it [default: guessed from the file's name]")
                    .long("media-type"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Parts {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut parts = Parts::default();
        parts.update_from_arg_matches(matches)?;
        Ok(parts)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let mut typed = Vec::new();
        for (name, make) in ARGS {
            let indices = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            typed.extend(indices.zip(values).map(|(index, value)| (index, make(value.clone()))));
        }
        typed.sort_by_key(|(index, _)| *index);
        self.typed = typed.into_iter().map(|(_, typed)| typed).collect();
        Ok(())
    }
}

impl Parts {
    pub(crate) fn is_empty(&self) -> bool {
        self.typed.is_empty()
    }

    /// One text part.
    pub(crate) fn of_text(text: &str) -> Self {
        Parts { typed: vec![Typed::Text(text.to_owned())] }
    }

    /// One file part.
    pub(crate) fn of_file(file: &str) -> Self {
        Parts { typed: vec![Typed::File(file.to_owned())] }
    }

    /// Reads files and the standard input.
    pub(crate) fn read(self) -> Result<Vec<Part>, CallError> {
        let readers = self.typed.iter().filter(|typed| match typed {
            Typed::Word(source) | Typed::Data(source) => source == "-",
            Typed::Text(_) | Typed::File(_) | Typed::MediaType(_) => false,
        });
        if readers.count() > 1 {
            return Err(CallError::usage("the standard input can be read only once"));
        }
        let mut parts: Vec<Part> = Vec::new();
        let mut named = false;
        for typed in self.typed {
            let part = match typed {
                Typed::MediaType(media_type) => {
                    let Some(part) = parts.last_mut() else {
                        return Err(CallError::usage("--media-type has no part before it"));
                    };
                    if std::mem::replace(&mut named, true) {
                        return Err(CallError::usage("--media-type is given twice for one part"));
                    }
                    check_media_type(&media_type)?;
                    part.media_type = Some(media_type);
                    continue;
                }
                Typed::Word(word) if word == "-" => Part::text(stdin()?.trim_end_matches(['\r', '\n'])),
                Typed::Word(text) | Typed::Text(text) => Part::text(text),
                Typed::File(file) => file_part(&file)?,
                Typed::Data(source) => data_part(&source)?,
            };
            named = false;
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(CallError::usage("there is nothing to send: give a text, --file or --data"));
        }
        Ok(parts)
    }
}

fn check_media_type(text: &str) -> Result<(), CallError> {
    let fits = text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    match fits && text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        true => Ok(()),
        false => Err(CallError::usage(format!("--media-type {text}: write a type such as text/csv"))),
    }
}

fn stdin() -> Result<String, CallError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| CallError::usage(format!("the standard input: {error}")))?;
    Ok(text)
}

/// `file://` is a local file; any other scheme is a reference.
fn file_part(file: &str) -> Result<Part, CallError> {
    let local = match file.split_once("://") {
        Some(("file", path)) => local_path(path)?,
        Some((scheme, _)) if is_scheme(scheme) => return Ok(reference(file)),
        _ => file.to_owned(),
    };
    let path = Path::new(&local);
    let bytes = std::fs::read(path).map_err(|error| CallError::usage(format!("--file {file}: {error}")))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let guessed = name.as_deref().and_then(media_type::of_name).unwrap_or(media_type::UNKNOWN);
    Ok(Part {
        content: PartContent::Raw(bytes),
        filename: name,
        media_type: Some(guessed.to_owned()),
        metadata: None,
    })
}

fn is_scheme(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(fits)
}

/// The path of a `file://` address, whose escapes are undone.
fn local_path(rest: &str) -> Result<String, CallError> {
    let wrong = || CallError::usage(format!("--file file://{rest}: not the address of a local file"));
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(wrong());
    }
    let mut bytes = Vec::new();
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        let byte = match byte {
            b'%' => {
                let digits = [left.next().ok_or_else(wrong)?, left.next().ok_or_else(wrong)?];
                let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
                u8::from_str_radix(digits, 16).map_err(|_| wrong())?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn reference(url: &str) -> Part {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.rsplit_once('/').map(|(_, name)| name).filter(|name| !name.is_empty());
    Part {
        content: PartContent::Url(url.to_owned()),
        filename: name.map(str::to_owned),
        media_type: name.and_then(media_type::of_name).map(str::to_owned),
        metadata: None,
    }
}

fn data_part(source: &str) -> Result<Part, CallError> {
    let text = match source {
        "-" => stdin()?,
        path => std::fs::read_to_string(path)
            .map_err(|error| CallError::usage(format!("--data {path}: {error}")))?,
    };
    let data =
        JsonText::parse(&text).map_err(|error| CallError::usage(format!("--data {source}: {error}")))?;
    Ok(Part::data(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &[&str]) -> Parts {
        let command = <Parts as clap::Args>::augment_args(Command::new("send"));
        let matches = command.try_get_matches_from(std::iter::once(&"send").chain(line)).unwrap();
        <Parts as clap::FromArgMatches>::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn cli_send_006_parts_keep_their_order_across_flags() {
        let folder = tempfile::tempdir().unwrap();
        let (csv, json) = (folder.path().join("a b.csv"), folder.path().join("d.json"));
        std::fs::write(&csv, "a,b\n").unwrap();
        std::fs::write(&json, " {\"n\": 1.0} ").unwrap();
        let escaped = format!("file://{}", csv.to_str().unwrap().replace(' ', "%20"));
        let line = [
            "one",
            "--file",
            csv.to_str().unwrap(),
            "--text",
            "-2",
            "--data",
            json.to_str().unwrap(),
            "--file",
            "https://x.example/p/map.png?q=1",
            "three",
            "--file",
            &escaped,
        ];
        let parts = typed(&line).read().unwrap();
        let shown: Vec<String> = parts
            .iter()
            .map(|part| {
                let content = match &part.content {
                    PartContent::Text(text) => text.clone(),
                    PartContent::Raw(bytes) => format!("{} bytes", bytes.len()),
                    PartContent::Url(url) => url.clone(),
                    PartContent::Data(data) => data.as_str().to_owned(),
                };
                format!("{content} {:?} {:?}", part.filename.as_deref(), part.media_type.as_deref())
            })
            .collect();
        let expected = [
            "one None None",
            "4 bytes Some(\"a b.csv\") Some(\"text/csv\")",
            "-2 None None",
            "{\"n\":1.0} None None",
            "https://x.example/p/map.png?q=1 Some(\"map.png\") Some(\"image/png\")",
            "three None None",
            "4 bytes Some(\"a b.csv\") Some(\"text/csv\")",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn cli_send_005_a_media_type_belongs_to_the_part_right_before_it() {
        let media_types = |line: &[&str]| {
            let parts = typed(line).read().map_err(|error| error.message)?;
            Ok::<_, String>(parts.into_iter().map(|part| part.media_type).collect::<Vec<_>>())
        };
        let markdown = Some("text/markdown".to_owned());
        let line = ["--text", "a", "--media-type", "text/markdown", "b"];
        assert_eq!(media_types(&line), Ok(vec![markdown.clone(), None]));
        let line = ["--file", "https://x.example/a.csv", "--media-type", "text/markdown"];
        assert_eq!(media_types(&line), Ok(vec![markdown]), "it overrides what is guessed");
        for (line, words) in [
            (&["--media-type", "a/b", "--text", "x"][..], "no part before"),
            (&["x", "--media-type", "a/b", "--media-type", "c/d"], "twice"),
            (&["x", "--media-type", "csv"], "such as"),
            (&[], "nothing to send"),
            (&["--data", "-", "-"], "only once"),
            (&["--data", "/nowhere.json"], "/nowhere.json"),
            (&["--file", "file://host/x"], "local file"),
        ] {
            let error = media_types(line).unwrap_err();
            assert!(error.contains(words), "{line:?}: {error}");
        }
    }
}
