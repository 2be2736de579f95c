//! `plimsoll record`: a proxy whose recording becomes a plan file.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use plimsoll_core::Redaction;
use plimsoll_document::Problem;
use plimsoll_import::har;
use plimsoll_plan::{Disk, ImportCheck};
use plimsoll_record::{Authority, Hosts, Options, Recording, Unusable};
use plimsoll_system::clock;

use crate::args::record::RecordArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::{EndFile, write_private};
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
    let hosts = Hosts::new(args.hosts.iter().map(String::as_str)).map_err(|wrong| {
        let problem = Problem::new(format!("--host: {wrong}"));
        Failure::usage(
            problem.with_hint("api.example.test, *.example.test for all below it, or an IP address"),
        )
    })?;
    let recorded = (!args.hosts.is_empty()).then(|| hosts.to_string());
    let (authority, certificate) = authority(&folder, hosts)?;
    let authorities = args.cacert.as_deref().map(import::read).transpose()?;
    let file = args.file.display().to_string();
    if let Some(recorded) = recorded {
        say(&format!("recorded: {recorded}; other hosts pass through"));
    }
    say(&format!(
        "for https the client has to trust {} (until {}): curl --cacert,",
        certificate.display(),
        authority.last_day()
    ));
    say("  NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, or an authority in the settings of a browser of its own");
    say("  profile");
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
        let most = MOST_BODY >> 20;
        say(&format!("{url}: its body is left out: it is longer than {most} MiB, or the recording is full"));
    }
    match recording.left_out() {
        0 => {}
        1 => say("1 request more passed than there was room for: it is not in the recording"),
        many => say(&format!(
            "{many} requests more passed than there was room for: they are not in the recording"
        )),
    }
    if recording.is_empty() {
        let problem = Problem::new("nothing was recorded, and no plan was written");
        let hint = format!("set http://{} as the proxy of the client; curl takes --proxy", args.listen);
        return Err(Failure::environment(problem.with_hint(hint)));
    }
    let unchecked = har::import(text.as_bytes(), &args.reading.to_options());
    let imported = unchecked.and_then(|plan| plan.check(Path::new(""), &Disk, &ImportCheck::WITHOUT_FLAGS));
    let mut imported = imported.map_err(|problems| {
        let mut failure = Failure::usage(problems);
        if har.is_none()
            && let Some(path) = kept(&args.file, &text)
        {
            failure.problems.push(Problem::new(format!("the recording itself is in {}", path.display())));
        }
        failure
    })?;
    for note in &mut imported.notes {
        note.said = Redaction::default().in_text(&note.said).into_owned();
    }
    tell(&imported, false, false)?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    for body in &bodies {
        let file = EndFile { path: folder.join(&body.name), append: false, is_private: true, is_new: false };
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
    let file = EndFile { path, append: false, is_private: true, is_new: false };
    file.write(text.as_bytes()).ok()?;
    Some(file.path)
}

/// The authority of a folder for these hosts, which is made if there is none that can be used, and the file
/// of its certificate.
fn authority(folder: &Path, hosts: Hosts) -> Result<(Authority, PathBuf), Failure> {
    let stem = hosts.stem();
    let (certificate, key) = (folder.join(format!("{stem}.pem")), folder.join(format!("{stem}.key")));
    let failed = |path: &Path, wrong: &str| {
        let problem = Problem::new(format!("--ca: {}: {wrong}", path.display()));
        Failure::environment(
            problem.with_hint(format!("name a folder of its own, or move {stem}.pem and {stem}.key away")),
        )
    };
    prepare(folder).map_err(|error| failed(folder, &error.to_string()))?;
    let text = |path: &Path| match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error.to_string())),
    };
    let now = clock::unix();
    let found = match (text(&certificate)?, text(&key)?) {
        (None, None) => None,
        (None, Some(_)) => return Err(failed(&key, "there is no certificate of this key")),
        (Some(certificate), secret) => {
            let secret = secret.unwrap_or_default();
            let found = Authority::read(&certificate, &secret, hosts.clone(), now);
            Some(found.and_then(|found| match is_open(&key) {
                true => Err(Unusable::Stale("others could read its key".to_owned())),
                false => Ok(found),
            }))
        }
    };
    let why = match found {
        Some(Ok(authority)) => return Ok((authority, certificate)),
        Some(Err(Unusable::Foreign(wrong))) => return Err(failed(&certificate, &wrong)),
        Some(Err(Unusable::Stale(why))) => Some(why),
        None => None,
    };
    let made = Authority::generate(hosts, now).map_err(|wrong| failed(&key, &wrong))?;
    let written = write_private(&key, made.key().as_bytes())
        .and_then(|()| write_private(&certificate, made.certificate().as_bytes()));
    written.map_err(|error| failed(folder, &error.to_string()))?;
    if let Some(why) = why {
        let path = certificate.display();
        say(&format!(
            "{path} is made anew, because {why}: let clients trust the new one, and not the old one"
        ));
    }
    Ok((made, certificate))
}

/// Makes the folder of authorities, for its owner alone.
///
/// # Errors
/// The folder cannot be made, or has other files in it and others may write there.
fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    let is_shared = mode & 0o022 != 0;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    // A folder of something else is not ours to close.
    let is_ours = mode & 0o1000 == 0
        && fs::read_dir(folder)?.all(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("ca") && (name.ends_with(".pem") || name.ends_with(".key"))
            })
        });
    match is_ours {
        true => fs::set_permissions(folder, Permissions::from_mode(0o700)),
        false if is_shared => Err(io::Error::other("others could put an authority of theirs there")),
        false => Ok(()),
    }
}

/// Returns `true` if others than the owner may read a file.
fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// Tells the person, without secrets in URLs.
fn say(text: &str) {
    streams::to_stderr(&format!("record: {}\n", Redaction::default().in_text(text)));
}
