//! The media type of a file, guessed from its name.

/// If the name does not tell.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

const TABLE: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain"),
    ("m4a", "audio/mp4"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("py", "text/x-python"),
    ("rs", "text/rust"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("tsv", "text/tab-separated-values"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

pub(crate) fn of_name(name: &str) -> Option<&'static str> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    TABLE.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type)
}

/// How the name of a file of this type ends.
pub(crate) fn ending_of(media_type: &str) -> Option<&'static str> {
    let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match plain.as_str() {
        "text/plain" => Some("txt"),
        "image/jpeg" => Some("jpg"),
        "text/html" => Some("html"),
        "application/yaml" => Some("yaml"),
        plain => TABLE.iter().find(|(_, known)| *known == plain).map(|(ending, _)| *ending),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_types_and_types_tell_endings() {
        assert_eq!(
            (of_name("A.PNG"), of_name("a.tar.gz"), of_name("README"), of_name("x.unheard")),
            (Some("image/png"), Some("application/gzip"), None, None)
        );
        assert_eq!((ending_of("text/plain; charset=utf-8"), ending_of("a/b")), (Some("txt"), None));
        assert!(TABLE.is_sorted(), "keep the table in order");
    }
}
