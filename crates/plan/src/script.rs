//! wrk's scripts: the request of the URL as a script leaves it.

use std::path::Path;
use std::sync::Arc;

use plimsoll_document::{Problem, RawValue};
use plimsoll_scenario::{
    Body, Op, ScriptLanguage, ScriptLimits, ScriptText, Template, UrlRequest, UrlScript,
};

use crate::PlanPatch;
use crate::draft::Draft;
use crate::protocol::ProtocolPreference;
use crate::resolve::Resolver;
use crate::url::Url;

/// The language of a plan's scripts, with the world that they see.
#[derive(Clone, Debug)]
pub struct ScriptHost(pub Arc<dyn ScriptLanguage>);

/// Hosts are equal if they are the same object.
impl PartialEq for ScriptHost {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ScriptHost {}

impl Resolver<'_> {
    /// Loads the script and changes the request of the URL as it does. `None`: there is a problem.
    ///
    /// `headers` are those of the request, written as templates, as the path and the body are. The script
    /// sees the raw text, and its changes are taken literally.
    pub(crate) fn wrk_script(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
        url: &Url,
        headers: &mut Vec<(String, String)>,
        draft: &mut Draft,
    ) -> Option<Option<Arc<dyn UrlScript>>> {
        let Some(given) = &patch.script else { return self.without_script(patch) };
        let Some(ScriptHost(language)) = &patch.script_host else {
            return self.fail(Problem::new(format!("{}: scripts cannot be run here", given.by)));
        };
        if patch.urls.len() > 1 {
            let problem = Problem::new(format!("{} and more than one URL exclude each other", given.by));
            return self.fail(problem.with_hint("a script of wrk is for one URL"));
        }
        if let Some(crud) = patch.first_crud_flag() {
            return self.fail(Problem::new(format!("{} and {} exclude each other", given.by, crud.by)));
        }
        let content = self.file(given, &given.text)?;
        let text = ScriptText::file(Path::new(&given.text), &content);
        let limits = ScriptLimits {
            allow_system: patch.script_allow_system.is_on(),
            only_syntax: patch.only_read_scripts,
            lua_path: patch.lua_path.clone(),
            seed: self.seed(patch)?,
            ..ScriptLimits::default()
        };
        let mut arguments = vec![url.shown()];
        arguments.extend_from_slice(&patch.script_arguments);
        let before = request(url, headers, draft);
        let script = match language.load_for_url(text, before.clone(), arguments, limits) {
            Ok(script) => script,
            Err(error) => return self.fail(Problem::new(error.message)),
        };
        if script.gives_bytes() && preference.protocol(url).may_be_http2() {
            let problem = Problem::new(format!("{}: the script writes requests of HTTP/1.1", given.by));
            return self.fail(problem.with_hint("leave the flags for HTTP/2 out, or the function `request`"));
        }
        if script.makes_requests(0)
            && let Some(what) = templates(headers, draft)
        {
            let message = format!(
                "{}: the script makes the requests, so the template in {what} has no effect",
                given.by
            );
            return self.fail(Problem::new(message).with_hint("write `$${` for a literal `${`"));
        }
        self.take_over(given, &before, script.request(), headers, draft)?;
        Some(Some(script))
    }

    /// Nothing may be left over that is for a script.
    fn without_script(&mut self, patch: &PlanPatch) -> Option<Option<Arc<dyn UrlScript>>> {
        let left_over = match patch {
            patch if !patch.script_arguments.is_empty() => "the arguments behind `--`",
            patch if patch.script_allow_system.is_on() => "--script-allow-system",
            _ => return Some(None),
        };
        let problem = Problem::new(format!("{left_over} without a script"));
        self.fail(problem.with_hint("give one with --script FILE"))
    }

    /// Carries over the changes of the script.
    fn take_over(
        &mut self,
        given: &RawValue,
        before: &UrlRequest,
        after: &UrlRequest,
        headers: &mut Vec<(String, String)>,
        draft: &mut Draft,
    ) -> Option<()> {
        if after.scheme != before.scheme {
            let problem = Problem::new(format!("{}: the script sets wrk.scheme", given.by));
            return self.fail(problem.with_hint("the scheme of the URL turns TLS on"));
        }
        if after.method != before.method {
            draft.method.clone_from(&after.method);
        }
        if after.path != before.path {
            draft.target = Template::escape(&after.path);
        }
        if after.body != before.body {
            draft.body = match &after.body {
                Some(body) => Body::Raw(Arc::from(body.as_slice())),
                None => Body::None,
            };
        }
        let is_in = |list: &[(String, String)], name: &str, value: &str| {
            list.iter().any(|(known, other)| known.eq_ignore_ascii_case(name) && other == value)
        };
        // Unchanged fields keep their place and their template; a table of Lua has no order.
        headers.retain(|(name, value)| is_in(&after.headers, name, &literal(value)));
        for (name, value) in &after.headers {
            if !is_in(&before.headers, name, value) {
                headers.push((name.clone(), Template::escape(value)));
            }
        }
        let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        if after.authority() != before.authority() && !has_host {
            headers.push(("Host".to_owned(), after.authority()));
        }
        Some(())
    }
}

/// Builds the request that the script is given.
fn request(url: &Url, headers: &[(String, String)], draft: &Draft) -> UrlRequest {
    let port = url.authority.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    UrlRequest {
        scheme: url.scheme.scheme.to_owned(),
        host: url.host.clone(),
        port: port.map(|(_, port)| port.to_owned()),
        method: draft.method.clone(),
        path: literal(&draft.target),
        headers: headers.iter().map(|(name, value)| (name.clone(), literal(value))).collect(),
        body: match &draft.body {
            Body::None => None,
            Body::Text(text) => Some(literal_bytes(text)),
            Body::Raw(bytes) => Some(bytes.to_vec()),
            Body::Coded(_) | Body::Supplied { .. } => None,
        },
    }
}

/// Returns the literal text of a template without slots; a template with slots is returned as written.
fn literal(text: &str) -> String {
    String::from_utf8(literal_bytes(text.as_bytes())).unwrap_or_else(|_| text.to_owned())
}

fn literal_bytes(text: &[u8]) -> Vec<u8> {
    match Template::parse(text) {
        Ok(template) if template.is_static() => template.literals().to_vec(),
        _ => text.to_vec(),
    }
}

/// The place of a template with slots.
fn templates(headers: &[(String, String)], draft: &Draft) -> Option<String> {
    let has_slots = |text: &[u8]| Template::parse(text).is_ok_and(|template| !template.is_static());
    if has_slots(draft.target.as_bytes()) {
        return Some("the URL".to_owned());
    }
    if matches!(&draft.body, Body::Text(text) if has_slots(text)) {
        return Some("the body".to_owned());
    }
    let found = headers.iter().find(|(_, value)| has_slots(value.as_bytes()));
    found.map(|(name, _)| format!("the header `{name}`"))
}

/// The program of a scenario of one step, with the script's pause.
pub(crate) fn ops(script: &dyn UrlScript) -> Vec<Op> {
    let pause = script.has_delay().then_some(Op::ScriptPause(0));
    pause.into_iter().chain([Op::Send(0)]).collect()
}
