//! Files of data: their cost, and rows that users keep.

use std::fmt::Write as _;

use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count};

/// Memory that a run may have more with a large file than with a small one: noise of the allocator, and the
/// blocks that files are read in.
const NOISE: u64 = 8 << 20;

/// The plan of a short run that draws rows of a CSV file with this many bytes, at least.
fn plan_with_data(folder: &Folder, sink: &Sink, bytes: usize, settings: &str) -> String {
    let mut text = String::from("id,name\n");
    for id in 0.. {
        if text.len() >= bytes {
            break;
        }
        writeln!(text, "{id},{}", "x".repeat(90)).expect("memory can be written to");
    }
    let csv = folder.write(&format!("{bytes}.csv"), text);
    let plan = format!(
        "targets: {{a: {}}}\nrun: {{connections: 4, threads: 2, iterations: 200}}\n\
         data: {{u: {{csv: {csv}{settings}}}}}\nscenarios: [{{steps: [{{get: \"/${{id}}\"}}]}}]\n",
        sink.url().trim_end_matches('/'),
    );
    folder.write(&format!("{bytes}.yaml"), plan)
}

#[test]
fn memory_does_not_grow_with_a_file_of_data() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let [small, large] = [10_000, 40 << 20].map(|bytes| {
        let plan = plan_with_data(&folder, &sink, bytes, "");
        let result = run(&format!("run {plan} -o json")).result();
        assert_balance(&result);
        assert_eq!(account(&result, "ok"), 200);
        count(&result, "/generator/rss_peak_bytes")
    });
    assert!(large < small + NOISE, "{small} and {large} bytes");
    sink.stop();
}

#[test]
fn a_file_with_fewer_rows_than_users_is_refused_before_the_run() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let few = plan_with_data(&folder, &sink, 200, ", per: user");
    let refused = run(&format!("run {few}"));
    let message = "fewer rows than the 4 users that each keep one";
    assert!(refused.stderr.contains(message) && refused.stdout.is_empty(), "{refused:?}");
    let enough = plan_with_data(&folder, &sink, 2000, ", per: user");
    assert_eq!(account(&run(&format!("run {enough} -o json")).result(), "ok"), 200);
    sink.stop();
}
