//! Any text read as a plan file: no panic, no endless loop, every place within the text, and what could be
//! read without problems is written as YAML that reads back to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_plan::document::{Document, Source};
use plimsoll_plan::Problems;

fn read(text: String) -> (Option<Document>, Problems) {
    let mut problems = Problems::default();
    let source = Source { name: "plan.yaml".to_owned(), text };
    let document = Document::read(&source, &mut problems);
    for place in problems.iter().filter_map(|problem| problem.place) {
        assert!(source.text.get(place.start as usize..(place.end as usize).min(source.text.len())).is_some());
    }
    let _ = source.secrets();
    (document, problems)
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (document, problems) = read(text.to_owned());
    assert!(document.is_some() || !problems.is_empty());
    let Some(document) = document else { return };
    document.check(&mut Problems::default());
    if problems.is_empty() {
        let text = document.to_yaml();
        let (again, problems) = read(text.clone());
        let again = again.unwrap_or_else(|| panic!("{problems} in:\n{text}"));
        assert_eq!(again.to_yaml(), text);
    }
});
