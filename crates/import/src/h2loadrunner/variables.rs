//! Names and the variables that replace them in the texts of a scenario.

use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::names::Names;

/// The variable that replaces a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// This variable, in every request.
    Same(String),
    /// A variable for each request, in order; further requests begin again with the first.
    PerRequest(Vec<String>),
    /// This variable, in requests behind the one of this position, which takes its value.
    PickedBy(usize, String),
}

impl Binding {
    /// The variable in the request at `position`, if there is one.
    pub(super) fn variable(&self, position: usize) -> Option<&str> {
        match self {
            Self::Same(name) => Some(name),
            Self::PerRequest(names) => names.get(position % names.len().max(1)).map(String::as_str),
            Self::PickedBy(by, name) => (*by < position).then_some(name),
        }
    }
}

/// The variables of one scenario.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// A text that is replaced wherever it occurs: the deprecated form.
    pub(super) literal: Option<(String, Binding)>,
    /// Bindings of the names in `${name}`.
    pub(super) named: BTreeMap<String, Binding>,
    /// All variables of the scenario, and those of all data sources.
    pub(super) names: Names,
    /// The variable that is a `$`: a template has no other way to write one in front of a variable.
    pub(super) dollar: Option<String>,
}

impl Variables {
    /// `text` of the request at `position` as a template.
    pub(super) fn template(
        &mut self,
        text: &str,
        position: usize,
        at: &str,
        findings: &mut Findings,
    ) -> String {
        let mut template = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some((length, variable)) = self.at_start(rest, position) {
                self.push(&mut template, &variable);
                rest = &rest[length..];
            } else if let Some(behind) = rest.strip_prefix("${") {
                template.push_str("$${");
                if let Some((name, _)) = behind.split_once('}') {
                    let becomes = if self.named.contains_key(name) {
                        "no request before this one gives it a value: it is sent as it is"
                    } else {
                        "no variable has this name: it is sent as it is"
                    };
                    findings.note(at, &format!("${{{name}}}"), becomes);
                }
                rest = behind;
            } else {
                template.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        template
    }

    /// Writes the value of a header of the request at `position` as a template: the text of the deprecated
    /// form is not a variable there.
    pub(super) fn header_template(
        &mut self,
        text: &str,
        position: usize,
        at: &str,
        findings: &mut Findings,
    ) -> String {
        let literal = self.literal.take();
        let template = self.template(text, position, at, findings);
        self.literal = literal;
        template
    }

    /// Returns `true` if [`template`](Self::template) changes `text`.
    pub(super) fn changes(&self, text: &str) -> bool {
        text.contains("${") || self.literal.as_ref().is_some_and(|(literal, _)| text.contains(literal))
    }

    /// The variable that `text` starts with, and how long its mention is.
    fn at_start(&self, text: &str, position: usize) -> Option<(usize, String)> {
        if let Some((literal, binding)) = &self.literal
            && text.starts_with(literal.as_str())
        {
            return Some((literal.len(), binding.variable(position)?.to_owned()));
        }
        let (name, _) = text.strip_prefix("${")?.split_once('}')?;
        let variable = self.named.get(name)?.variable(position)?;
        Some((name.len() + 3, variable.to_owned()))
    }

    fn push(&mut self, template: &mut String, variable: &str) {
        // A `$` in front of a slot would make it literal text.
        let kept = template.trim_end_matches('$').len();
        let dollars = template.len() - kept;
        if dollars > 0 {
            let names = &mut self.names;
            let dollar = self.dollar.get_or_insert_with(|| names.take("dollar"));
            template.truncate(kept);
            template.push_str(&format!("${{{dollar}}}").repeat(dollars));
        }
        template.push_str(&format!("${{{variable}}}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_document::Document;

    #[test]
    fn texts_become_templates() {
        let mut variables = Variables {
            literal: Some(("-ID".to_owned(), Binding::PerRequest(vec!["a".to_owned(), "b".to_owned()]))),
            ..Variables::default()
        };
        variables.named.insert("n".to_owned(), Binding::Same("n_2".to_owned()));
        variables.named.insert("late".to_owned(), Binding::PickedBy(0, "late".to_owned()));
        let mut findings = Findings::default();
        for (position, text, template) in [
            (0, "", ""),
            (0, "/x-ID/${n}", "/x${a}/${n_2}"),
            (1, "/x-ID/${late}", "/x${b}/${late}"),
            (2, "/x-ID", "/x${a}"),
            (3, "/x-ID", "/x${b}"),
            (0, "${late}", "$${late}"),
            (0, "${other}-${", "$${other}-$${"),
            (0, "5$, $${n}", "5$, ${dollar}${n_2}"),
            (0, "$$-ID", "${dollar}${dollar}${a}"),
        ] {
            let made = variables.template(text, position, "/p", &mut findings);
            assert_eq!(made, template, "{text}");
        }
        assert_eq!(variables.dollar.as_deref(), Some("dollar"));
        let notes: Vec<_> =
            findings.finish(Document::default()).unwrap().notes.into_iter().map(|n| n.said).collect();
        assert_eq!(notes, ["${late}", "${other}"]);
    }
}
