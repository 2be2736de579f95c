//! Everything that shows a run while it goes on: on this machine, or on a fleet.

use plimsoll_engine::{Control, Progress};
use plimsoll_plan::Plan;
use plimsoll_report::RunContext;

use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::base::color::Theme;
use crate::base::environment;
use crate::base::failure::Failure;
use crate::base::messages::Notify;
use crate::session::control::steering::Steerers;
use crate::session::live::exports::Exporters;
use crate::session::live::fault_log::FaultLog;
use crate::session::live::growing_result::{GrowingResult, IntervalFeed};
use crate::session::live::progress::ProgressLine;
use crate::session::live::screen::{self, Screen, ScreenHandle};
use crate::session::live::stats::Statistics;
use crate::session::observer::Observer;

/// The live screen of a run, if it has one, before it is shown.
pub(crate) struct Stage(Option<(ScreenHandle, Theme)>);

impl Stage {
    /// The screen, where flags, statistics and the terminal leave room for one.
    pub(crate) fn of(look: Option<Theme>, spec: &ControlSpec, quiet: bool, statistics: &Statistics) -> Self {
        let shows = spec.keys && spec.screen && !quiet && !statistics.is_on_stderr();
        let look = look.filter(|_| shows && screen::is_possible());
        Self(look.map(|look| (ScreenHandle::default(), look)))
    }

    /// Returns `true` if there will be a screen.
    pub(crate) const fn is_there(&self) -> bool {
        self.0.is_some()
    }
}

/// Everything that looks at a run: screen, line of progress, statistics, control port, exporters.
pub(crate) struct View {
    growing: GrowingResult,
    stage: Stage,
    statistics: Statistics,
    steerers: Steerers,
    exporters: Exporters,
    is_listening: bool,
    is_quiet: bool,
    shown: Option<Shown>,
}

/// The part that there is once the run begins.
struct Shown {
    line: ProgressLine,
    screen: Option<Screen>,
    feed: Option<IntervalFeed>,
}

impl View {
    /// Starts what listens before the run begins.
    ///
    /// # Errors
    /// An address cannot be listened on, or there is no thread.
    pub(crate) fn start(
        plan: &Plan,
        control: &Control,
        (live, spec): (&LiveArgs, &ControlSpec),
        (stage, statistics): (Stage, Statistics),
        faults: FaultLog,
        quiet: bool,
        say: &Notify,
    ) -> Result<Self, Failure> {
        let growing = GrowingResult::with_faults(faults);
        let handle = stage.0.as_ref().map(|(handle, _)| handle);
        let steerers = Steerers::start(spec, quiet, plan, control, say, (handle, &growing))
            .map_err(Failure::environment)?;
        let exports = live.exports.to_spec(&environment::otlp()).map_err(Failure::usage)?;
        let exporters = Exporters::start(&exports, plan, say).map_err(Failure::environment)?;
        Ok(Self {
            growing,
            stage,
            statistics,
            steerers,
            exporters,
            is_listening: spec.listen.is_some(),
            is_quiet: quiet,
            shown: None,
        })
    }

    /// The result so far, as the control port serves it.
    pub(crate) const fn growing(&self) -> &GrowingResult {
        &self.growing
    }

    /// Shows the run, which begins now; with a line for each interval if it is `periodic`.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn begin(
        &mut self,
        plan: &Plan,
        context: &RunContext,
        control: &Control,
        periodic: bool,
    ) -> std::io::Result<()> {
        let stage = self.stage.0.as_ref().filter(|_| !periodic);
        let screen = stage.map(|(handle, look)| Screen::open(handle, plan, control, *look)).transpose()?;
        let feed = self.is_listening.then(|| self.growing.begin(plan, context)).transpose()?;
        let silent = self.is_quiet || self.statistics.is_on_stderr() || screen.is_some();
        let line = if periodic { ProgressLine::lines() } else { ProgressLine::new(silent) };
        self.shown = Some(Shown { line, screen, feed });
        Ok(())
    }

    /// Ends everything but the exporters, which still have to export the end of the run.
    pub(crate) fn close(self) -> Exporters {
        let Self { shown, steerers, statistics, exporters, .. } = self;
        drop((shown, steerers));
        statistics.finish();
        exporters
    }
}

impl Observer for View {
    fn observe(&mut self, progress: &Progress<'_>) {
        self.statistics.add(progress);
        if let Some(Shown { line, screen, feed }) = &mut self.shown {
            line.show(progress);
            screen.iter().for_each(|screen| screen.show(progress));
            feed.iter().for_each(|feed| feed.note(progress));
        }
        self.steerers.note(progress);
        self.exporters.note(progress);
    }
}
