//! What parts of a plan are called.

use super::{Field, PauseSpec, StepSpec, Text};

impl StepSpec {
    /// What a request is called in reports: its name, or method and path. `None` for other steps, and for
    /// requests whose path only the run knows.
    pub fn report_name(&self) -> Option<String> {
        if let Some(name) = self.name.get() {
            return Some(name.0.clone());
        }
        let fixed = [
            ("GET", &self.get),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("HEAD", &self.head),
            (self.free_method(), &self.request),
        ];
        let (method, path) = fixed.into_iter().find_map(|(method, path)| Some((method, path.get()?)))?;
        Some(format!("{method} {}", path.as_str()))
    }

    /// Whether it is a request.
    pub fn is_request(&self) -> bool {
        self.report_name().is_some() || !self.same_url.is_absent() || !self.script.is_absent()
    }

    /// What the step does, in a few words.
    pub fn title(&self) -> String {
        let words = |field: &Field<Text>| field.get().map_or_else(String::new, |text| text.0.clone());
        if let Some(name) = self.report_name() {
            return name;
        }
        if !self.same_url.is_absent() {
            return format!("{} the same URL", self.free_method());
        }
        if !self.condition.is_absent() {
            return format!("if {}", words(&self.condition));
        }
        if !self.repeat.is_absent() {
            return format!("repeat {}", words(&self.repeat));
        }
        if !self.while_condition.is_absent() {
            return format!("while {}", words(&self.while_condition));
        }
        if !self.parallel.is_empty() {
            return "at once".to_owned();
        }
        if !self.set.is_empty() {
            let names: Vec<&str> = self.set.0.iter().map(|(name, ..)| name.as_str()).collect();
            return format!("set {}", names.join(", "));
        }
        if !self.script.is_absent() {
            return "request made by a script".to_owned();
        }
        self.think.get().map_or_else(|| "nothing".to_owned(), PauseSpec::title)
    }

    /// The method where no field is named after it.
    fn free_method(&self) -> &str {
        let bodies = [&self.body, &self.body_file, &self.template_file];
        let has_body = bodies.iter().any(|body| !body.is_absent()) || !self.json.is_absent();
        self.method.get().map_or(if has_body { "POST" } else { "GET" }, Text::as_str)
    }
}

impl PauseSpec {
    /// How long the pause is, in words.
    pub fn title(&self) -> String {
        let text = |field: &Field<Text>| field.get().map(|text| text.0.clone());
        if let Some(fixed) = text(&self.fixed) {
            return format!("think {fixed}");
        }
        if let Some(mean) = text(&self.exponential) {
            return format!("think {mean} on average, exponentially distributed");
        }
        let ends: Vec<String> = self.uniform.iter().filter_map(text).collect();
        format!("think {}", ends.join(" to "))
    }
}
