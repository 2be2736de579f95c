//! `plimsoll demo`: a sink in this process, a closed and an open run against it.

use plimsoll_core::Nanos;
use plimsoll_document::RawValue;
use plimsoll_driver::Endpoint;
use plimsoll_plan::{BackendChoice, Disk, Plan, PlanPatch};
use plimsoll_report::Style;
use plimsoll_targets::{Delay, SinkOptions};

use crate::args::control::ControlSpec;
use crate::args::demo::DemoArgs;
use crate::args::live::LiveArgs;
use crate::args::output::TableOutputFormat;
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{environment, stdout};
use crate::session::outputs::Outputs;
use crate::session::{backend, built_in_sink, run};

/// Length of each run.
const LENGTH: &str = "5s";
/// Arrivals per second of the open run: well below the limit of the slowest machine.
const RATE: &str = "2000";
/// Connections of the closed run.
const CONNECTIONS: &str = "16";
/// Median time that the sink takes for a reply. Not the fastest it can: then the generator, on the same
/// machine, would be the limit, and the report would have to say so.
const MEDIAN: Nanos = Nanos::from_millis(2);
/// Spread of that time: the 99th percentile is exp(2.33 * 0.4) = 2.5 times the median.
const SIGMA: f64 = 0.4;

const EXPLANATION: &str = "\
What to look at:
  1. The first line is the outcome of the run, the second the validity of the measurement: if this machine was
     the bottleneck, it says so.
  2. Response time counts from when a request should have started, service time from when it was sent; the
     start lag between them is this program's own. A server that stalls shows in the response time.
  3. With --long the accounts are there, too: what was scheduled is started, dropped or never started; what
     was started is ok, failed, timed out or in flight. Next: plimsoll run http://your.server/ --rate 1000
";

pub(crate) fn command(args: &DemoArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    let mut options = SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
    options.delay = Delay::Lognormal { median: MEDIAN, sigma: SIGMA };
    let sink = built_in_sink::start(options, backend::chosen(BackendChoice::Auto)?)?;
    let url = format!("http://{}/", sink.endpoint());
    let closed = vec![("--connections", CONNECTIONS)];
    let open = vec![("--rate", RATE)];
    let mut worst = Exit::Success;
    for load in [closed, open] {
        let plan = Plan::resolve(patch(&url, &load), &Disk).map_err(Failure::usage)?;
        let mut line = vec!["plimsoll".to_owned(), "run".to_owned(), url.clone()];
        line.extend(
            load.iter().chain(&[("--duration", LENGTH)]).flat_map(|(f, v)| [f.to_string(), v.to_string()]),
        );
        let control = ControlSpec { keys: true, screen: true, ..ControlSpec::default() };
        let live = (&LiveArgs::default(), &control);
        let before =
            run::RunPreparation { command_line: line, look: Some(look), ..run::RunPreparation::default() };
        let output = args.output.for_run();
        let outputs = Outputs::of(&output)?;
        let outcome = run::phases::carry_out(plan, &output, live, before)?;
        run::write(&outcome, &outputs, style)?;
        let exit = outcome.exit;
        if args.output.output == TableOutputFormat::Text {
            stdout::to_stdout(|out| out.write_all(b"\n"))?;
        }
        match exit {
            Exit::Success => {}
            Exit::Interrupted(_) => return Ok(exit),
            _ => worst = exit,
        }
    }
    sink.stop();
    if args.output.output == TableOutputFormat::Text {
        stdout::to_stdout(|out| out.write_all(EXPLANATION.as_bytes()))?;
    }
    Ok(worst)
}

/// Makes the patch that the flags would give.
fn patch(url: &str, load: &[(&'static str, &'static str)]) -> PlanPatch {
    let value = |flag: &'static str| {
        load.iter().find(|(name, _)| *name == flag).map(|(name, value)| RawValue::new(*name, *value))
    };
    PlanPatch {
        urls: vec![RawValue::new("URL", url)],
        connections: value("--connections"),
        rate: value("--rate"),
        duration: Some(RawValue::new("--duration", LENGTH)),
        default_seed: environment::surroundings().seed,
        ..PlanPatch::default()
    }
}
