//! A pool of servers of which one dies, and is there again.

use crate::loopback::backends::on_each;
use crate::loopback::process::{Folder, Process, plimsoll};
use crate::loopback::sink::Sink;
use plimsoll_testkit::ports::{await_free, lasting_addresses};
use plimsoll_testkit::sink_log::{account, assert_balance, delivered};

/// Connections of the run, and so the largest number of requests in flight.
const CONNECTIONS: u64 = 6;

#[test]
fn the_load_of_a_killed_server_goes_to_the_other_one_and_comes_back_when_it_is_there_again() {
    on_each(|backend| {
        let server = |address: &str| Sink::telling_at(address, &format!("--backend {backend}"));
        let addresses = lasting_addresses::<2>();
        let [mut stays, mut dies] = addresses.each_ref().map(|address| server(address));
        let folder = Folder::new();
        let plan = format!(
            "targets: {{api: {{url: \"http://{}\", share: [\"{}\"], fail_back: true}}}}\n\
             run: {{connections: {CONNECTIONS}, rate: 500, duration: 60s}}\n\
             scenarios: [{{steps: [{{get: /}}]}}]\n",
            stays.endpoint, dies.endpoint
        );
        let plan = folder.write("plan.yaml", plan);
        let run = Process::start(plimsoll(&format!("run {plan} -o json --backend {backend}")));
        // Both of them have their part.
        stays.wait_for_load();
        dies.wait_for_load();
        let logged_before_death = dies.kill();
        // One of them has all of it.
        stays.wait_for_requests(1000);
        await_free(&[&addresses[1]]);
        let mut back = server(&addresses[1]);
        // And both have their part again.
        back.wait_for_load();
        run.signal("INT");
        let finished = run.finish();
        assert_eq!(finished.code, Some(130), "{finished:?}");
        let result = finished.result();
        assert_balance(&result);
        let (stayed, came_back) = (stays.stop().requests, back.stop().requests);
        // Only requests that were on their way to the server when it died are lost.
        let lost = account(&result, "failed") + account(&result, "timed_out");
        assert!(lost <= CONNECTIONS, "{lost} lost of {:?}", result["accounting"]);
        assert_eq!(account(&result, "in_flight_at_stop"), 0);
        // The dead server had the rest: requests that it has logged, and those that it had no time to log.
        let had = delivered(&result).checked_sub(stayed + came_back).expect("nobody saw more than was sent");
        assert!(had >= logged_before_death.saturating_sub(1), "{had} and {logged_before_death}");
        assert!(account(&result, "ok") >= stayed + came_back - 1, "{:?}", result["accounting"]);
    });
}
