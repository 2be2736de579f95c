//! Files that have to be there.

use std::fs;
use std::path::{Path, PathBuf};

/// The patterns that no file below `folder` matches that has something in it.
pub(super) fn missing(folder: &Path, patterns: &[String]) -> Vec<String> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let mut files = Vec::new();
    gather(folder, Path::new(""), &mut files);
    let is_there = |pattern: &str| files.iter().any(|(path, size)| *size > 0 && matches(pattern, path));
    patterns.iter().filter(|pattern| !is_there(pattern)).cloned().collect()
}

/// All files in a folder, by their paths from there, with their sizes.
fn gather(root: &Path, below: &Path, files: &mut Vec<(String, u64)>) {
    for entry in fs::read_dir(root.join(below)).into_iter().flatten().flatten() {
        let path: PathBuf = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => gather(root, &path, files),
            Ok(kind) if kind.is_file() => {
                files.push((path.display().to_string(), entry.metadata().map_or(0, |found| found.len())));
            }
            _ => {}
        }
    }
}

/// Returns `true` if a path matches: `**` stands for any folders, `*` for anything without a slash.
fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    parts_match(&pattern, &path)
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], path) => (0..=path.len()).any(|skipped| parts_match(rest, &path[skipped..])),
        ([first, pattern @ ..], [name, path @ ..]) => part_matches(first, name) && parts_match(pattern, path),
        _ => false,
    }
}

fn part_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, rest)) => name.strip_prefix(before).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| part_matches(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths() {
        for (pattern, path, expected) in [
            ("a", "a", true),
            ("*.log", "x.log", true),
            ("*.log", "d/x.log", false),
            ("**/*.log", "d/e/x.log", true),
            ("**/*.log", "x.log", true),
            ("d/**/x*", "d/x.log", true),
            ("d/*", "d/e/f", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn empty_files_do_not_count() {
        let folder = std::env::temp_dir().join(format!("plimsoll-files-{}", std::process::id()));
        fs::create_dir_all(folder.join("d")).unwrap();
        fs::write(folder.join("d/empty.log"), "").unwrap();
        let patterns = ["**/*.log".to_owned(), "**/*.idx".to_owned()];
        assert_eq!(missing(&folder, &patterns), patterns);
        fs::write(folder.join("d/full.log"), "x").unwrap();
        assert_eq!(missing(&folder, &patterns), ["**/*.idx"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
