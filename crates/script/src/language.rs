//! Lua as a language of plans.

use std::sync::Arc;

use plimsoll_scenario::{
    ScriptError, ScriptLanguage, ScriptLimits, ScriptSource, ScriptText, StepScript, UrlRequest, UrlScript,
};

use crate::library;
use crate::{Host, ScriptOptions, StepScripts, WrkScript};

/// Lua scripts in the world of a [`Host`].
#[derive(Clone, Debug)]
pub struct LuaScripts(pub Arc<dyn Host>);

impl LuaScripts {
    fn options(&self, limits: ScriptLimits) -> ScriptOptions {
        ScriptOptions::new(Arc::clone(&self.0), limits)
    }
}

impl ScriptLanguage for LuaScripts {
    fn load_steps(
        &self,
        scripts: Vec<StepScript>,
        limits: ScriptLimits,
    ) -> Result<Arc<dyn ScriptSource>, Vec<ScriptError>> {
        Ok(StepScripts::load(scripts, self.options(limits))?)
    }

    fn load_for_url(
        &self,
        text: ScriptText,
        request: UrlRequest,
        arguments: Vec<String>,
        limits: ScriptLimits,
    ) -> Result<Arc<dyn UrlScript>, ScriptError> {
        Ok(WrkScript::load(text, request, arguments, self.options(limits))?)
    }

    fn syntax_error(&self, source: &[u8]) -> Option<String> {
        library::syntax_error(source)
    }
}
