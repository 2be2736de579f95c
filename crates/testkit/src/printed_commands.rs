//! The commands that documents print, as a shell would read them.

use std::path::{Path, PathBuf};

/// A command in a document.
#[derive(Clone, Debug)]
pub struct PrintedCommand {
    /// The document, from the root of the repository.
    pub document: PathBuf,
    /// The command as it is printed.
    pub line: String,
    /// Words of the command behind `plimsoll`, without redirections.
    pub words: Vec<String>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every `plimsoll …` in the code of the README and of the documents, in their order.
pub fn all() -> Vec<PrintedCommand> {
    let root = root();
    let mut documents = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    for folder in ["docs", "docs/guides"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder of the documents");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let pages = names.filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "md"));
        documents.extend(pages.map(|name| Path::new(folder).join(name)));
    }
    documents.sort();
    let of = |document: &PathBuf| {
        let text = std::fs::read_to_string(root.join(document)).expect("a document that can be read");
        let found = blocks(&text).into_iter().flat_map(|block| commands(&block));
        let found = found.map(|(line, words)| PrintedCommand { document: document.clone(), line, words });
        found.collect::<Vec<_>>()
    };
    documents.iter().flat_map(of).collect()
}

/// The blocks of code of a document. Of YAML, each line is a command by itself as far as there is one in it.
fn blocks(text: &str) -> Vec<String> {
    let (mut found, mut block) = (Vec::new(), None::<String>);
    for line in text.lines() {
        let line = line.trim();
        match (line.strip_prefix("```"), &mut block) {
            (Some("sh" | "yaml" | ""), None) => block = Some(String::new()),
            // Another language.
            (Some(_), None) => block = Some("\0".to_owned()),
            (Some(_), Some(_)) => found.extend(block.take().filter(|block| !block.starts_with('\0'))),
            (None, Some(block)) => {
                let command =
                    line.strip_prefix("- run: ").or_else(|| line.strip_prefix("run: ")).unwrap_or(line);
                block.push_str(command);
                // The second line of a folded block of YAML.
                let goes_on = command.contains("plimsoll ") && command.contains("--out junit=load.xml");
                block.push(if goes_on { ' ' } else { '\n' });
            }
            (None, None) => {}
        }
    }
    found
}

/// The commands of a block that are `plimsoll`, each as it is printed and as words.
fn commands(block: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for line in block.replace("\\\n", " ").lines() {
        for words in split(line) {
            let is_name = |word: &String| word == "plimsoll";
            // `start_server; plimsoll run` and `alias plimsoll=…` are not commands of ours.
            if words.first().is_some_and(is_name) {
                found.push((line.trim().to_owned(), words[1..].to_vec()));
            }
        }
    }
    found
}

/// A line as commands of words: quotes, comments, `;`, `&`, `|`, `&&` and redirections.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut redirected = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(letters.by_ref().take_while(|next| *next != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                word.extend(letters.by_ref().take_while(|next| *next != '"'));
            }
            '#' if word.is_none() => break,
            ' ' | ';' | '&' | '|' | '>' => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut redirected)
                {
                    words.push(word);
                }
                match letter {
                    '>' => redirected = true,
                    ';' | '&' | '|' => all.push(std::mem::take(&mut words)),
                    _ => {}
                }
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.filter(|_| !redirected));
    all.push(words);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_by_a_shell() {
        let text = "a 'b c' --d=\"e f\" > g # h\n";
        assert_eq!(split(text.trim()), [vec!["a", "b c", "--d=e f"]]);
        assert_eq!(split("a; plimsoll b & c"), [vec!["a"], vec!["plimsoll", "b"], vec!["c"]]);
        let found = commands("start; plimsoll run x \\\n  -c 1; stop\nplimsoll-not\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, ["run", "x", "-c", "1"]);
        assert_eq!(blocks("x\n```sh\na\n```\n```sql\nb\n```\n```yaml\n- run: c\n```\n"), ["a\n", "c\n"]);
    }
}
