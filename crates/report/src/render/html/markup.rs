//! HTML that is being written: elements, escaping, and the parts of a document.

use plimsoll_core::{characters::is_hidden, escape};

use crate::render::document::{Count, Fact, Line, Section, Span, Table, Target, Value};
use crate::render::layout::Emphasis;

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
            self.out.push_str(&format!(" {name}=\"{}\"", escape::html(value)));
        }
        self.out.push('>');
    }

    pub(super) fn close(&mut self, tag: &str) {
        self.out.push_str(&format!("</{tag}>"));
    }

    /// Text, escaped.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&escape::html(text));
    }

    /// An element with nothing but text.
    pub(super) fn element(&mut self, tag: &str, class: &str, text: &str) {
        self.open(tag, &[("class", class)]);
        self.text(text);
        self.close(tag);
    }

    /// An element around the output of `inner`.
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

    /// A place for a chart that the script draws. Without the script nothing is visible.
    pub(super) fn chart(&mut self, kind: &str) {
        self.open("div", &[("class", "chart-place"), ("data-chart", kind)]);
        self.close("div");
        self.out.push('\n');
    }

    /// A drawing, which is markup already.
    pub(super) fn drawn(&mut self, drawing: &str) {
        self.out.push_str(drawing);
        self.out.push('\n');
    }

    /// A table of the document, with the remark below it; nothing without rows.
    pub(super) fn table(&mut self, table: &Table) {
        if !table.is_empty() {
            let rows = table.rows(Target::Page).map(|row| row.into_iter().cloned().collect());
            self.rows(&table.caption, &table.titles(Target::Page), &rows.collect::<Vec<_>>());
        }
        if !table.hint.is_empty() {
            self.element("p", "hint", &table.hint);
        }
    }

    /// A table; the first cell of each row is its heading. It scrolls within itself where the screen is too
    /// narrow, and can be reached by keyboard for that.
    pub(super) fn rows(&mut self, caption: &str, head: &[&str], rows: &[Vec<Line>]) {
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
            for (position, line) in row.iter().enumerate() {
                let (tag, scope) = if position == 0 { ("th", "row") } else { ("td", "") };
                let class = if line.quiet { "interval" } else { class(line.emphasis()) };
                self.open(tag, &[("scope", scope), ("class", class)]);
                self.line(line);
                self.close(tag);
            }
            self.close("tr");
            self.out.push('\n');
        }
        self.out.push_str("</tbody></table></div>\n");
    }

    /// Writes the heading of a column; without words it is an empty cell.
    pub(super) fn column(&mut self, title: &str) {
        if title.is_empty() {
            return self.element("td", "", "");
        }
        self.open("th", &[("scope", "col")]);
        self.text(title);
        self.close("th");
    }

    /// Facts: short ones beside each other as a list of topics, sentences and sums below each other.
    pub(super) fn facts<'a>(&mut self, facts: impl IntoIterator<Item = &'a Fact>) {
        let facts: Vec<&Fact> = facts.into_iter().filter(|fact| fact.shown.on(Target::Page)).collect();
        for group in facts.chunk_by(|one, next| is_short(one) && is_short(next)) {
            match group {
                [fact] if !is_short(fact) => self.sentence(fact),
                short => self.within("dl", "facts", |page| short.iter().for_each(|fact| page.topic(fact))),
            }
        }
    }

    fn topic(&mut self, fact: &Fact) {
        let line = fact.line();
        self.open("div", &[]);
        self.element("dt", "", fact.label);
        self.open("dd", &[("class", class(line.emphasis()))]);
        self.line(&line);
        self.close("dd");
        self.close("div");
        self.out.push('\n');
    }

    fn sentence(&mut self, fact: &Fact) {
        let class = match &fact.value {
            Value::Line(line) => class(line.emphasis()),
            Value::Identity(_) => "identity",
        };
        self.within("p", class, |page| {
            if !fact.label.is_empty() {
                page.element("strong", "", &format!("{}: ", fact.label));
            }
            match &fact.value {
                Value::Line(line) => page.line(line),
                Value::Identity(identity) => {
                    page.counted(&identity.whole);
                    for (position, part) in identity.parts.iter().enumerate() {
                        page.element("span", "sign", if position == 0 { "=" } else { "+" });
                        page.counted(part);
                    }
                }
            }
        });
    }

    /// A number with its name below it.
    fn counted(&mut self, count: &Count) {
        self.within("span", &format!("counted {}", class(count.figure.emphasis)), |page| {
            page.span(&count.figure);
            page.element("small", "", &count.name);
        });
    }

    /// A heading, a table and facts.
    pub(super) fn part(&mut self, section: &Section) {
        if !section.heading.is_empty() {
            self.element("h3", "", &section.heading);
        }
        self.facts(&section.facts);
        self.table(&section.table);
    }

    /// A list of sentences; nothing without any.
    pub(super) fn notes<'a>(&mut self, notes: impl IntoIterator<Item = &'a String>) {
        let mut notes = notes.into_iter().peekable();
        if notes.peek().is_some() {
            self.within("ul", "notes", |page| notes.for_each(|note| page.element("li", "", note)));
        }
    }

    /// A line with its remark.
    pub(super) fn line(&mut self, line: &Line) {
        line.spans.iter().for_each(|span| self.span(span));
        if !line.note.is_empty() {
            self.out.push(' ');
            self.element("small", "", &line.note);
        }
    }

    /// A piece of a line. A figure says where its value is.
    pub(super) fn span(&mut self, span: &Span) {
        if let Some(href) = &span.href {
            self.open("a", &[("href", href), ("rel", "noreferrer")]);
        }
        match &span.source {
            Some((pointer, unit)) => {
                self.open("span", &[("data-of", pointer), ("data-unit", unit.name())]);
                self.text(&span.text);
                self.close("span");
            }
            None => self.text(&span.text),
        }
        if span.href.is_some() {
            self.close("a");
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

/// Characters of a fact that has room beside others.
const SHORT: usize = 40;

/// Returns `true` if a fact has room beside others.
fn is_short(fact: &Fact) -> bool {
    let is_line = matches!(fact.value, Value::Line(_));
    is_line && !fact.label.is_empty() && fact.line().text().chars().count() <= SHORT
}

/// The class of the style sheet for an emphasis.
pub(super) const fn class(emphasis: Emphasis) -> &'static str {
    match emphasis {
        Emphasis::Good => "good",
        Emphasis::Bad => "bad",
        Emphasis::Doubtful => "doubtful",
        Emphasis::Heading => "done",
        Emphasis::Plain => "",
    }
}

/// JSON within a script element: nothing in it can end the element or begin a comment (HTML, "restrictions
/// for contents of script elements"). `<` occurs within strings of JSON only, where it may be written as an
/// escape.
pub(super) fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // Invisible characters are escaped, so that they can be seen in the source, too.
        match c == '<' || is_hidden(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::document::Unit;

    #[test]
    fn text_stays_text() {
        let mut page = Markup::default();
        page.open("a", &[("title", "\"><script>"), ("class", "")]);
        page.line(&Line::from(Span::figure("</td>", "/errors/a\"b", Unit::Count)).with_note("<i>"));
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
}
