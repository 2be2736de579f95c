//! The spectrum of percentiles as HdrHistogram prints it, for its plotter and other readers of such files.
//!
//! One file has one histogram: that of the time that the model is about, response time in the open model and
//! service time in the closed one, of all steps together. Values are in milliseconds. The lines are those of
//! `outputPercentileDistribution` in Java, with five of them to each halving of the distance to 100 %.

use std::fmt::Write as _;

use plimsoll_histogram::{Histogram, hdr};

use crate::SavedRun;
use crate::contract::result::ModelKind;

/// Nanoseconds of a millisecond.
pub(crate) const MILLISECOND: f64 = 1e6;
/// Lines to each halving: the number of HdrHistogram's own tools.
const TICKS: u32 = 5;
/// Sub-buckets of a histogram with three significant digits, as HdrHistogram counts them.
const SUB_BUCKETS: u32 = 2048;

/// The file of a run that has histograms.
pub(crate) fn spectrum(run: &SavedRun) -> String {
    let total = run.total();
    let (times, censored) = match run.result.model.kind {
        ModelKind::Open => (&total.response_time, total.censored_response),
        ModelKind::Closed => (&total.service_time, total.censored_service),
    };
    let mut text = of(times);
    if censored.count > 0 {
        // The format has no lower bounds; readers of it pass over such lines.
        let (count, from) = (censored.count, censored.from.0 as f64 / MILLISECOND);
        let _ = writeln!(text, "#[Lower bounds = {count}, from {from:.3}: requests without an answer]");
    }
    text
}

fn of(histogram: &Histogram) -> String {
    let mut out =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let values = hdr::histogram(histogram.buckets().map(|bucket| (bucket.highest, bucket.count)));
    let max = histogram.max().unwrap_or(0);
    let mut seen = 0;
    for step in values.iter_quantiles(TICKS) {
        seen += step.count_since_last_iteration();
        // A bucket may end beyond the largest value, which is known exactly.
        let value = step.value_iterated_to().min(max) as f64 / MILLISECOND;
        let share = step.quantile_iterated_to();
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "{value:>12.3} {share:>14.12} {seen:>10}");
        if share < 1.0 {
            let _ = write!(out, " {:>14.2}", 1.0 / (1.0 - share));
        }
        out.push('\n');
    }
    let ms = |value: Option<f64>| value.unwrap_or(0.0) / MILLISECOND;
    let (mean, stdev, max) = (ms(histogram.mean()), ms(histogram.stdev()), max as f64 / MILLISECOND);
    let (count, buckets) = (histogram.count(), values.buckets());
    let _ = writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]");
    let _ = writeln!(out, "#[Max     = {max:>12.3}, Total count    = {count:>12}]");
    let _ = writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {SUB_BUCKETS:>12}]");
    out
}
