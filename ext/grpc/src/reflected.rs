//! The description of a service from the server itself, before the load.

use crate::fields::{CODES, read_status, read_status_message};
use plimsoll_app::{Answer, Failure, answers_before, transport};
use plimsoll_core::{Nanos, figure};
use plimsoll_document::Problem;
use plimsoll_plan::{PlanPatch, Switch};
use plimsoll_system::clock;
use plimsoll_workloads::WorkloadError;
use serde_json::json;

use crate::args::{GrpcArgs, problem};
use crate::{Reflection, method_name, origin};

/// How long a server's reflection is asked, question by question.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Bytes of an answer of reflection at most: large interfaces have some hundred KiB.
const LONGEST_ANSWER: usize = 16 << 20;

fn usage(error: &WorkloadError) -> Failure {
    Failure::usage(problem(error))
}

/// The descriptor set that a server gives of the service of a method.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(crate) fn reflected(args: &GrpcArgs, server: &str, method: &str) -> Result<Vec<u8>, Failure> {
    let (server, method) =
        (origin(server).map_err(|e| usage(&e))?, method_name(method).map_err(|e| usage(&e))?);
    let (service, _) = method.split_once('/').unwrap_or((&method, ""));
    // The run has the same connections and metadata.
    let patch = args.run.settings();
    let mut flags = PlanPatch {
        headers: patch.headers.clone(),
        bearer: patch.bearer.clone(),
        http2: Switch::on("--http2"),
        ..transport(patch)
    };
    GrpcArgs::spell_metadata(&mut flags).map_err(Failure::usage)?;
    let mut refusal = None;
    for path in Reflection::PATHS {
        match asked(&server, path, service, (&flags, patch))? {
            Ok(set) => return Ok(set),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let problem = Problem::new(format!("{server}: {}", refusal.unwrap_or_default()));
    let hint = "give the file of the service: --proto FILE, or --descriptors FILE";
    Err(Failure::environment(problem.with_hint(hint)))
}

/// Asks one version of reflection, within the time limits of the load. The inner error is its refusal.
fn asked(
    server: &str,
    path: &str,
    service: &str,
    (flags, of_load): (&PlanPatch, &PlanPatch),
) -> Result<Result<Vec<u8>, String>, Failure> {
    let (mut reflection, began) = (Reflection::of_service(service), clock::monotonic());
    loop {
        if clock::monotonic().since(began) > PATIENCE {
            return Ok(Err(format!("its reflection took more than {}", figure::nanos(PATIENCE))));
        }
        let questions = reflection.questions();
        if questions.is_empty() {
            return Ok(Ok(reflection.into_descriptor_set()));
        }
        // Names are texts, and their lengths below 128 are characters: those of a question fit into a plan.
        let Ok(body) = String::from_utf8(questions) else {
            return Ok(Err("a name of more than 100 bytes cannot be asked for".to_owned()));
        };
        let headers = json!({
            "content-type": "application/grpc+proto", "te": "trailers", "grpc-accept-encoding": "gzip",
        });
        let step = json!({ "post": path, "headers": headers, "body": body.replace("${", "$${") });
        let answers = answers_before(server, &[step], flags.clone(), of_load, LONGEST_ANSWER)?;
        if let Some(refusal) = answers.first().and_then(refusal) {
            return Ok(Err(refusal));
        }
        let body = answers.first().map(|answer| answer.body.as_slice()).unwrap_or_default();
        if let Err(error) = reflection.answered(body) {
            return Ok(Err(error.to_string()));
        }
    }
}

/// Why a server gave no description; `None` if it may have given one.
fn refusal(answer: &Answer) -> Option<String> {
    const UNIMPLEMENTED: usize = 12;
    if answer.status != 200 {
        return Some(format!("the server has no reflection: it answers with status {}", answer.status));
    }
    match read_status(answer.field("grpc-status")?)? {
        0 => None,
        UNIMPLEMENTED => Some("the server has no reflection".to_owned()),
        code => {
            let said = read_status_message(answer.field("grpc-message").unwrap_or_default());
            let said = if said.is_empty() { said } else { format!(": {said}") };
            Some(format!("its reflection failed with {}{said}", CODES[code]))
        }
    }
}
