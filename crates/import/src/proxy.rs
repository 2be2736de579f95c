//! Proxies of other tools as the setting of a plan, which has one for all requests.

use plimsoll_document::Settings;

use crate::draft::{percent_encoded, text};
use crate::findings::Findings;

/// The URL of a proxy as a plan has it.
pub(crate) fn url(scheme: &str, host: &str, port: u16, user: Option<(&str, &str)>) -> String {
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let encoded = |text: &str| percent_encoded(text, b"");
    let user = user.map(|(user, password)| format!("{}:{}@", encoded(user), encoded(password)));
    format!("{scheme}://{}{host}:{port}", user.unwrap_or_default())
}

/// The proxies of all requests.
#[derive(Debug, Default)]
pub(crate) struct Proxies(Vec<(String, Option<String>)>);

impl Proxies {
    /// Adds that of the request at a place; `None` if it has none.
    pub(crate) fn push(&mut self, at: &str, proxy: Option<String>) {
        self.0.push((at.to_owned(), proxy));
    }

    /// Sets the proxy, if all requests have the same one; else each that has one is noted, as it is `said`.
    pub(crate) fn settle(&self, said: &str, settings: &mut Settings, findings: &mut Findings) {
        let Some((_, Some(first))) = self.0.iter().find(|(_, proxy)| proxy.is_some()) else { return };
        if self.0.iter().all(|(_, proxy)| proxy.as_ref() == Some(first)) {
            settings.proxy = text(first.as_str());
            return;
        }
        for (at, _) in self.0.iter().filter(|(_, proxy)| proxy.is_some()) {
            let becomes = "the run has one proxy for all requests, and not all have this one: it is left out";
            findings.note(at.as_str(), said, becomes);
        }
    }
}
