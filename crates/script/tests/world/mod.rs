//! The world as the tests make it: a clock that moves when it is read, and the printed output.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_core::{Nanos, Shard};
use plimsoll_scenario::{
    DynamicRequest, FieldList, Received, Scheme, ScriptError, ScriptLimits, ScriptSource as _, ScriptText,
    Scripts, StepScript,
};
use plimsoll_script::{Host, ScriptOptions, StepScripts};

/// A world without clocks and sockets.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Nanoseconds; every look at the clock takes ten milliseconds.
    clock: AtomicU64,
    printed: Mutex<Vec<(Option<u32>, String)>>,
}

impl World {
    pub(crate) fn printed(&self) -> Vec<(Option<u32>, String)> {
        self.printed.lock().unwrap().clone()
    }
}

impl Host for World {
    fn monotonic(&self) -> Nanos {
        Nanos(self.clock.fetch_add(10_000_000, Ordering::Relaxed))
    }

    fn unix_ns(&self) -> u64 {
        1_700_000_000_123_456_789
    }

    fn print(&self, worker: Option<u32>, text: &[u8]) {
        self.printed.lock().unwrap().push((worker, String::from_utf8_lossy(text).into_owned()));
    }

    fn lookup(&self, host: &str, service: &str) -> Result<Vec<String>, String> {
        match (host, service) {
            ("nowhere", _) => Err("no such host".to_owned()),
            (_, service) => {
                let port = if service == "http" { "80" } else { service };
                Ok(vec![format!("10.0.0.1:{port}"), format!("10.0.0.2:{port}")])
            }
        }
    }

    fn can_connect(&self, address: &str) -> bool {
        !address.starts_with("10.0.0.1:")
    }
}

pub(crate) fn world() -> (Arc<World>, ScriptOptions) {
    let world = Arc::new(World::default());
    let options = ScriptOptions::new(world.clone(), ScriptLimits::default());
    (world, options)
}

/// Loads one inline script.
pub(crate) fn load(source: &str, options: ScriptOptions) -> Result<Arc<StepScripts>, ScriptError> {
    let script =
        StepScript { step: "login".to_owned(), text: ScriptText::inline(source, None), scheme: Scheme::Http };
    StepScripts::load(vec![script], options).map_err(|mut errors| errors.remove(0))
}

/// One inline script in one worker.
pub(crate) fn open(source: &str, options: ScriptOptions) -> Result<Box<dyn Scripts>, ScriptError> {
    load(source, options)?.open(Shard::WHOLE, &[])
}

/// `GET /a` with two fields.
pub(crate) fn request() -> DynamicRequest {
    let mut request = DynamicRequest {
        method: b"GET".to_vec(),
        path: b"/a".to_vec(),
        authority: b"example.test:8080".to_vec(),
        ..DynamicRequest::default()
    };
    request.fields.push(b"accept", b"*/*");
    request.fields.push(b"x-trace", b"1");
    request
}

pub(crate) fn fields(pairs: &[(&str, &str)]) -> FieldList {
    let mut fields = FieldList::default();
    pairs.iter().for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
    fields
}

/// The fields, `name: value`.
pub(crate) fn shown(fields: &FieldList) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    fields.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
}

pub(crate) fn received<'a>(status: u16, fields: &'a FieldList, body: &'a [u8]) -> Received<'a> {
    Received::new(status, fields, body)
}

/// An empty folder of this test's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plimsoll-script-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
