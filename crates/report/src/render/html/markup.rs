//! HTML that is being written: elements, escaping, tables and lists of facts.

/// The unit of a figure that stands on the page, by which a reader of the page's source can tell how its text
/// was made of the value in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Nanos,
    Seconds,
    /// A whole number.
    Count,
    /// A rate.
    PerSecond,
    /// A share of one.
    Share,
    Bytes,
    /// A text as it is.
    Text,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Seconds => "s",
            Self::Count => "count",
            Self::PerSecond => "per_s",
            Self::Share => "share",
            Self::Bytes => "bytes",
            Self::Text => "text",
        }
    }
}

/// Text for people, and where in the result its value is: a JSON pointer (RFC 6901), so that every figure on
/// the page can be held against the result.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    source: Option<(String, Unit)>,
    note: Option<String>,
    class: &'static str,
}

impl Cell {
    /// A text that is no single figure.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A figure, and the JSON pointer of its value.
    pub(super) fn figure(text: impl Into<String>, pointer: impl Into<String>, unit: Unit) -> Self {
        Self { text: text.into(), source: Some((pointer.into(), unit)), ..Self::default() }
    }

    /// The same with a remark behind it, in small print.
    pub(super) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// The same in a class of the style sheet.
    pub(super) fn with_class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

/// A pointer to a key of a result, with what RFC 6901 escapes.
pub(super) fn pointer(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

/// HTML that is being written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    out: String,
}

impl Markup {
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Opens an element. Values of attributes are escaped.
    pub(super) fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
            self.out.push_str(&format!(" {name}=\"{}\"", escaped(value)));
        }
        self.out.push('>');
    }

    pub(super) fn close(&mut self, tag: &str) {
        self.out.push_str(&format!("</{tag}>"));
    }

    /// Text, escaped.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&escaped(text));
    }

    /// An element with nothing but text.
    pub(super) fn element(&mut self, tag: &str, class: &str, text: &str) {
        self.open(tag, &[("class", class)]);
        self.text(text);
        self.close(tag);
    }

    /// An element around what `inner` writes.
    pub(super) fn within(&mut self, tag: &str, class: &str, inner: impl FnOnce(&mut Self)) {
        self.open(tag, &[("class", class)]);
        inner(self);
        self.close(tag);
        self.out.push('\n');
    }

    /// A part of the page with a heading that can be linked to.
    pub(super) fn section(&mut self, id: &str, title: &str, inner: impl FnOnce(&mut Self)) {
        let heading = format!("{id}-title");
        self.open("section", &[("id", id), ("aria-labelledby", &heading)]);
        self.open("h2", &[("id", &heading)]);
        self.text(title);
        self.close("h2");
        self.out.push('\n');
        inner(self);
        self.close("section");
        self.out.push('\n');
    }

    /// Where the script puts a chart. Without one, nothing is seen of it.
    pub(super) fn chart(&mut self, kind: &str) {
        self.open("div", &[("class", "chart-place"), ("data-chart", kind)]);
        self.close("div");
        self.out.push('\n');
    }

    /// A table; the first cell of each row is its heading. It scrolls within itself where the screen is too
    /// narrow, and can be reached by keyboard for that.
    pub(super) fn table(&mut self, caption: &str, head: &[&str], rows: &[Vec<Cell>]) {
        self.open(
            "div",
            &[("class", "table"), ("role", "group"), ("tabindex", "0"), ("aria-label", caption)],
        );
        self.open("table", &[]);
        self.element("caption", "", caption);
        self.out.push_str("<thead><tr>");
        head.iter().for_each(|title| self.column(title));
        self.out.push_str("</tr></thead>\n<tbody>");
        for row in rows {
            self.open("tr", &[]);
            for (position, cell) in row.iter().enumerate() {
                let (tag, scope) = if position == 0 { ("th", "row") } else { ("td", "") };
                self.open(tag, &[("scope", scope), ("class", cell.class)]);
                self.cell(cell);
                self.close(tag);
            }
            self.close("tr");
            self.out.push('\n');
        }
        self.out.push_str("</tbody></table></div>\n");
    }

    /// The heading of a column; one without words is none.
    pub(super) fn column(&mut self, title: &str) {
        if title.is_empty() {
            return self.element("td", "", "");
        }
        self.open("th", &[("scope", "col")]);
        self.text(title);
        self.close("th");
    }

    /// A list of names and what is to be said of them.
    pub(super) fn facts(&mut self, facts: &[(&str, Cell)]) {
        self.within("dl", "facts", |page| {
            for (name, value) in facts {
                page.open("div", &[]);
                page.element("dt", "", name);
                page.open("dd", &[("class", value.class)]);
                page.cell(value);
                page.close("dd");
                page.close("div");
                page.out.push('\n');
            }
        });
    }

    /// The content of a cell.
    pub(super) fn cell(&mut self, cell: &Cell) {
        match &cell.source {
            Some((pointer, unit)) => {
                self.open("span", &[("data-of", pointer), ("data-unit", unit.name())]);
                self.text(&cell.text);
                self.close("span");
            }
            None => self.text(&cell.text),
        }
        if let Some(note) = &cell.note {
            self.out.push(' ');
            self.element("small", "", note);
        }
    }

    /// A bar whose length is that share of the room for it: a drawing that needs no script.
    pub(super) fn bar(&mut self, share: f64) {
        let width = format!("{:.1}%", share * 100.0);
        self.open("svg", &[("class", "bar"), ("aria-hidden", "true"), ("focusable", "false")]);
        self.open("rect", &[("width", &width), ("height", "100%"), ("rx", "2")]);
        self.close("rect");
        self.close("svg");
    }
}

/// Text within an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text in which control characters, which a server may have smuggled in, are visible signs; line ends and
/// tabs stay.
pub(super) fn visible(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns `true` if a character is invisible or acts on others.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_direction(c)
}

/// Returns `true` if a character changes the direction of the text that follows, so that it would not look as
/// it is (UTS 55).
const fn is_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON within a script element: nothing in it can end the element or begin a comment (HTML, "restrictions
/// for contents of script elements"). `<` occurs within strings of JSON only, where it may be written as an
/// escape.
pub(super) fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // What is hidden is so from who looks at the source, too.
        match matches!(c, '<' | '\u{2028}' | '\u{2029}') || is_hidden(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("<b a='1' b=\"2\">&amp;"), "&lt;b a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;amp;");
        assert_eq!(escaped("a\u{1b}[2Jb\r\n\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}\n\u{fffd}c");
        let mut page = Markup::default();
        page.open("a", &[("title", "\"><script>"), ("class", "")]);
        page.cell(&Cell::figure("</td>", "/errors/a\"b", Unit::Count).with_note("<i>"));
        assert_eq!(
            page.finish(),
            "<a title=\"&quot;&gt;&lt;script&gt;\"><span data-of=\"/errors/a&quot;b\" data-unit=\"count\">\
             &lt;/td&gt;</span> <small>&lt;i&gt;</small>"
        );
    }

    #[test]
    fn json_does_not_end_its_script() {
        let value = serde_json::json!({ "</script>": "<!-- <script> \u{2028}" });
        let text = json_in_script(&value.to_string());
        assert!(!text.contains('<') && !text.contains('\u{2028}'), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(pointer(&["protocols", "http/1.1", "~"]), "/protocols/http~11.1/~0");
        assert_eq!(pointer(&["response_time", "p", "99.9"]), "/response_time/p/99.9");
    }
}
