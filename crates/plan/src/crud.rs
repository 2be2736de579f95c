//! The scenario of h2loadrunner's command line: create a resource, change it, delete it.
//!
//! The create request goes to the URL. Where its response says that the resource is (a header, usually
//! Location), there the other two go.

use std::sync::Arc;

use plimsoll_document::{Problem, RawValue};
use plimsoll_scenario::{Body, Conversion, ExtractSpec, Source, Template, check_method, parse_header};

use crate::PlanPatch;
use crate::draft::Draft;
use crate::requests::from_template;
use crate::resolve::Resolver;
use crate::url::Url;

/// Name of the variable that passes the path of the resource from step to step.
pub(crate) const RESOURCE: &str = "resource";

/// The scenario, as the flags describe it.
pub(crate) struct Crud {
    create: Operation,
    update: Option<Operation>,
    delete: Option<Operation>,
    /// The header of the create response that names the resource, in lower case.
    header: String,
    variable: Option<Variable>,
}

struct Operation {
    method: String,
    body: Body,
}

/// A text that stands for a number that differs from iteration to iteration.
struct Variable {
    /// Text that is replaced.
    name: String,
    /// The template slot that replaces it.
    slot: String,
}

impl Resolver<'_> {
    /// Reads the flags of the scenario; `Some(None)` if there are none.
    pub(crate) fn crud(&mut self, patch: &PlanPatch) -> Option<Option<Crud>> {
        let Some(first) = patch.first_crud_flag() else {
            return self.refuse_crud_company(patch).map(|()| None);
        };
        let create = self.crud_method(patch.crud_create_method.as_ref());
        let update = self.crud_method(patch.crud_update_method.as_ref());
        let delete = self.crud_method(patch.crud_delete_method.as_ref());
        let header = self.read(patch.crud_resource_header.as_ref(), parse_resource_header);
        let variable = self.variable(patch);
        let create_data = self.data(patch.crud_create_data_file.as_ref());
        let update_data = self.data(patch.crud_update_data_file.as_ref());
        let mut fits = true;
        for (given, instead) in [
            (&patch.method, "the methods are --crud-create-method and the like"),
            (&patch.body, "the bodies are --crud-create-data-file and --crud-update-data-file"),
        ] {
            if let Some(given) = given {
                let message = format!("{} has no effect with {}", given.by, first.by);
                self.problems.push(Problem::new(message).with_hint(instead));
                fits = false;
            }
        }
        fits &= self.check_followers(patch).is_some();
        let variable = variable?;
        let create_body =
            self.crud_body(patch.crud_create_data_file.as_ref(), create_data?, variable.as_ref());
        let update_body =
            self.crud_body(patch.crud_update_data_file.as_ref(), update_data?, variable.as_ref());
        let (create_body, update_body) = (create_body?, update_body?);
        let crud = Crud {
            create: Operation { method: create?.unwrap_or_else(|| "POST".to_owned()), body: create_body },
            update: update?.map(|method| Operation { method, body: update_body }),
            delete: delete?.map(|method| Operation { method, body: Body::None }),
            header: header?.unwrap_or_else(|| "location".to_owned()),
            variable,
        };
        fits.then_some(Some(crud))
    }

    /// Refuses flags that have a meaning only beside those of the scenario.
    fn refuse_crud_company(&mut self, patch: &PlanPatch) -> Option<()> {
        let mut alone = true;
        // A plan's scenarios have requests to count, too.
        let scenarios = patch.document.as_ref().is_some_and(|loaded| !loaded.document.scenarios.is_empty());
        let total = total_rate(patch).map(|total| format!(": write `--rate {total}`")).unwrap_or_default();
        let limit = patch.stream_timeout_interval_ms.as_ref().map_or("2000", |given| given.text.trim());
        for (given, hint) in [
            (
                if scenarios { &None } else { &patch.rps },
                &*format!(
                    "it is per connection, and goes with --crud-create-method and the like; the total rate is --rate\
                     {total}"
                ),
            ),
            (
                &patch.stream_timeout_interval_ms,
                &format!("it goes with --crud-create-method and the like; write `--timeout {limit}ms`"),
            ),
        ] {
            if let Some(given) = given {
                let message = format!("{} has no effect without a --crud flag", given.by);
                self.problems.push(Problem::new(message).with_hint(hint));
                alone = false;
            }
        }
        alone.then_some(())
    }

    /// Refuses flags about steps that are left out.
    fn check_followers(&mut self, patch: &PlanPatch) -> Option<()> {
        if let (Some(data), None) = (&patch.crud_update_data_file, &patch.crud_update_method) {
            let problem = Problem::new(format!("{} has no effect without an update", data.by));
            return self.fail(problem.with_hint("add `--crud-update-method=PATCH`"));
        }
        if let (Some(header), None, None) =
            (&patch.crud_resource_header, &patch.crud_update_method, &patch.crud_delete_method)
        {
            let problem = Problem::new(format!("{} has no effect without an update or a delete", header.by));
            return self.fail(
                problem.with_hint("add `--crud-update-method=PATCH` or `--crud-delete-method=DELETE`"),
            );
        }
        Some(())
    }

    fn crud_method(&mut self, given: Option<&RawValue>) -> Option<Option<String>> {
        let Some(given) = given else { return Some(None) };
        match check_method(&given.text) {
            Ok(()) => Some(Some(given.text.clone())),
            Err(error) => self.fail(from_template(&error.at(&given.by))),
        }
    }

    fn variable(&mut self, patch: &PlanPatch) -> Option<Option<Variable>> {
        let start = self.read_number(patch.crud_request_variable_value_start.as_ref(), 0..=u64::MAX);
        let end = self.read_number(patch.crud_request_variable_value_end.as_ref(), 1..=u64::MAX);
        let Some(name) = &patch.crud_request_variable_name else {
            return match patch
                .crud_request_variable_value_start
                .as_ref()
                .or(patch.crud_request_variable_value_end.as_ref())
            {
                None => Some(None),
                Some(given) => {
                    let problem = Problem::new(format!("{} has no effect without a variable", given.by));
                    self.fail(problem.with_hint("name it with `--crud-request-variable-name`"))
                }
            };
        };
        if name.text.is_empty() {
            return self.fail(Problem::new(format!("{}: the name is empty", name.by)));
        }
        let start = start?.unwrap_or(0);
        let Some(end) = end? else {
            let problem = Problem::new(format!("{}: the end of the range is missing", name.by));
            return self.fail(problem.with_hint("give it with `--crud-request-variable-value-end`"));
        };
        if start >= end {
            let message = format!("{}: empty range from {start} to below {end}", name.by);
            return self.fail(Problem::new(message).with_hint("the end of the range is excluded"));
        }
        Some(Some(Variable { name: name.text.clone(), slot: format!("${{range({start},{end})}}") }))
    }

    fn data(&mut self, given: Option<&RawValue>) -> Option<Option<Vec<u8>>> {
        match given {
            None => Some(None),
            Some(given) => Some(Some(self.file(given, &given.text)?)),
        }
    }

    /// The body that a data file holds: a template if the variable occurs in it, else as it is.
    fn crud_body(
        &mut self,
        given: Option<&RawValue>,
        content: Option<Vec<u8>>,
        variable: Option<&Variable>,
    ) -> Option<Body> {
        let (Some(given), Some(content)) = (given, content) else { return Some(Body::None) };
        match variable.filter(|variable| variable.occurs_in(&content)) {
            None => Some(Body::Raw(Arc::from(content))),
            Some(variable) => match variable.template(&content) {
                Ok(text) => Some(Body::Text(text)),
                Err(problem) => {
                    self.fail(Problem { message: format!("{}: {}", given.by, problem.message), ..problem })
                }
            },
        }
    }

    /// Refuses a variable that replaces nothing.
    pub(crate) fn check_variable(&mut self, patch: &PlanPatch, crud: &Crud, urls: &[Url]) -> Option<()> {
        let (Some(variable), Some(given)) = (&crud.variable, &patch.crud_request_variable_name) else {
            return Some(());
        };
        // Each body with the variable comes from a file in which the text occurs.
        let bodies = [Some(&crud.create), crud.update.as_ref()];
        let in_body = bodies.into_iter().flatten().any(|operation| matches!(operation.body, Body::Text(_)));
        if in_body || urls.iter().any(|url| url.target.contains(&variable.slot)) {
            return Some(());
        }
        let message =
            format!("{}: `{}` occurs in the path of no URL and in no data file", given.by, given.text);
        self.fail(Problem::new(message).with_hint("it is replaced there, case-sensitively, and nowhere else"))
    }
}

/// The rate of all connections, if there is a whole number of them and of requests per second on each.
fn total_rate(patch: &PlanPatch) -> Option<u64> {
    let number = |given: &Option<RawValue>| given.as_ref()?.text.parse::<u64>().ok();
    number(&patch.rps)?.checked_mul(number(&patch.connections)?)
}

impl Crud {
    /// Requests of one iteration, at least 1.
    pub(crate) fn steps(&self) -> u32 {
        1 + u32::from(self.update.is_some()) + u32::from(self.delete.is_some())
    }

    /// The end of a URL, with the slot in place of the variable.
    pub(crate) fn fill(&self, tail: &str) -> Result<String, Problem> {
        let Some(variable) = self.variable.as_ref().filter(|variable| tail.contains(&variable.name)) else {
            return Ok(tail.to_owned());
        };
        variable.check_before(tail.as_bytes())?;
        Ok(tail.replace(&variable.name, &variable.slot))
    }

    /// As [`Url::shown`], with the variable as it was typed.
    pub(crate) fn shown(&self, url: &Url) -> String {
        self.as_typed(url.shown())
    }

    /// The opposite of [`fill`](Self::fill).
    fn as_typed(&self, text: String) -> String {
        match &self.variable {
            Some(variable) => text.replace(&variable.slot, &variable.name),
            None => text,
        }
    }

    /// The name and the requests of one scenario. `several`: there are other URLs, so the name has to differ
    /// from theirs.
    pub(crate) fn scenario(&self, url: &Url, several: bool) -> (String, Vec<Draft>) {
        let place = self.as_typed(if several { url.shown() } else { url.target.clone() });
        let origin = if several { format!(" ({place})") } else { String::new() };
        let followers = [("update", &self.update), ("delete", &self.delete)];
        let resource = ExtractSpec {
            variable: 0,
            source: Source::Header(self.header.clone()),
            regex: None,
            form: Conversion::Path,
            default: None,
        };
        let name = format!("create {} {place}", self.create.method);
        let (method, body) = (self.create.method.clone(), self.create.body.clone());
        // A request that failed does not end the scenario there, so that what was created is deleted.
        let mut drafts = vec![Draft { goes_on: true, ..Draft::new(name, method, url.target.clone(), body) }];
        if self.steps() > 1 {
            drafts[0].handler.extract.push(resource);
            drafts[0].variables = Arc::from([RESOURCE.to_owned()]);
        }
        for (verb, operation) in followers {
            let Some(Operation { method, body }) = operation else { continue };
            let name = format!("{verb} {method}{origin}");
            let target = format!("${{{RESOURCE}}}");
            drafts.push(Draft {
                variables: Arc::from([RESOURCE.to_owned()]),
                goes_on: true,
                ..Draft::new(name, method.clone(), target, body.clone())
            });
        }
        (format!("crud{origin}"), drafts)
    }
}

impl Variable {
    fn occurs_in(&self, content: &[u8]) -> bool {
        find(content, self.name.as_bytes()).is_some()
    }

    /// `content` as a template: the variable's text is the slot, all other text is itself.
    fn template(&self, content: &[u8]) -> Result<Vec<u8>, Problem> {
        self.check_before(content)?;
        let mut text = Vec::with_capacity(content.len() + 64);
        let mut rest = content;
        while let Some(at) = find(rest, self.name.as_bytes()) {
            text.extend(Template::escape_bytes(&rest[..at]));
            text.extend_from_slice(self.slot.as_bytes());
            rest = &rest[at + self.name.len()..];
        }
        text.extend(Template::escape_bytes(rest));
        Ok(text)
    }

    /// A `$` in front of a slot would make it a literal `${`, and templates have no other way to write it.
    fn check_before(&self, content: &[u8]) -> Result<(), Problem> {
        let mut rest = content;
        while let Some(at) = find(rest, self.name.as_bytes()) {
            if rest[..at].ends_with(b"$") {
                return Err(Problem::new(format!("a `$` stands in front of the variable `{}`", self.name))
                    .with_hint("a variable cannot follow a `$`: put something in between"));
            }
            rest = &rest[at + self.name.len()..];
        }
        Ok(())
    }
}

/// The first occurrence of `needle`, which is not empty.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// A header's name, in lower case.
fn parse_resource_header(text: &str) -> Result<String, String> {
    match parse_header(&format!("{text}: x")) {
        Ok((name, _)) if name == text => Ok(name.to_ascii_lowercase()),
        _ => Err(format!("`{}` is not the name of a header", text.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Variable {
        Variable { name: name.to_owned(), slot: "${sequence}".to_owned() }
    }

    #[test]
    fn only_the_variable_is_replaced() {
        for (content, expected) in [
            (&b"a-ID-b"[..], &b"a-${sequence}-b"[..]),
            (b"IDID", b"${sequence}${sequence}"),
            (b"${uuid} ID ${", b"$${uuid} ${sequence} $${"),
            (b"$${x}ID$", b"$$${x}${sequence}$"),
            (b"\xff\x00ID", b"\xff\x00${sequence}"),
        ] {
            let text = variable("ID").template(content).unwrap();
            assert_eq!(text, expected, "{}", content.escape_ascii());
            // Read as a template, the rest of it is what it was.
            let template = Template::parse(&text).unwrap();
            assert_eq!(template.literals(), &*without(content, b"ID"), "{}", content.escape_ascii());
        }
    }

    fn without(content: &[u8], name: &[u8]) -> Vec<u8> {
        let mut rest = content.to_vec();
        while let Some(at) = find(&rest, name) {
            rest.drain(at..at + name.len());
        }
        rest
    }

    #[test]
    fn a_dollar_in_front_is_refused_and_one_in_the_name_is_not() {
        assert!(variable("ID").template(b"cost $ID").is_err());
        assert_eq!(variable("${ID}").template(b"a/${ID}/b").unwrap(), b"a/${sequence}/b");
        assert_eq!(variable("$ID").template(b"a/$ID").unwrap(), b"a/${sequence}");
    }
}
