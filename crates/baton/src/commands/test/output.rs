//! Reports, to stdout and to files. If a report cannot be made, the raw results go to stdout, so that nothing is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use baton_lab::report::text::{Detail, Style};
use baton_lab::report::{Run, acts, badge, html, json, junit, markdown, reason, tap, text};
use serde_json::json;

use super::args::{Format, RunArgs};
use super::terminal;
use crate::exit::Failure;

/// A file to write, and its format.
pub(super) struct Wanted {
    path: PathBuf,
    format: Format,
}

/// Checks the file names before anything is run: an hour of tests must not end with "unknown format".
pub(super) fn wanted(paths: &[PathBuf]) -> Result<Vec<Wanted>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let format = match () {
            () if ends(&[".acts.json"]) => Format::Acts,
            () if ends(&[".json"]) => Format::Json,
            () if ends(&[".md", ".markdown"]) => Format::Markdown,
            () if ends(&[".xml"]) => Format::Junit,
            () if ends(&[".html", ".htm"]) => Format::Html,
            () if ends(&[".tap"]) => Format::Tap,
            () if ends(&[".svg"]) => Format::Badge,
            () if ends(&[".txt", ".log"]) => Format::Text,
            () => {
                return Err(Failure::usage(format!(
                    "--report {}: unknown format; use the extension .json, .md, .xml, .html, .tap, .svg, .txt or .acts.json",
                    path.display()
                )));
            }
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Failure::usage(format!(
                "--report {}: there is no folder {}",
                path.display(),
                folder.display()
            )));
        }
        all.push(Wanted { path: path.clone(), format });
    }
    Ok(all)
}

/// Prints and writes the reports; returns an error for each that could not be made.
pub(super) fn deliver(run: &Run, args: &RunArgs, files: &[Wanted]) -> Vec<String> {
    let mut troubles = Vec::new();
    match render(run, args.format, &screen(args)) {
        Ok(text) => terminal::print(&text),
        Err(error) => troubles.push(format!("the report on stdout: {error}")),
    }
    for file in files {
        if let Err(error) = write(run, file) {
            troubles.push(format!("{}: {error}", file.path.display()));
        }
    }
    if !troubles.is_empty() {
        terminal::print(&raw(run));
    }
    troubles
}

fn screen(args: &RunArgs) -> Style {
    let detail = match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    Style { colour: terminal::colours(args.color), width: terminal::width(), detail }
}

/// A panic while rendering is a bug of ours, and must not lose the results.
fn render(run: &Run, format: Format, style: &Style) -> Result<String, String> {
    let rendered = catch_unwind(AssertUnwindSafe(|| rendered(run, format, style)));
    rendered.unwrap_or_else(|_| Err("it could not be rendered".to_owned()))
}

fn rendered(run: &Run, format: Format, style: &Style) -> Result<String, String> {
    match format {
        Format::Text => Ok(text::render(run, style)),
        Format::Json => json::render(run).map_err(|error| error.to_string()),
        Format::Markdown => Ok(markdown::render(run)),
        Format::Junit => junit::render(run).map_err(|error| error.to_string()),
        Format::Acts => acts::render(run).map_err(|error| error.to_string()),
        Format::Html => Ok(html::render(run)),
        Format::Tap => Ok(tap::render(run)),
        Format::Badge => Ok(badge::render(run)),
    }
}

fn write(run: &Run, file: &Wanted) -> Result<(), String> {
    let plain = Style { colour: false, width: None, detail: Detail::Verbose };
    if file.format != Format::Acts {
        return put(&file.path, &render(run, file.format, &plain)?);
    }
    // One report per binding: several need several files.
    let reports = acts::of(run);
    let several = reports.len() > 1;
    for ((generation, binding), report) in reports {
        let path =
            if several { beside(&file.path, &format!("{generation}-{binding}")) } else { file.path.clone() };
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        put(&path, &(text + "\n"))?;
    }
    Ok(())
}

/// `a.acts.json` → `a-1.0-rest.acts.json`.
fn beside(path: &Path, which: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".acts.json").unwrap_or(&name);
    path.with_file_name(format!("{stem}-{which}.acts.json"))
}

/// Writes to a temporary file and renames it, so that nobody reads half a report.
fn put(path: &Path, text: &str) -> Result<(), String> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        // The temporary file may not exist.
        let _ = std::fs::remove_file(&partial);
        error.to_string()
    })
}

/// One JSON object per check and line.
fn raw(run: &Run) -> String {
    let line = |outcome: &baton_lab::case::Outcome| {
        let value = json!({
            "test": outcome.case.id(),
            "category": outcome.case.category.name(),
            "generation": outcome.case.generation.version(),
            "binding": outcome.binding.name(),
            "status": outcome.verdict.word(),
            "message": reason(&outcome.verdict),
            "duration_ms": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        });
        format!("{value}\n")
    };
    run.outcomes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_the_form() {
        let format = |name: &str| wanted(&[PathBuf::from(name)]).map(|all| all[0].format).ok();
        for (name, form) in [
            ("a.json", Some(Format::Json)),
            ("a.acts.json", Some(Format::Acts)),
            ("A.MD", Some(Format::Markdown)),
            ("a.xml", Some(Format::Junit)),
            ("a.svg", Some(Format::Badge)),
            ("a", None),
            ("a.pdf", None),
            ("no/such/folder/a.json", None),
        ] {
            assert_eq!(format(name), form, "{name}");
        }
        assert_eq!(beside(Path::new("x/a.acts.json"), "1.0-rest"), Path::new("x/a-1.0-rest.acts.json"));
    }
}
