//! Documents that cannot be run say so, with the line. Each file's first line says what must be in the message.

use baton_lab::suites;

use crate::bench::file;

#[test]
fn every_bad_file_is_refused_with_its_reason() {
    let mut count = 0;
    for entry in std::fs::read_dir(file("bad")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let wanted = text.lines().next().unwrap().strip_prefix("# says: ").unwrap();
        let said = suites::from_path(&path, true).unwrap_err().to_string();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(said.contains(&name), "{said}");
        for part in wanted.split(" | ") {
            assert!(said.contains(part), "{name}: wanted {part:?} in {said:?}");
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} files");
}

#[test]
fn a_folder_without_files_and_a_missing_file_are_said() {
    let said = suites::from_path(&file("none.acts.yaml"), true).unwrap_err().to_string();
    assert!(said.contains("none.acts.yaml"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let said = suites::from_path(folder.path(), true).unwrap_err().to_string();
    assert!(said.contains("no *.acts.yaml file"), "{said}");
}
