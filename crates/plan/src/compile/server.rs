//! Targets: by name, and by the URLs of steps.

use plimsoll_document::{Field, Place, Problem, TargetSpec, Text};
use plimsoll_scenario::Template;

use super::{Compiler, is_on, suggestion};
use crate::protocol::ProtocolRow;
use crate::security::basic_authorization;
use crate::url::Url;

/// A target of the plan file.
#[derive(Clone)]
pub(super) struct NamedTarget {
    name: String,
    /// `None` if its URL is wrong: that was reported.
    pub(super) origin: Option<Origin>,
}

/// The destination of requests: a server, and the other parts of its URL.
#[derive(Clone)]
pub(super) struct Origin {
    /// Index of the server.
    pub(super) server: usize,
    /// `host[:port]`, as it was typed.
    pub(super) authority: String,
    /// In front of the paths of steps; empty or with a leading `/`, never with one at its end.
    pub(super) prefix: String,
    /// The Authorization header that user and password in the URL ask for.
    pub(super) authorization: Option<String>,
    /// The scheme of its URL.
    pub(super) scheme: &'static ProtocolRow,
}

impl Compiler<'_, '_> {
    /// Reads the targets of the plan.
    pub(super) fn name_targets(&mut self) {
        for (name, place, spec) in &self.loaded.document.targets.0 {
            self.check_name(&name.0, Some(*place));
            let origin = self.target(spec, Some(*place));
            self.targets.push(NamedTarget { name: name.0.clone(), origin });
        }
    }

    fn target(&mut self, spec: &TargetSpec, place: Option<Place>) -> Option<Origin> {
        if spec.url.is_absent() {
            let problem = Problem::new("the target has no `url`");
            return self.form(place, problem.with_hint("write `url: http://127.0.0.1:8080`"));
        }
        let text = self.plain(&spec.url)?;
        let url = self.url(&text, spec.url.place())?;
        if url.target.contains('?') {
            let problem = Problem::new("a target's URL cannot have a query");
            return self.fail(spec.url.place(), problem.with_hint("queries belong to the steps"));
        }
        if let Err(problem) = url.check() {
            return self.fail(spec.url.place(), problem);
        }
        let mut share = Vec::new();
        for member in &spec.share {
            share.push(self.member(member, &url));
        }
        let share = share.into_iter().collect::<Option<Vec<Url>>>()?;
        for (field, name) in [(&spec.fail_over, "fail_over"), (&spec.fail_back, "fail_back")] {
            if share.is_empty() && !field.is_absent() {
                let problem = Problem::new(format!("`{name}` has no effect on a single server"));
                self.form::<()>(field.place(), problem.with_hint("add more servers with `share`"));
            }
        }
        let fail_over = spec.fail_over.get().copied().unwrap_or(true);
        if is_on(&spec.fail_back) && !fail_over {
            let problem = Problem::new("`fail_back` has no effect without `fail_over`");
            self.form::<()>(spec.fail_back.place(), problem);
        }
        let server = match share.is_empty() {
            true => self.servers.add(&url),
            false => {
                let members: Vec<&Url> = std::iter::once(&url).chain(&share).collect();
                for (index, member) in members.iter().enumerate() {
                    if members[..index].iter().any(|other| other.same_server(member)) {
                        let message = format!("`{}` is in the pool twice", member.authority);
                        self.report(
                            spec.share.get(index.wrapping_sub(1)).and_then(Field::place),
                            Problem::new(message),
                        );
                    }
                }
                self.servers.add_pool(&url, share.clone(), fail_over, is_on(&spec.fail_back))
            }
        };
        for member in std::iter::once(&url).chain(&share) {
            let shown = self.resolver.redaction.in_text(&member.shown()).into_owned();
            self.servers.show(server, shown);
        }
        Some(origin(server, &url))
    }

    /// `host[:port]` of a pool, with the scheme and, unless it names one, the port of its URL.
    fn member(&mut self, field: &Field<Text>, url: &Url) -> Option<Url> {
        let text = self.plain(field)?;
        if text.contains(['/', '@', '?', '#']) {
            let problem = Problem::new(format!("`{text}` is not host[:port]"));
            return self
                .fail(field.place(), problem.with_hint("scheme and path are those of the target's `url`"));
        }
        let member = self.url(&format!("{}://{text}{}", url.scheme.scheme, url.target), field.place())?;
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        if has_port || url.port == member.port {
            return Some(member);
        }
        Some(Url { authority: format!("{}:{}", member.authority, url.port), port: url.port, ..member })
    }

    fn url(&mut self, text: &str, place: Option<Place>) -> Option<Url> {
        match Url::parse(text, |tail| Ok(tail.to_owned())) {
            Ok(url) => Some(url),
            Err(problem) => self.fail(place, problem),
        }
    }

    /// The target that a scenario or a step names.
    pub(super) fn named_target(&mut self, field: &Field<Text>) -> Option<Origin> {
        let name = self.plain(field)?;
        match self.targets.iter().find(|target| target.name == name) {
            Some(target) => target.origin.clone(),
            None => {
                let problem = Problem::new(format!("no target is called `{name}`"));
                let hint = match self.targets.is_empty() {
                    true => {
                        format!("the plan has no targets: write `targets: {{{name}: http://127.0.0.1:8080}}`")
                    }
                    false => suggestion(&name, self.targets.iter().map(|target| target.name.as_str())),
                };
                self.form(field.place(), problem.with_hint(hint))
            }
        }
    }

    /// The only target of the plan, if there is but one.
    pub(super) fn only_target(&self) -> Option<&NamedTarget> {
        match self.targets.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The names of the targets, for messages.
    pub(super) fn target_names(&self) -> Vec<&str> {
        self.targets.iter().map(|target| target.name.as_str()).collect()
    }

    /// The server of a step's whole URL, and the path and query to ask for.
    pub(super) fn absolute(&mut self, text: &str, place: Option<Place>) -> Option<(Origin, String)> {
        let url = self.url(text, place)?;
        let server = self.servers.add(&url);
        let shown = self.resolver.redaction.in_text(&url.shown()).into_owned();
        self.servers.show(server, shown);
        let origin = Origin { prefix: String::new(), ..origin(server, &url) };
        Some((origin, url.target))
    }
}

fn origin(server: usize, url: &Url) -> Origin {
    let authorization = url.user_info.as_ref().and_then(|user| match user.contains(':') {
        true => basic_authorization(user),
        // A user without a password is legal in a URL.
        false => basic_authorization(&format!("{user}:")),
    });
    Origin {
        server,
        authority: url.authority.clone(),
        prefix: url.target.trim_end_matches('/').to_owned(),
        authorization: authorization.map(|value| Template::escape(&value)),
        scheme: url.scheme,
    }
}
