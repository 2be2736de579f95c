//! Protocols are rows of tables: few files mention one of them beside its own.

use crate::sources::Source;

/// Files outside of the modules of a protocol that may mention it: the tables that it is a row of.
const FILES_MAX: usize = 8;

/// A protocol, and the patterns for its files and mentions.
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    /// Beginnings of the names of its own files and folders.
    modules: &'static [&'static str],
    /// Crates that have nothing else.
    crates: &'static [&'static str],
    /// Texts that mention it, in small letters.
    words: &'static [&'static str],
}

/// The protocols beside HTTP that have no crate of their own.
pub(crate) const PROTOCOLS: [Protocol; 1] =
    [Protocol { name: "canister", modules: &["canister"], crates: &["crates/ic/"], words: &["canister"] }];

impl Protocol {
    /// Returns `true` if a file is one of the protocol's own, or a test.
    fn owns(&self, path: &str) -> bool {
        let named = |part: &str| self.modules.iter().any(|module| part.starts_with(module));
        let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
        self.crates.iter().any(|folder| path.starts_with(folder))
            || named(file)
            || folders.split('/').any(|folder| self.modules.contains(&folder) || folder == "tests")
            || file == "tests.rs"
    }

    fn is_mentioned_in(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.words.iter().any(|word| text.contains(word))
    }
}

/// Returns the files outside of the modules of a protocol that mention it.
pub(crate) fn mentions<'s>(protocol: &Protocol, sources: &'s [Source]) -> Vec<&'s str> {
    let foreign =
        sources.iter().filter(|source| source.path.ends_with(".rs") && !protocol.owns(&source.path));
    foreign.filter(|source| protocol.is_mentioned_in(&source.text)).map(|source| &*source.path).collect()
}

/// Complains about a protocol that too many files mention.
pub(crate) fn complaints(protocol: &Protocol, sources: &[Source]) -> Option<String> {
    let files = mentions(protocol, sources);
    (files.len() > FILES_MAX).then(|| {
        let name = protocol.name;
        format!("{} files mention the protocol {name}, at most {FILES_MAX} may: {files:?}", files.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Source> {
        let source =
            |(path, text): &(&str, &str)| Source { path: (*path).to_owned(), text: (*text).to_owned() };
        files.iter().map(source).collect()
    }

    #[test]
    fn files_of_a_protocol_and_tests_may_mention_it() {
        let [canister] = &PROTOCOLS;
        let own = of(&[
            ("crates/ic/src/lib.rs", "canister"),
            ("crates/a/src/canister.rs", "canister"),
            ("crates/a/src/canister_charts.rs", "canister"),
            ("crates/a/src/canister/forms.rs", "Canister"),
            ("crates/a/tests/b.rs", "canister"),
            ("crates/a/src/b/tests.rs", "canister"),
        ]);
        assert_eq!(mentions(canister, &own), [""; 0]);
        let foreign = of(&[
            ("crates/a/src/b.rs", "fn f() { Canister::new() }"),
            ("crates/a/src/c.rs", "a cache of pages"),
        ]);
        assert_eq!(mentions(canister, &foreign), ["crates/a/src/b.rs"]);
    }

    #[test]
    fn too_many_files_are_complained_about() {
        let [canister] = &PROTOCOLS;
        let files: Vec<String> = (0..=FILES_MAX).map(|file| format!("crates/a/src/{file}.rs")).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "a canister")).collect();
        assert_eq!(complaints(canister, &of(&files[1..])), None);
        assert!(complaints(canister, &of(&files)).is_some_and(|said| said.contains("at most 8")));
    }
}
