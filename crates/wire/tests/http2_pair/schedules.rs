//! Random schedules of everything that both sides may do.

use proptest::prelude::*;

use plimsoll_wire::http2::{ClientOptions, ErrorCode, FieldLimits, ServerOptions};

use crate::http2_pair::books::{ASKS, STATUSES};
use crate::http2_pair::steps::Step;
use crate::http2_pair::world::{Fate, World};

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop_oneof![Just(0), Just(1), 2_usize..40, 60_000_usize..70_000, Just(300_000)];
    let cut = || prop_oneof![1_usize..30, Just(1_000), Just(usize::MAX)];
    let code =
        prop_oneof![Just(ErrorCode::RefusedStream), Just(ErrorCode::InternalError), Just(ErrorCode::Cancel)];
    let answer = (0..STATUSES.len(), bytes()).prop_map(|(status, bytes)| Fate::Answer { status, bytes });
    let fate = prop_oneof![6 => answer, 1 => code.prop_map(Fate::Reset)];
    prop_oneof![
        30 => (0..ASKS, bytes(), any::<bool>())
            .prop_map(|(ask, bytes, capture)| Step::Submit { ask, bytes, capture }),
        6 => any::<usize>().prop_map(Step::Cancel),
        25 => cut().prop_map(Step::ToServer),
        25 => cut().prop_map(Step::ToClient),
        20 => (any::<usize>(), fate, any::<bool>())
            .prop_map(|(which, fate, slowly)| Step::Decide { which, fate, slowly }),
        10 => (any::<usize>(), bytes()).prop_map(|(which, bytes)| Step::More { which, bytes }),
        3 => Just(Step::Ping),
        1 => Just(Step::ServerLeaves),
        1 => Just(Step::ClientLeaves),
    ]
}

fn table_size() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(64), Just(300), Just(4096), Just(65_536)]
}

fn stream_window() -> impl Strategy<Value = u32> {
    // Smaller ones with contents of 300,000 bytes would take minutes: see the tables for these.
    prop_oneof![Just(1_000), Just(16_383), Just(65_535), Just(1 << 20), Just((1 << 30) - 1)]
}

fn connection_window() -> impl Strategy<Value = u32> {
    prop_oneof![Just(65_535), Just(100_000), Just((1 << 30) - 1)]
}

fn frame_size() -> impl Strategy<Value = u32> {
    prop_oneof![Just(16_384), Just(16_385), Just((1 << 24) - 1)]
}

const LIMITS: FieldLimits = FieldLimits { list_bytes: 64 * 1024, fields: 256 };

fn client_options() -> impl Strategy<Value = ClientOptions> {
    let sizes = (table_size(), table_size(), stream_window(), connection_window(), frame_size());
    (sizes, 1_u32..12).prop_map(|((header, encoder, stream, connection, frame), max_streams)| ClientOptions {
        header_table_size: header,
        encoder_table_size: encoder,
        stream_window: stream,
        connection_window: connection,
        max_frame_size: frame,
        max_streams,
        limits: LIMITS,
        interim: 32,
    })
}

fn server_options() -> impl Strategy<Value = ServerOptions> {
    let sizes = (table_size(), stream_window(), connection_window(), frame_size());
    (sizes, 0_u32..12).prop_map(|((table, stream, connection, frame), max_streams)| ServerOptions {
        header_table_size: table,
        max_streams,
        stream_window: stream,
        connection_window: connection,
        max_frame_size: frame,
        limits: LIMITS,
        keeps_content: false,
        tells_parts: false,
        extended_connect: false,
        timeout_field: "",
    })
}

proptest! {
    #[test]
    fn every_request_ends_once_and_as_it_has_to(
        client in client_options(),
        server in server_options(),
        steps in prop::collection::vec(step(), 0..250),
        cut in prop_oneof![Just(997_usize), Just(usize::MAX)],
    ) {
        let mut world = World::new(&client, &server);
        for step in steps {
            step.carry_out(&mut world);
        }
        world.settle(cut);
    }
}
