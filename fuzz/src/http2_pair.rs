//! A client and a server, in a schedule that the input chooses: every request ends once and as it has to. See
//! `crates/wire/tests/http2_pair`, whose world this is.

#[path = "../../crates/wire/tests/http2_pair/books.rs"]
mod books;
#[path = "../../crates/wire/tests/http2_pair/steps.rs"]
mod steps;
#[path = "../../crates/wire/tests/http2_pair/world.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod world;

use plimsoll_wire::http2::{ClientOptions, ErrorCode, FieldLimits, ServerOptions};

use self::books::{ASKS, STATUSES};
use self::steps::Step;
use self::world::{Fate, World};

/// Bytes at the front of an input that choose the options.
const CHOICE_BYTES: usize = 8;

const LIMITS: FieldLimits = FieldLimits { list_bytes: 64 * 1024, fields: 256 };

fn of<const N: usize>(values: [u32; N], choice: u8) -> u32 {
    values[usize::from(choice) % N]
}

fn tables(choice: u8) -> u32 {
    of([0, 64, 300, 4096, 65_536], choice)
}

/// Small windows only with small content: see [`content`].
fn window(choice: u8) -> u32 {
    of([0, 1, 7, 1_000, 65_535, 1 << 20], choice)
}

fn content(window: u32, choice: u8) -> usize {
    if window < 1_000 { usize::from(choice) } else { of([0, 1, 100, 70_000, 300_000], choice) as usize }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&choices, steps)) = data.split_first_chunk::<CHOICE_BYTES>() else { return };
    let [c0, c1, c2, c3, c4, c5, c6, c7] = choices;
    let (client_window, server_window) = (window(c2), window(c3));
    let client = ClientOptions {
        header_table_size: tables(c0),
        encoder_table_size: tables(c1),
        stream_window: client_window,
        connection_window: 65_535 + u32::from(c2),
        max_frame_size: 16_384 + u32::from(c4),
        max_streams: 1 + u32::from(c5 & 15),
        limits: LIMITS,
        interim: 32,
    };
    let server = ServerOptions {
        header_table_size: tables(c4),
        max_streams: u32::from(c5 >> 4),
        stream_window: server_window,
        connection_window: 65_535 + u32::from(c3),
        max_frame_size: 16_384 + u32::from(c0),
        limits: LIMITS,
        keeps_content: false,
        extended_connect: false,
        timeout_field: "",
        tells_parts: false,
    };
    let mut world = World::new(&client, &server);
    let (steps, _) = steps.as_chunks::<3>();
    for &[kind, a, b] in steps {
        let (which, cut) = (usize::from(a), [usize::from(b) + 1, usize::MAX][usize::from(a) % 2]);
        let fate = match b {
            250.. => Fate::Reset(ErrorCode::from_value(u32::from(b - 245))),
            _ => {
                Fate::Answer { status: usize::from(b) % STATUSES.len(), bytes: content(client_window, b / 4) }
            }
        };
        let step = match kind {
            0..60 => {
                Step::Submit { ask: which % ASKS, bytes: content(server_window, b), capture: kind % 2 == 0 }
            }
            60..75 => Step::Cancel(which),
            75..130 => Step::ToServer(cut),
            130..180 => Step::ToClient(cut),
            180..230 => Step::Decide { which, fate, slowly: kind % 3 == 0 },
            230..250 => Step::More { which, bytes: content(client_window, b) },
            250..254 => Step::Ping,
            254 => Step::ServerLeaves,
            255 => Step::ClientLeaves,
        };
        step.carry_out(&mut world);
    }
    world.settle(if c6 == 0 { 1 + usize::from(c7) } else { usize::MAX });
}
