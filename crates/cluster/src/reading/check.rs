//! Checks of a spec, with those that are made unless the spec says how.

use plimsoll_core::Nanos;
use plimsoll_document::Problem;

use super::{PATIENCE, Reading, text, texts};
use crate::document::CheckSpec;
use crate::pages;
use crate::spec::{Check, CheckKind, Content};

/// Default time limit of the `writable` check: twice the time that Lithair takes to elect another leader.
const WRITABLE_WITHIN: Nanos = Nanos::from_secs(10);
/// The largest share of requests that may fail outside of faults, unless the spec says otherwise.
const ERROR_SHARE: f64 = 0.01;
/// The list that is asked, unless the spec says otherwise.
const LIST: &str = "/api/products";
/// An item of it.
const ITEM: &str = r#"{"name":"plimsoll_writable","price":1,"category":"writable"}"#;
/// Value of `item` that turns the `writable` check off.
const NONE: &str = "none";
/// Hint for an `item` that is not a JSON object.
const ITEM_HINT: &str = "write it as in `item: '{\"name\": \"a\"}'`";

impl Reading<'_> {
    /// The checks of the spec. Whether the cluster takes writes is checked before the others, since they may
    /// start the nodes again; with the collection of the first of them. With them comes the list of that
    /// collection if writes to it cannot be checked.
    pub(super) fn checks(&mut self, ports: &[String], first: &str) -> (Vec<Check>, Option<String>) {
        let document = self.document;
        let given = document.checks.iter();
        let given: Vec<Check> = given.filter_map(|check| self.check(check.get()?, ports, first)).collect();
        let has = |kind: CheckKind| given.iter().any(|check| check.kind == kind);
        let writable = (!has(CheckKind::Writable) && !ports.is_empty()).then(|| {
            let about = given.iter().find(|check| check.kind != CheckKind::ErrorShare);
            let content = about.map(|check| check.content.clone());
            let content = content.unwrap_or_else(|| self.content(&CheckSpec::default(), ports, first));
            Check { is_default: true, ..Check::new(CheckKind::Writable, content) }
        });
        // The check does not know what an item of another list is.
        let unchecked = writable.as_ref().map(|check| check.content.list.clone()).filter(|list| list != LIST);
        let writable = writable.filter(|_| unchecked.is_none());
        let share = (!has(CheckKind::ErrorShare))
            .then(|| Check { is_default: true, ..Check::new(CheckKind::ErrorShare, Content::default()) });
        let is_wanted = |check: &Check| check.kind != CheckKind::Writable || check.item != NONE;
        (writable.into_iter().chain(given).chain(share).filter(is_wanted).collect(), unchecked)
    }

    fn check(&mut self, check: &CheckSpec, ports: &[String], first: &str) -> Option<Check> {
        let kinds = CheckKind::ALL.map(|kind| (kind.name(), kind));
        let kind = self.word(&check.check, "check", &kinds);
        if check.check.is_absent() {
            self.wrong(Problem::new("a check needs a kind").with_hint("add `check`"), None);
        }
        let content = match kind {
            Some(CheckKind::ErrorShare) => Content::default(),
            _ => self.content(check, ports, first),
        };
        let mut found = Check { files: texts(&check.files), ..Check::new(kind?, content) };
        let only = [(&check.item, "item", CheckKind::Writable), (&check.most, "most", CheckKind::ErrorShare)];
        for (field, name, of) in only {
            if !field.is_absent() && found.kind != of {
                let problem = Problem::new(format!("`{name}` does not apply to `{}`", found.kind.name()));
                self.wrong(problem.with_hint("leave it out"), field.place());
            }
        }
        found.within = self.duration(&check.within, "within").unwrap_or(found.within);
        if let Some(item) = text(&check.item) {
            let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&item);
            if item != NONE && object.is_err() {
                let problem = Problem::new("`item` is not a JSON object");
                self.wrong(problem.with_hint(ITEM_HINT), check.item.place());
            }
            found.item = item;
        } else if found.kind == CheckKind::Writable && found.content.list != LIST {
            let problem = Problem::new(format!("an item of {} is not described", found.content.list));
            self.wrong(problem.with_hint(ITEM_HINT), check.check.place());
        }
        if let Some(most) = text(&check.most) {
            found.most = self.share(&most, check.most.place()).unwrap_or(found.most);
        }
        Some(found)
    }

    fn content(&mut self, check: &CheckSpec, ports: &[String], first: &str) -> Content {
        let count = text(&check.count).unwrap_or_else(|| "/api/products/count".to_owned());
        let page = self.number(&check.page, "page").unwrap_or(pages::LARGEST);
        if page == 0 {
            self.wrong(Problem::new("a page has at least one item"), check.page.place());
        }
        Content {
            port: self.port(&check.port, ports, first),
            count: (count != "none").then_some(count),
            count_pointer: self.pointer(&check.count_pointer, "count_pointer", "/count"),
            list: text(&check.list).unwrap_or_else(|| LIST.to_owned()),
            items: self.pointer(&check.items, "items", "/data"),
            id: self.pointer(&check.id, "id", "/id"),
            take: text(&check.take).unwrap_or_else(|| "take".to_owned()),
            skip: text(&check.skip).unwrap_or_else(|| "skip".to_owned()),
            page,
        }
    }
}

impl Check {
    /// One of this kind about this content, as it is unless the spec says otherwise.
    fn new(kind: CheckKind, content: Content) -> Self {
        Self {
            kind,
            content,
            within: if kind == CheckKind::Writable { WRITABLE_WITHIN } else { PATIENCE },
            files: Vec::new(),
            item: ITEM.to_owned(),
            most: ERROR_SHARE,
            is_default: false,
        }
    }
}
