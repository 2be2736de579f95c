//! Values that a request extracts from its exchange.

use plimsoll_document::{Field, Keyed, Place, Problem};
use plimsoll_scenario::{Conversion, EventPick, ExtractSpec, ReactionSpec, Source};

use super::known::Known;
use super::matching::{json_source, not_a_json_place};
use super::scenario::Part;
use super::{Compiler, is_on};

impl Compiler<'_, '_> {
    /// The values that a step takes.
    pub(super) fn extractions(
        &mut self,
        extract: &Keyed<Field<plimsoll_document::ExtractSpec>>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Vec<ExtractSpec>> {
        let mut all = Vec::new();
        for (name, place, field) in &extract.0 {
            let variable = self.variable(&name.0);
            let spec =
                field.get().and_then(|spec| self.extraction(variable?, spec, Some(*place), part, known));
            all.push(spec);
        }
        all.into_iter().collect()
    }

    pub(super) fn extraction(
        &mut self,
        variable: u16,
        spec: &plimsoll_document::ExtractSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<ExtractSpec> {
        let source = self.source(spec, place)?;
        let source = self.of_event(source, &spec.event)?;
        let default = match spec.default.is_absent() {
            true => None,
            false => {
                let text = self.text(&spec.default)?;
                self.template(&text, spec.default.place(), part, known)?;
                Some(text)
            }
        };
        let regex = match &spec.regex {
            Field::Absent => None,
            field => Some(field.get()?.0.clone()),
        };
        let form = match (is_on(&spec.as_path), is_on(&spec.as_url)) {
            (true, true) => {
                let problem = Problem::new("`as_path` and `as_url` exclude each other");
                let hint = "`as_path` asks the step's target, `as_url` the server of the reference";
                return self.form(place, problem.with_hint(hint));
            }
            (true, false) => Conversion::Path,
            (false, true) => Conversion::Url,
            (false, false) => Conversion::Value,
        };
        let extract = ExtractSpec { variable, source, regex, form, default };
        let mut attempt = |extract: &ExtractSpec, place| {
            let spec = ReactionSpec { extract: vec![extract.clone()], ..ReactionSpec::default() };
            self.try_handler(spec, place)
        };
        // Problems are shown at the expression itself.
        let sources = [&spec.json, &spec.request_json, &spec.xpath, &spec.header, &spec.cookie];
        let of_source = sources.into_iter().find_map(Field::place).or(place);
        attempt(&ExtractSpec { regex: None, ..extract.clone() }, of_source)?;
        attempt(&extract, spec.regex.place().or(place))?;
        Some(extract)
    }

    /// Returns the place in the data of an event, if the extraction names one.
    fn of_event(&mut self, source: Source, event: &Field<plimsoll_document::Text>) -> Option<Source> {
        let Some(pick) = self.read(event, str::parse::<EventPick>)? else { return Some(source) };
        if !matches!(source, Source::Body | Source::JsonPointer(_) | Source::JsonPath(_)) {
            let problem = Problem::new("this is not a place in an event");
            let hint = "take `json`, `regex` or `body: true` of an event";
            return self.form(event.place(), problem.with_hint(hint));
        }
        Some(Source::Event { pick, of: Box::new(source) })
    }

    /// Where the value is: exactly one place, or the body if there is but a regular expression.
    fn source(&mut self, spec: &plimsoll_document::ExtractSpec, place: Option<Place>) -> Option<Source> {
        let mut sources: Vec<Option<Source>> = Vec::new();
        type Make = fn(String) -> Option<Source>;
        let texts: [(&Field<plimsoll_document::Text>, Make); 6] = [
            (&spec.header, |name| Some(Source::Header(name.to_ascii_lowercase()))),
            (&spec.request_header, |name| Some(Source::RequestHeader(name.to_ascii_lowercase()))),
            (&spec.cookie, |name| Some(Source::Cookie(name))),
            (&spec.json, |path| json_source(&path)),
            (&spec.request_json, |path| json_source(&path).and_then(of_request)),
            (&spec.xpath, |path| Some(Source::XPath(path))),
        ];
        for (field, make) in texts {
            if field.is_absent() {
                continue;
            }
            let text = self.plain(field)?;
            let source = make(text);
            if source.is_none() {
                return self.fail(field.place(), not_a_json_place());
            }
            sources.push(source);
        }
        for (field, source) in [(&spec.status, Source::Status), (&spec.body, Source::Body)] {
            match field {
                Field::Absent => {}
                field if is_on(field) => sources.push(Some(source)),
                field => {
                    let problem = Problem::new("`false` is not a place");
                    return self.form(field.place(), problem.with_hint("write `true`, or leave it out"));
                }
            }
        }
        match (sources.as_slice(), spec.regex.is_absent()) {
            ([Some(only)], _) => Some(only.clone()),
            ([], false) => Some(Source::Body),
            ([], true) => {
                let problem = Problem::new("the place of the value is missing");
                self.form(
                    place,
                    problem
                        .with_hint("write one of `header`, `cookie`, `json`, `xpath`, `regex`, `body: true`"),
                )
            }
            _ => {
                let problem = Problem::new("a value is taken from exactly one place");
                self.form(place, problem.with_hint("take two values, with two names"))
            }
        }
    }
}

/// Returns the place of `source` in the body of the request; `None` unless it is a JSON Pointer, because no
/// others are understood there.
fn of_request(source: Source) -> Option<Source> {
    match source {
        Source::JsonPointer(pointer) => Some(Source::RequestJsonPointer(pointer)),
        _ => None,
    }
}
