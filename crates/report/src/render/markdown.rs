//! Markdown in the dialect of GitHub and GitLab: text that keeps its content, and tables.

pub(crate) mod comparison;
mod run;
mod searched;

use std::fmt::Write as _;

use plimsoll_core::escape;

pub(crate) use run::run;
pub(crate) use searched::page as searched;

/// Text in the type of code.
pub(crate) fn code(text: &str) -> String {
    format!("<code>{}</code>", escape::markdown(text))
}

/// A table: a head and rows.
#[derive(Debug)]
pub(crate) struct Table {
    out: String,
    columns: usize,
}

impl Table {
    /// A table with these heads, escaped by the caller as all cells are. All columns but the first one have
    /// figures and are set flush right.
    pub(crate) fn new(heads: &[&str]) -> Self {
        Self::aligned(heads, "--:")
    }

    /// Makes a table with these heads whose columns are sentences, flush left.
    pub(crate) fn of_text(heads: &[&str]) -> Self {
        Self::aligned(heads, ":--")
    }

    fn aligned(heads: &[&str], others: &str) -> Self {
        let mut table = Self { out: String::new(), columns: heads.len() };
        table.line(heads.iter().copied());
        table.line((0..heads.len()).map(|column| if column == 0 { ":--" } else { others }));
        table
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row<'a>(&mut self, cells: impl IntoIterator<Item = &'a str>) {
        let padded = cells.into_iter().chain(std::iter::repeat("")).take(self.columns);
        let cells: Vec<&str> = padded.collect();
        self.line(cells.into_iter());
    }

    fn line<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        for cell in cells {
            // Writing to a string cannot fail.
            let _ = write!(self.out, "| {cell} ");
        }
        self.out.push_str("|\n");
    }

    /// The table, with the empty lines that it needs around it.
    pub(crate) fn finish(self) -> String {
        format!("\n{}\n", self.out)
    }
}

/// Something that is shown when it is asked for; nothing if there is nothing in it.
pub(crate) fn details(out: &mut String, summary: &str, content: &str) {
    if !content.trim().is_empty() {
        let content = content.trim_end();
        // Writing to a string cannot fail.
        let _ = write!(out, "<details>\n<summary>{summary}</summary>\n{content}\n\n</details>\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            escape::markdown("a|b\n<b>`x`* @me #1 [x](y)"),
            "a\\|b &lt;b&gt;\\`x\\`\\* &#64;me \\#1 \\[x\\](y)"
        );
        assert_eq!(code("p99<10ms"), "<code>p99&lt;10ms</code>");
    }

    #[test]
    fn rows_have_as_many_cells_as_heads() {
        let mut table = Table::new(&["", "a"]);
        table.row(["x"]);
        table.row(["x", "y", "z"]);
        assert_eq!(table.finish(), "\n|  | a |\n| :-- | --: |\n| x |  |\n| x | y |\n\n");
    }
}
