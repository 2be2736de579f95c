//! Plans: checked, explained, tried and made by commands of the program.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Json, Posted};
use crate::forms::{permitted, words_of};
use crate::import_kind::ImportKind;
use crate::program::{Call, Finished, USAGE, Variables};
use crate::refusal::Refusal;
use crate::router::Ui;

/// The argument for URLs, in whose place the command line takes plan files, too.
const URLS: &str = "urls";
/// Name of a plan whose text is given.
const OF_STDIN: &str = "<stdin>";

/// Kind of document that an editor has.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DraftKind {
    #[default]
    Plan,
    /// The spec of a cluster.
    Cluster,
}

impl DraftKind {
    /// The command that says everything that is wrong with it.
    const fn check(self) -> &'static [&'static str] {
        match self {
            Self::Plan => &["check", "-"],
            Self::Cluster => &["cluster", "check", "-"],
        }
    }
}

/// A plan as it stands in the editor, or the spec of a cluster, which can be checked only.
#[derive(Deserialize)]
pub(crate) struct Draft {
    #[serde(default)]
    kind: DraftKind,
    path: Option<String>,
    text: String,
    #[serde(default)]
    flags: Vec<String>,
}

impl Ui {
    /// Asks a command about the text of a plan, in the folder that names in it refer to.
    async fn ask_about(
        &self,
        command: &str,
        draft: Draft,
        variables: Variables,
    ) -> Result<Finished, Refusal> {
        let folder = self.folder.folder_of(draft.path.as_deref())?;
        let flags = permitted(&draft.flags, &self.options.run_flags, self.options.closest)?;
        let words = [command, "-"].map(str::to_owned).into_iter().chain(flags).chain(json_output());
        let call = Call::new(words, &folder).with_input(draft.text).with_variables(variables);
        self.program.call(call).await
    }

    /// Returns everything that is wrong with a plan.
    ///
    /// # Errors
    /// The command cannot be carried out.
    pub(crate) async fn problems(
        &self,
        kind: DraftKind,
        folder: PathBuf,
        text: String,
        flags: Vec<String>,
    ) -> Result<Vec<Value>, Refusal> {
        let words = kind.check().iter().map(|&word| word.to_owned()).chain(flags).chain(json_output());
        let variables = self.servers.known(&text);
        let call = Call::new(words, &folder).with_input(text).with_variables(variables);
        Ok(problems_of(&object(&self.program.call(call).await?)?))
    }
}

fn json_output() -> [String; 2] {
    ["-o", "json"].map(str::to_owned)
}

/// The object that a command has written.
fn object(finished: &Finished) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_slice(&finished.output) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(finished.refusal()),
    }
}

/// The problems in the output of a command, and then its warnings; places only in the text that it was given.
fn problems_of(object: &Map<String, Value>) -> Vec<Value> {
    let of = |name: &str| object.get(name).and_then(Value::as_array).into_iter().flatten();
    let note = |text: &Value| {
        json!({
            "severity": "note",
            "message": text,
            "hint": null,
            "line": null,
            "column": null,
            "length": null,
        })
    };
    of("problems").cloned().map(in_text).chain(of("warnings").map(note)).collect()
}

/// A problem whose place, if it has one, is in the text. Of one in another file the message names the place.
fn in_text(mut problem: Value) -> Value {
    let Some(members) = problem.as_object_mut() else { return problem };
    let file = members.remove("file").and_then(|file| file.as_str().map(str::to_owned));
    if let Some(file) = file.filter(|file| file != OF_STDIN && file != "-") {
        let line = members.get("line").and_then(Value::as_u64).map(|line| format!(":{line}"));
        let message = members.get("message").and_then(Value::as_str).unwrap_or_default();
        let message = format!("{file}{}: {message}", line.unwrap_or_default());
        members.insert("message".to_owned(), message.into());
        for place in ["line", "column", "length"] {
            members.insert(place.to_owned(), Value::Null);
        }
    }
    problem
}

/// `POST /api/check`
pub(crate) async fn check(
    State(ui): State<Arc<Ui>>,
    Posted(draft): Posted<Draft>,
) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.folder_of(draft.path.as_deref())?;
    let known = match draft.kind {
        DraftKind::Plan => &ui.options.run_flags,
        DraftKind::Cluster => &ui.options.cluster_flags,
    };
    let flags = permitted(&draft.flags, known, ui.options.closest)?;
    let problems = ui.problems(draft.kind, folder, draft.text, flags).await?;
    let is_error = |problem: &Value| problem["severity"] != "note";
    Ok(Json(json!({"ok": !problems.iter().any(is_error), "problems": problems})))
}

/// `POST /api/explain`
pub(crate) async fn explain(
    State(ui): State<Arc<Ui>>,
    Posted(draft): Posted<Draft>,
) -> Result<Json<Value>, Refusal> {
    let variables = ui.servers.known(&draft.text);
    let path = draft.path.clone();
    let finished = ui.ask_about("explain", draft, variables).await?;
    let mut object = object(&finished)?;
    if object.contains_key("problems") && finished.code == Some(USAGE) {
        return Ok(Json(json!({"ok": false, "problems": problems_of(&object)})));
    }
    object.remove("ok");
    let mut explanation = object.remove("explanation").unwrap_or(Value::Object(object));
    name_places(&mut explanation, path.as_deref());
    Ok(Json(json!({"ok": true, "explanation": explanation})))
}

/// Names the plan at places in its text, which has come to the command by stdin: `shop.yaml:2`; of a text
/// without a file `line 2`.
fn name_places(value: &mut Value, path: Option<&str>) {
    match value {
        Value::String(text) => {
            let place = path.map_or("line ".to_owned(), |path| format!("{path}:"));
            let named = text.replace(&format!("{OF_STDIN}:"), &place);
            *text = named.replace(OF_STDIN, path.unwrap_or("the plan"));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| name_places(value, path)),
        Value::Object(members) => members.values_mut().for_each(|value| name_places(value, path)),
        _ => {}
    }
}

/// `POST /api/try`
pub(crate) async fn try_once(
    State(ui): State<Arc<Ui>>,
    Posted(draft): Posted<Draft>,
) -> Result<Json<Value>, Refusal> {
    let variables = ui.servers.wanted(&draft.text).await?;
    let mut object = object(&ui.ask_about("try", draft, variables).await?)?;
    if object.contains_key("problems") {
        object.insert("problems".to_owned(), problems_of(&object).into());
    }
    object.remove("name");
    for (name, usual) in
        [("ok", json!(true)), ("exchanges", json!([])), ("iterations", json!(0)), ("message", Value::Null)]
    {
        object.entry(name).or_insert(usual);
    }
    Ok(Json(Value::Object(object)))
}

/// A form that was filled in.
#[derive(Deserialize)]
pub(crate) struct Filled {
    command: String,
    arguments: Map<String, Value>,
}

/// `POST /api/plan-of`
pub(crate) async fn plan_of(
    State(ui): State<Arc<Ui>>,
    Posted(filled): Posted<Filled>,
) -> Result<Json<Value>, Refusal> {
    let mut arguments = filled.arguments;
    if let Some(urls) = arguments.get_mut(URLS) {
        with_schemes(urls);
    }
    let words = words_of(&ui.options.forms, &filled.command, &arguments)?;
    let words = [filled.command].into_iter().chain(words).chain(["--print-plan".to_owned()]);
    let finished = ui.program.call(Call::new(words, ui.folder.root())).await?;
    if finished.code != Some(0) {
        return Err(finished.refusal());
    }
    let notes: Vec<&str> = finished.messages.lines().filter_map(|line| line.strip_prefix("note: ")).collect();
    Ok(Json(json!({"text": String::from_utf8_lossy(&finished.output), "notes": notes})))
}

/// Makes URLs of typed words, so that none of them is taken for a file: those of the folder have names of
/// their own.
fn with_schemes(urls: &mut Value) {
    match urls {
        Value::String(url) if !url.contains("://") => url.insert_str(0, "http://"),
        Value::Array(urls) => urls.iter_mut().for_each(with_schemes),
        _ => {}
    }
}

/// A description of another tool.
#[derive(Deserialize)]
pub(crate) struct Foreign {
    name: String,
    text: String,
    kind: Option<ImportKind>,
}

/// `POST /api/import`
pub(crate) async fn import(
    State(ui): State<Arc<Ui>>,
    Posted(Foreign { name, text, kind }): Posted<Foreign>,
) -> Result<Json<Value>, Refusal> {
    let kind = kind.or_else(|| ImportKind::of(&name, &text)).ok_or_else(|| {
        let error = "the tool that made this is unknown";
        Refusal::unprocessable(
            error,
            "choose one: curl, HAR, OpenAPI, h2loadrunner, vegeta, Postman, Artillery, JMeter, k6, \
             Gatling or Locust",
        )
    })?;
    let text = match kind {
        ImportKind::Curl => text.trim().trim_start_matches("$ ").to_owned(),
        _ => text,
    };
    // Files that it names are read below the folder: from stdin, it is no command that the person types.
    let call = Call::new(["import", kind.name(), "-", "-o", "json"], ui.folder.root()).with_input(text);
    let finished = ui.program.call(call).await?;
    if finished.code != Some(0) {
        return Err(finished.refusal());
    }
    object(&finished).map(|object| Json(Value::Object(object)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_url_of_a_form_is_the_name_of_a_file() {
        let mut urls = json!(["/etc/plan.yaml", "127.0.0.1:8080/a", "https://a.test/"]);
        with_schemes(&mut urls);
        assert_eq!(urls, json!(["http:///etc/plan.yaml", "http://127.0.0.1:8080/a", "https://a.test/"]));
        let mut url = json!("plan.yaml");
        with_schemes(&mut url);
        assert_eq!(url, "http://plan.yaml");
    }

    /// Symptom: settings of a plan that is open in the editor were from `<stdin>:2`.
    #[test]
    fn an_explanation_names_the_plan() {
        for (path, expected) in [
            (
                Some("shop.yaml"),
                json!({"name": "shop.yaml", "settings": [{"origin": "shop.yaml:2"}], "rate": 5}),
            ),
            (None, json!({"name": "the plan", "settings": [{"origin": "line 2"}], "rate": 5})),
        ] {
            let mut found = json!({"name": "<stdin>", "settings": [{"origin": "<stdin>:2"}], "rate": 5});
            name_places(&mut found, path);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_problem_of_another_file_has_no_place_in_the_text() {
        let own = json!({"message": "bad", "file": "<stdin>", "line": 3, "column": 1, "length": 2});
        assert_eq!(in_text(own), json!({"message": "bad", "line": 3, "column": 1, "length": 2}));
        let other = json!({"message": "bad", "file": "users.csv", "line": 3, "column": 1, "length": 2});
        let expected = json!({"message": "users.csv:3: bad", "line": null, "column": null, "length": null});
        assert_eq!(in_text(other), expected);
        let none = json!({"message": "bad", "file": null, "line": null});
        assert_eq!(in_text(none), json!({"message": "bad", "line": null}));
    }
}
