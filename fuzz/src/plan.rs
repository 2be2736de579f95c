//! Any text read as a plan file, in YAML and in JSON: no panic, no endless loop, every place within the text,
//! and plans without problems are written as YAML that reads back to the same.

use plimsoll_app::plan_parts;
use plimsoll_core::Redaction;
use plimsoll_document::{Document, Problems, Source};

fn read(name: &str, text: String) -> (Option<Document>, Problems) {
    let mut problems = Problems::default();
    let source = Source { name: name.to_owned(), text };
    plimsoll_app::install(plimsoll::EXTENSIONS);
    let document = Document::read(&source, plan_parts().document(), &mut problems);
    for place in problems.iter().filter_map(|problem| problem.place) {
        assert!(source.text.get(place.start as usize..(place.end as usize).min(source.text.len())).is_some());
    }
    for place in source.secrets(&Redaction::default()) {
        assert!(source.text.get(place.start as usize..place.end as usize).is_some());
    }
    (document, problems)
}

/// Reads a text, writes it, and reads the result again. Returns `None` if there are problems.
fn round_trip(name: &str, text: &str) -> Option<String> {
    let (document, problems) = read(name, text.to_owned());
    assert!(document.is_some() || !problems.is_empty());
    let document = document?;
    document.check(&mut Problems::default());
    if !problems.is_empty() {
        return None;
    }
    let text = document.to_yaml();
    let (again, problems) = read("plan.yaml", text.clone());
    let again = again.unwrap_or_else(|| panic!("{problems} in:\n{text}"));
    assert_eq!(again.to_yaml(), text);
    Some(text)
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    round_trip("plan.yaml", text);
    if let Some(written) = round_trip("plan.json", text) {
        // The strict reader takes JSON only.
        assert!(serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')).is_ok());
        assert!(!written.is_empty());
    }
}
