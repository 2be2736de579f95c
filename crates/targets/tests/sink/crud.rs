//! The service of resources.

use plimsoll_driver::KernelBackend;
use plimsoll_targets::{Crud, FaultModel, Faults, Intent, Location, Service, SinkOptions};
use plimsoll_testkit::on_every_backend;
use plimsoll_wire::http2::ClientOptions;

use crate::sink::client::Client;
use crate::sink::streams::{Extra, Streams};
use crate::sink::{assert_identity, plain, start};

on_every_backend! {
    resources_live_in_both_protocols,
    transactions_over_many_streams_leave_nothing,
    locations_can_be_absolute,
    the_number_of_resources_is_bounded,
    what_fails_changes_nothing,
}

fn crud(crud: Crud) -> SinkOptions {
    SinkOptions { service: Service::Crud(crud), ..plain() }
}

const POST: Extra<'static> = Extra { fields: &[("content-type", "application/json")], body: b"{\"a\":1}" };

/// A request of HTTP/1.1 without a body.
fn line(method: &str, path: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nhost: sink\r\n\r\n").into_bytes()
}

fn resources_live_in_both_protocols(backend: KernelBackend) {
    let sink = start(SinkOptions { threads: 2, ..crud(Crud::default()) }, backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let plain = client.connect(sink.endpoint());
    // Created over HTTP/2, used over both.
    let request = streams.request("POST", "/nudm-ee/v2/imsi-1/subscriptions/?x=1", POST);
    let created = streams.reply(&mut client, request);
    assert_eq!((created.status, created.field("content-length")), (201, Some("0")));
    let location = created.field("location").unwrap().to_owned();
    let id = location.strip_prefix("/nudm-ee/v2/imsi-1/subscriptions/").unwrap().to_owned();
    client.send(plain, &line("GET", &location));
    let found = client.response(plain);
    assert_eq!((found.status, found.body), (200, format!("{{\"id\":\"{id}\"}}").into_bytes()));
    assert!(found.head.contains("content-type: application/json\r\n"), "{}", found.head);
    let moved = location.replace("imsi-1", "imsi-2");
    let mut status = |client: &mut Client, method: &str, path: &str| {
        let request = streams.request(method, path, Extra::default());
        let reply = streams.reply(client, request);
        assert_eq!(reply.field("allow").is_some(), reply.status == 405);
        assert_eq!(reply.field("content-length").is_some(), reply.status != 204);
        reply.status
    };
    for (method, path, expected) in [
        ("PATCH", location.as_str(), 204),
        ("PUT", &location, 204),
        ("GET", &location, 200),
        ("HEAD", &location, 200),
        ("BREW", &location, 405),
        ("PATCH", &moved, 404),
        ("GET", "/nudm-ee/v2/imsi-1/subscriptions/", 404),
        ("DELETE", "/", 404),
    ] {
        assert_eq!(status(&mut client, method, path), expected, "{method} {path}");
    }
    client.send(plain, &line("DELETE", &location));
    let deleted = client.response(plain);
    assert_eq!(deleted.status, 204);
    assert!(!deleted.head.contains("content-length"), "{}", deleted.head);
    for method in ["GET", "PATCH", "DELETE"] {
        assert_eq!(status(&mut client, method, &location), 404, "{method}");
    }
    // Created over HTTP/1.1.
    client.send(plain, b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc");
    let created = client.response(plain);
    assert_eq!(created.status, 201);
    let location = created.head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    assert_eq!(status(&mut client, "PUT", location), 204);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.counter, report.resources), (16, 16, 1));
    let statuses: Vec<_> = report.truth.iter().map(|row| row.status.unwrap()).collect();
    assert_eq!(statuses[..3], [201, 200, 204], "the log has what the service answered");
}

fn transactions_over_many_streams_leave_nothing(backend: KernelBackend) {
    let sink = start(crud(Crud::default()), backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let mut locations: Vec<String> = Vec::new();
    for _ in 0..3 {
        let sent: Vec<_> =
            (0..50).map(|user| streams.request("POST", &format!("/users/{user}/items"), POST)).collect();
        for (user, request) in sent.into_iter().enumerate() {
            let reply = streams.reply(&mut client, request);
            let location = reply.field("location").unwrap();
            assert!(location.starts_with(&format!("/users/{user}/items/")), "{location}");
            locations.push(location.to_owned());
        }
        for method in ["PATCH", "DELETE"] {
            let sent: Vec<_> =
                locations.iter().map(|location| streams.request(method, location, POST)).collect();
            for request in sent {
                assert_eq!(streams.reply(&mut client, request).status, 204);
            }
        }
        locations.clear();
    }
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.resources), (450, 0));
}

fn locations_can_be_absolute(backend: KernelBackend) {
    for authority in [None, Some("crud.test:99")] {
        let location = Location::Absolute(authority.map(str::to_owned));
        let sink = start(crud(Crud { location, ..Crud::default() }), backend);
        let mut client = Client::new();
        let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
        let request = streams.request("POST", "/a", POST);
        let created = streams.reply(&mut client, request);
        let location = created.field("location").unwrap();
        let listens = sink.endpoint().to_string();
        let origin = format!("http://{}/a/", authority.unwrap_or(&listens));
        let id = location.strip_prefix(&origin).unwrap();
        // As a path, and as a client would send it to a proxy.
        for target in [format!("/a/{id}"), location.to_owned()] {
            let conn = client.connect(sink.endpoint());
            client.send(conn, &line("GET", &target));
            assert_eq!(client.response(conn).status, 200, "{target}");
        }
        assert_identity(&sink.stop());
    }
}

fn the_number_of_resources_is_bounded(backend: KernelBackend) {
    let sink = start(crud(Crud { max_resources: 2, ..Crud::default() }), backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let sent: Vec<_> = (0..3).map(|_| streams.request("POST", "/", POST)).collect();
    let replies: Vec<_> = sent.into_iter().map(|request| streams.reply(&mut client, request)).collect();
    assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [201, 201, 507]);
    assert_eq!(replies[2].field("location"), None);
    let request = streams.request("DELETE", replies[0].field("location").unwrap(), Extra::default());
    assert_eq!(streams.reply(&mut client, request).status, 204);
    let request = streams.request("POST", "/", POST);
    assert_eq!(streams.reply(&mut client, request).status, 201);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.resources), (5, 2));
}

fn what_fails_changes_nothing(backend: KernelBackend) {
    let faults = Faults { drop: 0.2, statuses: vec![(404, 0.3)], ..Faults::default() };
    let options = SinkOptions { faults, ..crud(Crud::default()) };
    let law = FaultModel::new(&options);
    let sink = start(options, backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let sent: Vec<_> = (0..60).map(|_| streams.request("POST", "/a", POST)).collect();
    let mut created = 0;
    for request in sent {
        match law.fate(u64::from(request)).intent {
            Intent::Reply => {
                assert_eq!(streams.reply(&mut client, request).status, 201);
                created += 1;
            }
            Intent::Status(status) => {
                let reply = streams.reply(&mut client, request);
                assert_eq!((reply.status, reply.field("location")), (status, None));
            }
            _ => {}
        }
    }
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.resources), (created, created));
    assert!(created > 0 && report.dropped > 0 && report.statuses > 0);
}
