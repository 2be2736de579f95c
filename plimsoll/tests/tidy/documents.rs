//! The documents: their links lead somewhere, and the plans in them are plans.

use std::path::{Path, PathBuf};

/// A document of the repository.
pub(crate) struct Document {
    /// From the root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The documents at the root and in `docs`, in the order of their names.
pub(crate) fn read_all(root: &Path) -> Vec<Document> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder that can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.starts_with(root.join("docs")) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).expect("a document that can be read");
                found.push(Document { path: path.strip_prefix(root).expect("it is below").to_owned(), text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Relative links to files or headings that are not there.
pub(crate) fn broken_links(root: &Path, document: &Document) -> Vec<String> {
    let folder = root.join(document.path.parent().expect("a document is in a folder"));
    let leads_nowhere = |link: &&str| {
        let (file, heading) =
            link.split_once('#').map_or((*link, None), |(file, heading)| (file, Some(heading)));
        let path = if file.is_empty() { root.join(&document.path) } else { folder.join(file) };
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        match (std::fs::read_to_string(&path), heading) {
            (Ok(text), Some(heading)) if is_page => !anchors(&text).iter().any(|anchor| anchor == heading),
            _ => !path.exists(),
        }
    };
    links(&document.text)
        .into_iter()
        .filter(|link| !link.contains("://"))
        .filter(leads_nowhere)
        .map(|link| format!("{}: `{link}` leads nowhere", document.path.display()))
        .collect()
}

/// The anchors of a page: those that it sets, and those that GitHub makes of its headings (lower case, words
/// joined by hyphens, no punctuation).
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
    };
    let set = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    headings.map(anchor).chain(set.map(|(id, _)| id.to_owned())).collect()
}

/// Returns the targets of links: the texts in `](…)`, outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    lines
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| {
            rest.split_once(')').map(|(link, _)| link.split_whitespace().next().unwrap_or_default())
        })
        .collect()
}

/// The whole plans that a document shows: blocks of YAML that begin with their targets and have scenarios.
pub(crate) fn plans(document: &Document) -> Vec<&str> {
    let blocks = document.text.split("```yaml\n").skip(1);
    let bodies = blocks.filter_map(|block| block.split_once("```").map(|(body, _)| body));
    bodies.filter(|body| body.starts_with("targets:") && body.contains("scenarios:")).collect()
}

#[test]
fn links_and_plans_are_found() {
    let text = "# A `head`, twice\n[a](b.md#c) `[d](e)`\n```yaml\ntargets: {x: y}\nscenarios: []\n```\n\
                ```yaml\ntargets: {}\n```\n```yaml\njobs: {}\n```\n[f](https://g)\n";
    let document = Document { path: PathBuf::from("docs/x.md"), text: text.to_owned() };
    assert_eq!(links(text), ["b.md#c", "e", "https://g"]);
    assert_eq!(plans(&document), ["targets: {x: y}\nscenarios: []\n"]);
    let broken = broken_links(Path::new("/nowhere"), &document);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert_eq!(anchors(text), ["a-head-twice"]);
}
