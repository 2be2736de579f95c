//! Every combination of table sizes, windows and cuts that matters, with plain traffic.

use plimsoll_wire::http2::{ClientOptions, FieldLimits, ServerOptions};

use crate::http2_pair::books::ASKS;
use crate::http2_pair::world::{End, Fate, World};

const LIMITS: FieldLimits = FieldLimits { list_bytes: 64 * 1024, fields: 256 };

fn client(table: u32, window: u32, max_streams: u32) -> ClientOptions {
    ClientOptions {
        header_table_size: table,
        encoder_table_size: table,
        stream_window: window,
        connection_window: window,
        max_frame_size: 16_384,
        max_streams,
        limits: LIMITS,
        interim: 32,
    }
}

fn server(table: u32, window: u32, max_streams: u32) -> ServerOptions {
    ServerOptions {
        header_table_size: table,
        max_streams,
        stream_window: window,
        connection_window: window,
        max_frame_size: 16_384,
        limits: LIMITS,
        keeps_content: false,
        tells_parts: false,
        extended_connect: false,
        timeout_field: "",
    }
}

/// Submits `requests` requests of all kinds in turn. The world settles after every fourth one, and at the
/// end.
fn exchange(world: &mut World, requests: usize, bytes: usize, cut: usize) {
    for number in 0..requests {
        world.submit(number % ASKS, bytes, number % 3 == 0);
        if number % 4 == 3 {
            world.settle(cut);
        }
    }
    world.settle(cut);
}

#[test]
fn tables_and_windows_of_any_size_carry_everything() {
    for (own, other) in [(0, 0), (64, 64), (4096, 4096), (0, 4096), (4096, 0), (64, 4096), (100_000, 100)] {
        for window in [0, 1, 7, 65_535, (1 << 30) - 1] {
            let mut world = World::new(&client(own, window, 10), &server(other, window, 10));
            exchange(&mut world, 60, 30, usize::MAX);
            assert_eq!(world.count(|end| matches!(end, End::Response { .. })), 60, "{own} {other} {window}");
        }
    }
}

#[test]
fn single_bytes_carry_everything() {
    for (table, window) in [(0, 1), (64, 65_535), (4096, 1 << 20)] {
        let mut world = World::new(&client(table, window, 10), &server(table, window, 10));
        exchange(&mut world, 40, 40, 1);
        assert_eq!(world.count(|end| matches!(end, End::Response { .. })), 40);
    }
}

#[test]
fn large_content_goes_both_ways_at_once() {
    for window in [1_000, 65_535, 1 << 20] {
        let mut world = World::new(&client(4096, window, 10), &server(4096, window, 10));
        for round in 0..8 {
            world.submit(1, if round % 2 == 0 { 300_000 } else { 123_456 }, false);
        }
        for _ in 0..3_000 {
            world.deliver_to_server(20_000);
            world.deliver_to_client(20_000);
            world.decide(1, Fate::Answer { status: 3, bytes: 300_000 }, false);
        }
        world.settle(usize::MAX);
        let whole = |end| end == End::Response { status: 201, bytes: 300_000 };
        assert_eq!(world.count(whole), 8, "{window}");
    }
}

#[test]
fn what_comes_before_the_servers_limit_is_known_is_refused() {
    let mut world = World::new(&client(4096, 65_535, 10), &server(4096, 65_535, 4));
    for _ in 0..10 {
        world.submit(0, 0, false);
    }
    world.settle(usize::MAX);
    assert_eq!(world.count(|end| end == End::Refused), 6);
    assert_eq!(world.client.server_limit(), Some(4));
    exchange(&mut world, 20, 0, 100);
    assert_eq!(world.count(|end| end == End::Refused), 6, "it is known now");
    assert_eq!(world.count(|end| matches!(end, End::Response { .. })), 24);
}

#[test]
fn many_rounds_leave_nothing_behind() {
    let mut world = World::new(&client(4096, 1 << 20, 100), &server(4096, 1 << 20, 100));
    for _ in 0..20 {
        for number in 0..100 {
            world.submit(number % ASKS, 10, number % 2 == 0);
        }
        world.settle(usize::MAX);
    }
    assert_eq!(world.count(|end| matches!(end, End::Response { .. })), 2_000);
}
