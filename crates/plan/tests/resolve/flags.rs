//! Patches from command lines, and files from memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use plimsoll_plan::{Files, KeyLogFile, Plan, PlanPatch, Problems, RawValue, Switch};

/// Files by name; everything else does not exist.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<&'static str, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.to_str().expect("test paths are text");
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The patch of a command line: `--flag value` with the long names, switches alone, everything else a URL.
pub(crate) fn patch(line: &[&str]) -> PlanPatch {
    let mut patch = PlanPatch { default_seed: 99, ..PlanPatch::default() };
    let mut words = line.iter().copied();
    while let Some(word) = words.next() {
        if switch(&mut patch, word) {
            continue;
        }
        if !word.starts_with("--") {
            patch.urls.push(RawValue::new("URL", word));
            continue;
        }
        let given = RawValue::new(word.to_owned(), words.next().expect("a value behind the flag"));
        match word {
            "--streams" => patch.streams.push(given),
            "--header" => patch.headers.push(given),
            "--source-ip" => patch.source_ips.push(given),
            "--resolve" => patch.resolve.push(given),
            "--connect-to" => patch.connect_to.push(given),
            "--key-log" => patch.key_log = Some(given.text.into()),
            _ => *single(&mut patch, word) = Some(given),
        }
    }
    patch
}

fn switch(patch: &mut PlanPatch, word: &str) -> bool {
    let switch = match word {
        "--disable-keepalive" => &mut patch.disable_keepalive,
        "-4" => &mut patch.ipv4,
        "-6" => &mut patch.ipv6,
        "--insecure" => &mut patch.insecure,
        "--http1.1" => &mut patch.http1,
        "--http2" => &mut patch.http2,
        "--http2-prior-knowledge" => &mut patch.http2_prior_knowledge,
        "--precise" => &mut patch.precise,
        "--no-preflight" => &mut patch.no_preflight,
        _ => return false,
    };
    *switch = Switch::on(word.to_owned());
    true
}

fn single<'a>(patch: &'a mut PlanPatch, word: &str) -> &'a mut Option<RawValue> {
    let crud = &mut patch.crud;
    match word {
        "--crud-create-method" => &mut crud.create_method,
        "--crud-update-method" => &mut crud.update_method,
        "--crud-delete-method" => &mut crud.delete_method,
        "--crud-resource-header" => &mut crud.resource_header,
        "--crud-request-variable-name" => &mut crud.variable_name,
        "--crud-request-variable-value-start" => &mut crud.variable_start,
        "--crud-request-variable-value-end" => &mut crud.variable_end,
        "--crud-create-data-file" => &mut crud.create_data,
        "--crud-update-data-file" => &mut crud.update_data,
        "--rps" => &mut patch.rps,
        "--stream-timeout" => &mut patch.stream_timeout,
        "--stream-timeout-interval-ms" => &mut patch.stream_timeout_ms,
        "--connection-lifetime" => &mut patch.connection_lifetime,
        "--connection-inactivity" => &mut patch.connection_inactivity,
        "--connection-rate" => &mut patch.connection_rate,
        "--alpn" => &mut patch.alpn,
        "--window-bits" => &mut patch.window_bits,
        "--connection-window-bits" => &mut patch.connection_window_bits,
        "--header-table-size" => &mut patch.header_table_size,
        "--encoder-header-table-size" => &mut patch.encoder_header_table_size,
        "--max-frame-size" => &mut patch.max_frame_size,
        "--ping-interval" => &mut patch.ping_interval,
        "--connections" => &mut patch.connections,
        "--iterations" => &mut patch.iterations,
        "--duration" => &mut patch.duration,
        "--threads" => &mut patch.threads,
        "--rate" => &mut patch.rate,
        "--stages" => &mut patch.stages,
        "--users" => &mut patch.users,
        "--user-stages" => &mut patch.user_stages,
        "--arrival" => &mut patch.arrival,
        "--overload" => &mut patch.overload,
        "--warmup" => &mut patch.warmup,
        "--drain" => &mut patch.drain,
        "--timeout" => &mut patch.timeout,
        "--connect-timeout" => &mut patch.connect_timeout,
        "--seed" => &mut patch.seed,
        "--method" => &mut patch.method,
        "--body" => &mut patch.body,
        "--basic" => &mut patch.basic,
        "--bearer" => &mut patch.bearer,
        "--follow-redirects" => &mut patch.follow_redirects,
        "--pipeline" => &mut patch.pipeline,
        "--max-requests-per-connection" => &mut patch.max_requests_per_connection,
        "--unix-socket" => &mut patch.unix_socket,
        "--cacert" => &mut patch.cacert,
        "--cert" => &mut patch.cert,
        "--key" => &mut patch.key,
        "--tls" => &mut patch.tls,
        "--sni" => &mut patch.sni,
        "--backend" => &mut patch.backend,
        "--pacing" => &mut patch.pacing,
        "--max-head-bytes" => &mut patch.max_head_bytes,
        _ => panic!("{word} is no flag"),
    }
}

/// Resolves a command line, with the files of `memory`.
pub(crate) fn resolve_with(line: &[&str], memory: &Memory) -> Result<Plan, Problems> {
    Plan::resolve(patch(line), memory)
}

/// Resolves a command line that has to be right.
pub(crate) fn plan(line: &[&str]) -> Plan {
    resolve_with(line, &Memory::default()).unwrap_or_else(|problems| panic!("{line:?}: {problems}"))
}

/// A request of a plan in HTTP/1.1, as text: that of iteration 7, with `/made` as the first variable.
pub(crate) fn request(plan: &Plan, step: usize) -> String {
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    let variables = [b"/made".to_vec()];
    let context = plimsoll_scenario::Context { index: 7, variables: &variables, ..Default::default() };
    let mut random = plimsoll_core::Random::new(1, 0);
    plan.steps[step].request.render(&context, &mut random, &mut scratch, &mut out);
    String::from_utf8(out).expect("these requests are text")
}
