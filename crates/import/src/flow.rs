//! The common ground of descriptions that have variables, steps within steps and several servers: Postman's,
//! Artillery's and JMeter's.

pub(crate) mod check;
mod complete;
mod data;
mod text;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_document::{
    BranchStep, Document, Field, FileKind, Files, FormPartSpec, PauseSpec, RepetitionStep, SetStep, Settings,
    StepKind, StepSpec,
};
use serde_json::Value;

use crate::amount::{self, Ratio, proportions};
use crate::draft::{self, Url, text};
use crate::findings::{Findings, quoted};
use crate::names::Names;

pub(crate) use complete::{each_request, settle};
pub(crate) use data::{Csv, Headed, first_rows};
pub(crate) use text::{Slot, Syntax, Writing};

/// Longest text that replacing variables by their values may make, in bytes: values name other variables, so
/// that a few lines could otherwise become gigabytes.
const LONGEST_EXPANDED: usize = 1 << 16;

/// Most times that variables are replaced within values of variables.
const DEEPEST_VALUE: usize = 16;

/// Steps that lists of one source may become by being written out, at most.
pub(crate) const MOST_WRITTEN_OUT: usize = 1_000;

/// Note for a path whose beginning is known only during the run.
pub(crate) const SLASH_BEFORE: &str = "a `/` is put in front of the value, which must have none of its own";

/// A JSON value as Postman and Artillery put it into texts.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Lets a plan follow redirects if a request of the source does, at most as many in a row as the source. A
/// plan follows those of all requests or of none: a note names each request that does not. `requests` has
/// the places of all, and `said` is the option as it stands there.
pub(crate) fn follow(
    requests: &[(String, bool)],
    (most, said): (&str, &str),
    settings: &mut Settings,
    findings: &mut Findings,
) {
    if !requests.iter().any(|(_, follows)| *follows) {
        return;
    }
    settings.follow_redirects = text(most);
    for (at, _) in requests.iter().filter(|(_, follows)| !follows) {
        let becomes = "redirects are followed by all requests of a plan, or by none: they are followed";
        findings.note(at.as_str(), said, becomes);
    }
}

/// Gives the scenarios weights in these proportions, or none if all are equal; `None` if no whole numbers
/// have them.
pub(crate) fn weigh(document: &mut Document, ratios: &[Ratio]) -> Option<()> {
    let whole = proportions(ratios)?;
    if whole.iter().all(|weight| *weight == 1) {
        return Some(());
    }
    for (scenario, weight) in document.scenarios.iter_mut().zip(whole) {
        if let Field::Given(scenario, _) = scenario {
            scenario.weight = text(weight.to_string());
        }
    }
    Some(())
}

/// A variable of a source.
#[derive(Clone, Debug)]
struct Variable {
    /// Name of the variable in the plan.
    name: String,
    /// First value of the variable as the source has it.
    value: Option<String>,
    /// The template of its first value, if the source did not write it.
    template: Option<String>,
    /// The place that the value is from.
    at: String,
}

/// Variables of a source, by the names that they have there.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    syntax: Syntax,
    names: Names,
    known: BTreeMap<String, Variable>,
    /// The variable whose value is `$`, if one is needed.
    dollar: Option<String>,
    /// Variables of the source whose values were written in the places of their names.
    written_out: RefCell<BTreeSet<String>>,
}

impl Variables {
    /// No variables, in texts of this syntax.
    pub(crate) fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            names: Names::default(),
            known: BTreeMap::new(),
            dollar: None,
            written_out: RefCell::default(),
        }
    }

    /// The variable's name in the plan; it is known from now on.
    pub(crate) fn name(&mut self, name: &str) -> String {
        if let Some(known) = self.known.get(name) {
            return known.name.clone();
        }
        let ours = self.names.take(name);
        let variable = Variable { name: ours.clone(), value: None, template: None, at: String::new() };
        self.known.insert(name.to_owned(), variable);
        ours
    }

    /// Reserves a name for something other than a variable of the source.
    pub(crate) fn take(&mut self, wish: &str) -> String {
        self.names.take(wish)
    }

    /// A new variable that is named like `wish`, with the template of its first value if it has one. No name
    /// of the source stands for it.
    pub(crate) fn fresh(&mut self, wish: &str, template: Option<String>) -> String {
        let name = self.names.take(wish);
        let variable = Variable { name: name.clone(), value: None, template, at: String::new() };
        self.known.insert(format!("${{{name}}}"), variable);
        name
    }

    /// Gives a variable its first value, which may name others. Returns `false` if it has one already.
    pub(crate) fn define(&mut self, name: &str, value: &str, at: &str) -> bool {
        self.name(name);
        match self.known.get_mut(name) {
            Some(variable) if variable.value.is_none() && variable.template.is_none() => {
                (variable.value, variable.at) = (Some(value.to_owned()), at.to_owned());
                true
            }
            _ => false,
        }
    }

    /// Gives a variable a template of plans as its first value.
    pub(crate) fn define_template(&mut self, name: &str, template: String, at: &str) {
        self.name(name);
        if let Some(variable) = self.known.get_mut(name) {
            (variable.template, variable.at) = (Some(template), at.to_owned());
        }
    }

    /// The value of a variable that the source gives, with the values of others in it. Slots that cannot be
    /// replaced stay as they are.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let value = self.known.get(name)?.value.clone()?;
        Some(self.expanded(&value))
    }

    /// `text` with the values of variables in the places of their names, as far as they are known.
    pub(crate) fn expanded(&self, text: &str) -> String {
        let mut expanded = text.to_owned();
        for _ in 0..DEEPEST_VALUE {
            let mut next = String::with_capacity(expanded.len());
            let mut changed = false;
            let mut rest = expanded.as_str();
            while let Some((before, inside, whole, behind)) = self.syntax.next_slot(rest) {
                next.push_str(before);
                match self.constant(inside) {
                    Some(value) => {
                        changed = true;
                        next.push_str(&value);
                    }
                    None => next.push_str(whole),
                }
                rest = behind;
                if next.len() > LONGEST_EXPANDED {
                    return text.to_owned();
                }
            }
            next.push_str(rest);
            expanded = next;
            if !changed {
                break;
            }
        }
        expanded
    }

    fn constant(&self, inside: &str) -> Option<String> {
        match (self.syntax.slot)(inside) {
            Slot::Variable(name) => {
                let value = self.known.get(&name)?.value.clone();
                if value.is_some() {
                    self.written_out.borrow_mut().insert(name);
                }
                value
            }
            Slot::Default(value, _) => Some(value),
            _ => None,
        }
    }

    /// `text` as a template of a plan.
    pub(crate) fn template(
        &mut self,
        text: &str,
        writing: Writing,
        at: &str,
        findings: &mut Findings,
    ) -> String {
        self.written(text, writing, true, at, findings)
    }

    /// Writes `text` as a template of a plan; values with parts of URLs are written out if `expands`.
    fn written(
        &mut self,
        text: &str,
        writing: Writing,
        expands: bool,
        at: &str,
        findings: &mut Findings,
    ) -> String {
        let mut template = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, inside, whole, behind)) = self.syntax.next_slot(rest) {
            template.push_str(&writing.literal(before));
            match (self.syntax.slot)(inside) {
                Slot::Variable(name)
                    if expands
                        && writing == Writing::Target
                        && template.len() < LONGEST_EXPANDED
                        && self.is_part_of_url(&name) =>
                {
                    // Only functions and variables without a value are left in it.
                    let value = self.expanded(whole);
                    let value = self.written(&value, writing, false, at, findings);
                    self.push(&mut template, &value);
                }
                Slot::Variable(name) => {
                    let name = self.name(&name);
                    self.push(&mut template, &writing.slot(&name, true));
                }
                Slot::Default(value, _) if expands && self.syntax.next_slot(&value).is_some() => {
                    findings.note(at, whole, "the default of the property is taken");
                    let value = self.written(&value, writing, false, at, findings);
                    self.push(&mut template, &value);
                }
                Slot::Template(inner) | Slot::Default(_, inner) => {
                    self.push(&mut template, &writing.slot(&inner, false));
                }
                Slot::Noted(inner, note) => {
                    findings.note(at, whole, note);
                    self.push(&mut template, &writing.slot(&inner, false));
                }
                Slot::Unknown(note) => {
                    findings.note(at, whole, note);
                    template.push_str(&writing.literal(whole));
                }
            }
            rest = behind;
        }
        template.push_str(&writing.literal(rest));
        template
    }

    /// Returns `true` if the value of a variable has more than one part of a URL in it: a plan encodes the
    /// values of slots.
    fn is_part_of_url(&self, name: &str) -> bool {
        let value = self.known.get(name).and_then(|known| known.value.as_deref());
        value.is_some_and(|value| value.contains(['/', '?', '&', '=', '%', '{', ':']))
    }

    /// `text` with the values of the variables with which it begins.
    pub(crate) fn begun(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..DEEPEST_VALUE {
            let Some(("", inside, _, behind)) = self.syntax.next_slot(&text) else { break };
            let Some(value) = self.constant(inside) else { break };
            text = format!("{}{behind}", value.trim());
            if text.len() > LONGEST_EXPANDED {
                break;
            }
        }
        text
    }

    /// Returns `true` if the text begins with a slot.
    pub(crate) fn begins_with_slot(&self, text: &str) -> bool {
        matches!(self.syntax.next_slot(text), Some(("", ..)))
    }

    /// Adds a slot; a `$` in front of one would make it literal text.
    fn push(&mut self, template: &mut String, slot: &str) {
        let kept = template.trim_end_matches('$').len();
        let dollars = template.len() - kept;
        if dollars > 0 && slot.starts_with("${") {
            let names = &mut self.names;
            let dollar = self.dollar.get_or_insert_with(|| names.take("dollar"));
            template.truncate(kept);
            template.push_str(&format!("${{{dollar}}}").repeat(dollars));
        }
        template.push_str(slot);
    }

    /// `text` as a template that is not a slot of a constant variable: those are replaced by their values.
    pub(crate) fn constant_template(&mut self, text: &str, at: &str, findings: &mut Findings) -> String {
        let expanded = self.expanded(text);
        self.template(&expanded, Writing::Plain, at, findings)
    }

    /// Origin and path of a URL. The origin has to be known before the run; `base` is the base of relative
    /// URLs. `None` if that cannot be, which is reported.
    pub(crate) fn address(
        &mut self,
        url: &str,
        base: Option<&str>,
        at: &str,
        hint: &str,
        findings: &mut Findings,
    ) -> Option<Address> {
        // A variable in front may hold the origin, or a part of it.
        let mut url = self.begun(url.trim());
        let scheme = url.find("://").filter(|end| url[..*end].bytes().all(|b| b.is_ascii_alphanumeric()));
        if let (None, Some(base)) = (scheme, base) {
            if self.begins_with_slot(&url) {
                // The server says what comes next: a path, or a whole URL.
                let path = self.template(&url, Writing::Target, at, findings);
                return Some(Address { origin: String::new(), user: None, path });
            }
            let between = if url.is_empty() || url.starts_with(['/', '?']) { "" } else { "/" };
            url = format!("{}{between}{url}", base.trim_end_matches('/'));
        } else if scheme.is_none() {
            if let Some(("", _, whole, _)) = self.syntax.next_slot(&url) {
                let message = format!("`{}`, with which the URL begins, has no value", quoted(whole));
                findings.hinted(at, message, hint);
                return None;
            }
            if url.starts_with('/') || url.is_empty() {
                findings.hinted(at, format!("`{}` names no server", quoted(&url)), hint);
                return None;
            }
            url.insert_str(0, "http://");
        }
        let authority_at = url.find("://").map_or(0, |end| end + 3);
        let end = self.syntax.authority_end(&url, authority_at);
        let origin = self.expanded(&url[..end]);
        if let Some((_, _, whole, _)) = self.syntax.next_slot(&origin) {
            let message = format!("`{}`, a part of the server's name, has no value", quoted(whole));
            findings.hinted(at, message, hint);
            return None;
        }
        let mut rest = url[end..].to_owned();
        if rest.is_empty() || !rest.starts_with(['/', '?']) {
            rest = self.expanded(&rest);
        }
        let parsed = match Url::parse(&origin) {
            Ok(parsed) => parsed,
            Err(wrong) => {
                findings.hinted(at, format!("`{}` is not a URL: {wrong}", quoted(&origin)), hint);
                return None;
            }
        };
        let rest = &rest[..self.syntax.end_before(&rest, 0, &['#'])];
        let mut path = self.template(rest, Writing::Target, at, findings);
        if !path.starts_with('/') {
            if path.starts_with("${") {
                findings.note(at, rest, SLASH_BEFORE);
            }
            path.insert(0, '/');
        }
        let path = match parsed.path.trim_end_matches('/') {
            "" => path,
            before => format!("{before}{path}"),
        };
        Some(Address { origin: parsed.origin, user: parsed.user, path })
    }
}

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// `http://host:port`; empty if the path is a slot that may hold all of a URL.
    pub(crate) origin: String,
    /// `user:password` of the URL.
    pub(crate) user: Option<String>,
    /// A template that begins with `/`, or such a slot.
    pub(crate) path: String,
}

impl Address {
    /// The step that sends `method` there, and which goes on after a failure if `continues`.
    pub(crate) fn request(&self, method: &str, continues: bool) -> StepSpec {
        let mut step = draft::request(method, format!("{}{}", self.origin, self.path));
        if continues {
            step.on_failure = text("continue");
        }
        step
    }
}

/// A header of a request: one of the same name is replaced, without regard to case.
pub(crate) fn put_header(step: &mut StepSpec, name: &str, value: &str, at: &str, findings: &mut Findings) {
    let headers = &mut step.request_mut().headers.0;
    headers.retain(|(known, ..)| !known.as_str().eq_ignore_ascii_case(name));
    draft::header(step, name, value, at, findings);
}

/// Returns `true` if the request has this header.
pub(crate) fn has_header(step: &StepSpec, name: &str) -> bool {
    step.request().is_some_and(|request| {
        request.headers.0.iter().any(|(known, ..)| known.as_str().eq_ignore_ascii_case(name))
    })
}

/// The value of the header of Basic authentication for two templates.
pub(crate) fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let pair = format!("{user}:{password}");
    if !pair.contains("${") {
        return format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    }
    let quote = if pair.contains('"') { '\'' } else { '"' };
    format!("Basic ${{base64({quote}{pair}{quote})}}")
}

/// The variable that has the challenge of Digest authentication.
const CHALLENGE: &str = "challenge";

/// The two steps of a request with Digest authentication (RFC 7616): the same without a body, which is
/// refused with a challenge, and the request with credentials that answer it. `pair` and `target`, the
/// path with its query, are templates; `pair` is `user:password`.
pub(crate) fn with_digest(mut step: StepSpec, pair: &str, method: &str, target: &str) -> [StepSpec; 2] {
    let text = format!("{pair}, {method} {target}");
    let quote = if text.contains('"') { '\'' } else { '"' };
    let value = format!("${{digest({CHALLENGE}, {quote}{text}{quote})}}");
    let mut refused = step.clone();
    refused.name = draft::text(format!("challenge of {method} {target}"));
    let asked = refused.request_mut();
    asked.body = Default::default();
    asked.headers.0.retain(|(name, ..)| !name.as_str().to_ascii_lowercase().starts_with("content-"));
    check::expectations(&mut refused).status = vec![draft::text("401")];
    let header = check::extract(&check::Place::Header("www-authenticate".to_owned()));
    refused.extract.push(CHALLENGE, Field::new(header));
    step.request_mut().headers.push("authorization", draft::text(value));
    [refused, step]
}

/// A part of a form whose name and value are templates.
pub(crate) fn value_part(name: impl Into<String>, value: impl Into<String>) -> FormPartSpec {
    let mut part = FormPartSpec::default();
    part.name = draft::text(name);
    part.value = draft::text(value);
    part
}

/// A part of a form with a file of `folder`. Its name is a template; the path is not. A file that is not
/// there becomes an empty one, with a note.
pub(crate) fn file_part(
    name: impl Into<String>,
    path: &str,
    (folder, files): (&Path, &dyn Files),
    at: &str,
    findings: &mut Findings,
) -> FormPartSpec {
    if path.is_empty() || !is_file(folder, path, files) {
        findings.note(at, path, "the file is not there: an empty one is sent; name yours as `file`");
        let filename = path.rsplit(['/', '\\']).next().unwrap_or_default();
        return empty_file_part(name, filename);
    }
    let mut part = FormPartSpec::default();
    part.name = draft::text(name);
    part.file = draft::literal(path);
    part
}

/// Returns `true` if there is a file of this name in `folder` that may be read.
pub(crate) fn is_file(folder: &Path, path: &str, files: &dyn Files) -> bool {
    files.kind(&folder.join(path)) == Some(FileKind::File)
}

/// A part of a form in the place of a file whose content is not known: an empty one of that name.
pub(crate) fn empty_file_part(name: impl Into<String>, filename: &str) -> FormPartSpec {
    let mut part = value_part(name, "");
    part.filename = draft::literal(filename);
    part
}

/// Puts a form of several parts into a step. The plan sends its own `content-type`: one that names no
/// boundary, by which parts are told apart, is left out.
pub(crate) fn put_form(step: &mut StepSpec, parts: Vec<FormPartSpec>) {
    let request = step.request_mut();
    request.headers.0.retain(|(name, _, value)| {
        let has_boundary = value.get().is_some_and(|value| value.as_str().contains("boundary="));
        has_boundary || !name.as_str().eq_ignore_ascii_case("content-type")
    });
    request.body.multipart = parts.into_iter().map(Field::new).collect();
}

/// Headers of connections, which are never sent as they are written.
pub(crate) fn is_own_header(name: &str) -> bool {
    ["content-length", "connection", "transfer-encoding", "keep-alive", "te", "upgrade", "expect"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
}

/// A step that sets variables.
pub(crate) fn set(pairs: impl IntoIterator<Item = (String, String)>) -> StepSpec {
    let mut step = SetStep::default();
    for (name, value) in pairs {
        step.set.push(name, text(value));
    }
    StepKind::Set(step).into()
}

/// Steps that are carried out if the condition holds.
pub(crate) fn branch(condition: String, steps: Vec<StepSpec>) -> StepSpec {
    let mut branch = BranchStep::default();
    branch.condition = text(condition);
    branch.then = fields(steps);
    StepKind::Branch(Box::new(branch)).into()
}

/// Steps that are repeated this many times; `times` is a template.
pub(crate) fn repeat(times: String, steps: Vec<StepSpec>) -> StepSpec {
    let mut repetition = RepetitionStep::default();
    repetition.repeat = text(times);
    repetition.steps = fields(steps);
    StepKind::Repetition(Box::new(repetition)).into()
}

/// A pause of its own.
pub(crate) fn pause(pause: PauseSpec) -> StepSpec {
    let mut step = StepSpec::from(StepKind::Pause);
    step.think = Field::new(pause);
    step
}

/// A pause between two times in nanoseconds.
pub(crate) fn uniform(shortest: u64, longest: u64) -> PauseSpec {
    let mut pause = PauseSpec::default();
    if shortest >= longest {
        pause.fixed = text(amount::time(shortest));
    } else {
        pause.uniform = vec![text(amount::time(shortest)), text(amount::time(longest))];
    }
    pause
}

/// A pause up to this many nanoseconds after the end of the one before, or after the iteration began.
pub(crate) fn pace(time: u64) -> PauseSpec {
    let mut pause = PauseSpec::default();
    pause.pace = text(amount::time(time));
    pause
}

/// Steps as a list of a plan.
pub(crate) fn fields(steps: Vec<StepSpec>) -> Vec<Field<StepSpec>> {
    steps.into_iter().map(Field::new).collect()
}

/// Returns `true` if there is a request among the steps, also within others.
pub(crate) fn has_request(steps: &[StepSpec]) -> bool {
    has_step(steps, &|step| step.request().is_some())
}

/// Returns `true` if one of the steps takes values from a response, also within others.
pub(crate) fn takes_values(steps: &[StepSpec]) -> bool {
    has_step(steps, &|step| !step.extract.is_empty())
}

/// Returns `true` if one of the steps is wanted, also within others.
pub(crate) fn has_step(steps: &[StepSpec], wanted: &dyn Fn(&StepSpec) -> bool) -> bool {
    let inner = |step: &StepSpec| {
        step.inner().any(|steps| {
            let own: Vec<StepSpec> = steps.iter().filter_map(Field::get).cloned().collect();
            has_step(&own, wanted)
        })
    };
    steps.iter().any(|step| wanted(step) || inner(step))
}

/// A text in quotes of conditions and functions; `None` if it has both kinds of them.
pub(crate) fn in_quotes(text: &str) -> Option<String> {
    match (text.contains('"'), text.contains('\'')) {
        (false, _) => Some(format!("\"{text}\"")),
        (true, false) => Some(format!("'{text}'")),
        (true, true) => None,
    }
}

/// Settings as a part of a plan, if there are any.
pub(crate) fn run(settings: Settings) -> Field<Settings> {
    if settings == Settings::default() { Field::Absent } else { Field::new(settings) }
}

/// A name of a scenario, a step or a phase as a plan writes it.
pub(crate) fn title(wish: &str, otherwise: &str) -> String {
    draft::escaped(if wish.trim().is_empty() { otherwise } else { wish.trim() })
}

#[cfg(test)]
mod tests;
