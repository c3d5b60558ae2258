//! `baton task download`: saves the artifacts of a task as files, all of them in one folder.

mod names;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use baton_protocol::operation::HistoryLength;

use self::names::Names;
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call, wait};
use crate::commands::send::media_type;
use crate::exit::Failure;
use crate::output;
use crate::output::task::{Shown, decode};
use crate::output::text::Section;
use crate::output::view::{Content, Task};

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct TaskDownload {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    id: String,

    /// The folder to save in; it is made if it does not exist.
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,

    /// Only the artifact with this id.
    #[arg(long, value_name = "ID")]
    artifact: Option<String>,

    /// Replace files that exist.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: TaskDownload) -> Result<(), Failure> {
    client::run(&args.options, async |call| download(call, &args).await).await
}

async fn download(call: &Call, args: &TaskDownload) -> Result<(), CallError> {
    let id = wait::task_id(&args.id)?;
    let agent = Agent::connect(call).await?;
    let read = agent.get(&id, HistoryLength::Last(0)).await?;
    let files = files(&read.task, args.artifact.as_deref())?;
    let saved = save(&files, &args.dir, args.force)?;
    call.output.result(&read.json, || {
        let shown = Shown { no_message: true, ..Shown::default() };
        let mut section = Section::default();
        for (file, path) in files.iter().zip(&saved) {
            let words = format!("{} {} {}", path.display(), file.media_type, file.bytes.len());
            section.field("Saved", words);
        }
        Ok(output::task::task(&read.task, shown, None) + &section.end())
    })
}

/// A file to save.
#[derive(Debug)]
struct Wanted {
    name: String,
    media_type: String,
    bytes: Vec<u8>,
}

/// Every part of the artifacts as a file. References are not fetched, only named.
fn files(task: &Task, only: Option<&str>) -> Result<Vec<Wanted>, CallError> {
    let mut names = Names::default();
    let mut files = Vec::new();
    let artifacts =
        task.artifacts.iter().filter(|artifact| only.is_none_or(|only| artifact.artifact_id == only));
    let mut found = false;
    for artifact in artifacts {
        found = true;
        for part in &artifact.parts {
            let (bytes, usual) = match &part.content {
                Content::Text(text) => (text.clone().into_bytes(), "text/plain"),
                Content::Data(json) => (json.clone().into_bytes(), "application/json"),
                Content::Raw(base64) => {
                    let bytes = decode(base64).ok_or_else(|| {
                        CallError::internal(format!(
                            "a file of artifact {} is not base64",
                            artifact.artifact_id
                        ))
                    })?;
                    (bytes, media_type::UNKNOWN)
                }
                Content::Url(url) => {
                    output::warn(&format!(
                        "artifact {} refers to {url}, which is not fetched",
                        artifact.artifact_id
                    ));
                    continue;
                }
            };
            let media_type = part.media_type.clone().unwrap_or_else(|| usual.to_owned());
            let given =
                part.filename.as_deref().or(artifact.name.as_deref()).unwrap_or(&artifact.artifact_id);
            let name = names.next(given, media_type::ending_of(&media_type));
            files.push(Wanted { name, media_type, bytes });
        }
    }
    match only {
        Some(only) if !found => {
            let known: Vec<&str> =
                task.artifacts.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
            Err(CallError::usage(format!("--artifact {only}: the task has {}", known.join(", "))))
        }
        _ => Ok(files),
    }
}

/// Nothing is written if a file exists that must not be replaced.
fn save(files: &[Wanted], folder: &Path, force: bool) -> Result<Vec<PathBuf>, CallError> {
    let wrong = |path: &Path, error: &io::Error| CallError::internal(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| wrong(folder, &error))?;
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.name)).collect();
    // A dangling link exists, too.
    let taken = paths.iter().find(|path| !force && fs::symlink_metadata(path).is_ok());
    if let Some(path) = taken {
        return Err(CallError::usage(format!("{} exists; --force replaces it", path.display())));
    }
    for (file, path) in files.iter().zip(&paths) {
        write(file, path, force).map_err(|error| wrong(path, &error))?;
    }
    Ok(paths)
}

/// Never through a link: a new file is made, and with `force` it takes the place of whatever has its name.
fn write(file: &Wanted, path: &Path, force: bool) -> io::Result<()> {
    let fresh =
        |path: &Path| -> io::Result<File> { OpenOptions::new().write(true).create_new(true).open(path) };
    if !force {
        return fresh(path)?.write_all(&file.bytes);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = fresh(&part)
        .and_then(|mut opened| opened.write_all(&file.bytes))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::view::read;

    fn wanted(json: &str) -> Vec<Wanted> {
        files(&read(json).unwrap(), None).unwrap()
    }

    #[test]
    fn cli_download_001_every_part_is_saved_in_the_folder_whatever_it_is_called() {
        let place = tempfile::tempdir().unwrap();
        let files = wanted(
            r#"{"artifacts":[{"artifactId":"a","name":"notes","parts":[{"text":"one"},{"data":{"n":1}}]},
                {"artifactId":"b","parts":[{"raw":"AAEC","filename":"../../etc/passwd","mediaType":"image/png"},
                                           {"raw":"AA==","filename":"/etc/passwd"},{"url":"https://x.example"}]}]}"#,
        );
        let saved = save(&files, &place.path().join("out"), false).unwrap();
        let names: Vec<_> = saved.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["notes.txt", "notes.json", "passwd.png", "passwd"]);
        assert!(saved.iter().all(|path| path.parent() == Some(&place.path().join("out"))));
        assert_eq!(fs::read(&saved[2]).unwrap(), [0, 1, 2]);
    }

    #[cfg(unix)]
    #[test]
    fn cli_download_001_links_are_replaced_and_never_followed() {
        let place = tempfile::tempdir().unwrap();
        let (out, victim) = (place.path().join("out"), place.path().join("victim"));
        fs::create_dir(&out).unwrap();
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, out.join("f.txt")).unwrap();
        let files = wanted(r#"{"artifacts":[{"artifactId":"a","parts":[{"text":"x","filename":"f.txt"}]}]}"#);
        let error = save(&files, &out, false).unwrap_err();
        assert!(error.message.contains("--force"), "{}", error.message);
        save(&files, &out, true).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(fs::read_to_string(out.join("f.txt")).unwrap(), "x");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing is left behind");
    }
}
