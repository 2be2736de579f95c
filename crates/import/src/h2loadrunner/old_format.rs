//! The format of h2loadrunner's first versions, which its page still describes: refused, with each part in
//! the new form.

use serde_json::{Value, json};

use super::Importer;
use crate::source::Object;

/// Names of the list of requests.
const LISTS: [&str; 2] = ["scenario", "scenarios"];
/// Fields of variables, and those of a scenario that they are now.
const VARIABLES: [(&str, &str); 4] = [
    ("variable-name-in-path-and-data", "user-id-variable-in-path-and-data"),
    ("variable-range-start", "user-id-range-start"),
    ("variable-range-end", "user-id-range-end"),
    ("variable-range-slicing", "user-id-range-slicing"),
];
const OLD: &str = "the field is of an old format, which h2loadrunner itself no longer reads";

impl Importer<'_> {
    /// Reports what is of the old format: a list of requests, which there were no several of, and variables
    /// beside it. Returns `true` if there is such a list.
    pub(super) fn refuse_old_format(&mut self, top: &mut Object<'_>) -> bool {
        top.skip(&LISTS);
        let list = LISTS.into_iter().find(|key| top.has(key));
        if let Some(list) = list {
            let hint = "write \"Scenarios\": [{\"name\": \"one\", \"Requests\": […]}], with this list behind \
                        `Requests`";
            self.findings.hinted(&top.place(list), OLD, hint);
            for request in top.objects(list, &mut self.findings) {
                match request.members().get("Requests").and_then(Value::as_array) {
                    None => self.refuse_old_path(&request),
                    Some(requests) => requests.iter().enumerate().for_each(|(index, request_in)| {
                        let at = format!("{}/{index}", request.place("Requests"));
                        let request = Object::new(request_in, at, &mut self.findings);
                        request.iter().for_each(|request| self.refuse_old_path(request));
                    }),
                }
            }
        }
        self.refuse_old_variables(top);
        list.is_some()
    }

    /// Reports the variables of a scenario by their old names.
    pub(super) fn refuse_old_variables(&mut self, object: &mut Object<'_>) {
        for (old, new) in VARIABLES {
            let Some(value) = object.value(old) else { continue };
            let hint = format!("write \"{new}\": {value} in the scenario");
            self.findings.hinted(&object.place(old), OLD, hint);
        }
    }

    /// Reports the address of a request by its old name or in its old form.
    fn refuse_old_path(&mut self, request: &Object<'_>) {
        let old =
            request.members().get("path").or_else(|| request.members().get("uri").filter(|uri| is_old(uri)));
        if let Some(old) = old {
            let message = "the address of a request is its `uri`, in another form";
            self.findings.hinted(&request.at, message, format!("write {}", in_new_form(old)));
        }
    }
}

/// Returns `true` for an address with fields or an action of the old format.
pub(super) fn is_old(uri: &Value) -> bool {
    let has = |key: &str| uri.get(key).is_some();
    let is_action = |key: &str| uri.get(key).and_then(Value::as_str).is_some_and(|name| action(name) != name);
    has("source") || has("headerToExtract") || is_action("typeOfAction")
}

/// An address as the member that it is now: `"uri": {"typeOfAction": "input", "input": "/path"}`.
pub(super) fn in_new_form(old: &Value) -> String {
    let text = |keys: [&str; 2]| keys.into_iter().find_map(|key| old.get(key)?.as_str());
    let action = action(text(["typeOfAction", "source"]).unwrap_or("input"));
    let input = old.as_str().or_else(|| text(["input", "headerToExtract"]));
    let mut uri = format!("{{\"typeOfAction\": {}", json!(action));
    if let Some(input) = input.filter(|_| action != "sameWithLastOne") {
        uri.push_str(&format!(", \"input\": {}", json!(input)));
    }
    format!("\"uri\": {uri}}}")
}

/// The name that an action has now.
fn action(name: &str) -> &str {
    match name {
        "extractFromLastResponseHeader" => "fromResponseHeader",
        "sameWithLastUri" => "sameWithLastOne",
        other => other,
    }
}
