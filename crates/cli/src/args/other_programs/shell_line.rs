//! Words of a command line as they are typed in a shell.

/// Joins words, with quotes around those that a shell would change.
pub(super) fn line(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
