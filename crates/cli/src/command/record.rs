//! `plimsoll record`: a proxy whose recording becomes a plan file.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use plimsoll_import::har;
use plimsoll_plan::Problem;
use plimsoll_record::{Authority, Options, Recording};

use crate::args::record::RecordArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::EndFile;
use crate::base::{environment, streams};
use crate::session::import::{self, tell};

/// Bytes of a body that are kept at most.
const MOST_BODY: usize = 16 << 20;

/// The command.
pub(crate) fn command(args: &RecordArgs) -> Result<Exit, Failure> {
    let plan = EndFile::new("FILE", &args.file)?.private();
    let har =
        args.har.as_deref().map(|path| EndFile::new("--har", path).map(EndFile::private)).transpose()?;
    let folder = args.ca.clone().or_else(|| environment::data_folder().map(|data| data.join("record")));
    let folder = folder.ok_or_else(|| {
        let problem = Problem::new("no folder for the certificate: neither XDG_DATA_HOME nor HOME names one");
        Failure::environment(problem.with_hint("name a folder: --ca FOLDER"))
    })?;
    let (authority, certificate) = authority(&folder)?;
    let authorities = args.cacert.as_deref().map(import::read).transpose()?;
    let file = args.file.display().to_string();
    say(&format!(
        "for https the client has to trust {}: curl --cacert, NODE_EXTRA_CA_CERTS,",
        certificate.display()
    ));
    say("  REQUESTS_CA_BUNDLE, or an authority in the settings of a browser of its own profile");
    let options = Options {
        listen: args.listen,
        authority,
        authorities,
        insecure: args.insecure,
        most_body: MOST_BODY,
    };
    let recorded = plimsoll_record::record(options, move |text| {
        say(text);
        if text.starts_with("listening") {
            say(&format!("set it as the client's HTTP proxy, and end with ^C: the plan goes to {file}"));
        }
    });
    let recording = recorded
        .map_err(|error| Failure::environment(Problem::new(error.to_string()).with_hint(error.hint())))?;
    finish(args, &recording, &plan, har.as_ref())
}

/// Writes the recording as it is, and as a plan.
fn finish(
    args: &RecordArgs,
    recording: &Recording,
    plan: &EndFile,
    har: Option<&EndFile>,
) -> Result<Exit, Failure> {
    let stem = args.file.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy());
    let (archive, bodies) = recording.to_har(env!("CARGO_PKG_VERSION"), &stem);
    let text = format!("{archive:#}\n");
    if let Some(har) = har {
        har.write(text.as_bytes()).map_err(Failure::environment)?;
    }
    for url in recording.without_body() {
        say(&format!("{url}: its body is longer than {} MiB, and is left out", MOST_BODY >> 20));
    }
    if recording.is_empty() {
        let problem = Problem::new("nothing was recorded, and no plan was written");
        let hint = format!("set http://{} as the proxy of the client; curl takes --proxy", args.listen);
        return Err(Failure::environment(problem.with_hint(hint)));
    }
    let imported = har::import(text.as_bytes(), &args.reading.to_options()).map_err(|problems| {
        let mut failure = Failure::usage(problems);
        if har.is_none()
            && let Some(path) = kept(&args.file, &text)
        {
            failure.problems.push(Problem::new(format!("the recording itself is in {}", path.display())));
        }
        failure
    })?;
    tell(&imported, false, false)?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    for body in &bodies {
        let file = EndFile { path: folder.join(&body.name), append: false, is_private: true };
        file.write(&body.content).map_err(Failure::environment)?;
    }
    plan.write(imported.document.to_yaml().as_bytes()).map_err(Failure::environment)?;
    let requests = match recording.len() {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    };
    say(&format!("{requests} in {}: try it with `plimsoll try {0}`", args.file.display()));
    Ok(Exit::Success)
}

/// Keeps a recording that is no plan beside where the plan would be.
fn kept(plan: &Path, text: &str) -> Option<PathBuf> {
    let path = plan.with_extension("har");
    let file = EndFile { path, append: false, is_private: true };
    file.write(text.as_bytes()).ok()?;
    Some(file.path)
}

/// The authority of a folder, which is made if there is none, and the file of its certificate.
fn authority(folder: &Path) -> Result<(Authority, PathBuf), Failure> {
    let (certificate, key) = (folder.join("ca.pem"), folder.join("ca.key"));
    let failed = |path: &Path, wrong: String| {
        let problem = Problem::new(format!("--ca: {}: {wrong}", path.display()));
        Failure::environment(
            problem.with_hint("name a folder that may be written, or remove ca.pem and ca.key"),
        )
    };
    let authority = match (fs::read_to_string(&certificate), fs::read_to_string(&key)) {
        (Ok(certificate), Ok(text)) => {
            Authority::read(&certificate, &text).map_err(|wrong| failed(&key, wrong))?
        }
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            let made = Authority::generate().map_err(|wrong| failed(&key, wrong))?;
            let written = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| {
                let mut options = fs::OpenOptions::new();
                // For its owner alone, from the first moment on.
                let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&key)?;
                io::Write::write_all(&mut file, made.key().as_bytes())?;
                fs::write(&certificate, made.certificate())
            });
            written.map_err(|error| failed(folder, error.to_string()))?;
            made
        }
        (Err(error), _) | (_, Err(error)) => return Err(failed(folder, error.to_string())),
    };
    Ok((authority, certificate))
}

fn say(text: &str) {
    streams::to_stderr(&format!("record: {text}\n"));
}
