//! Equal seeds give equal bytes, on any thread and in any order.

use plimsoll_synth::{Format, Kind, Shape, Spec, Synthesizer};

use crate::synth::{NOW, spec};

/// Every valid spec of two records a batch or so, with all settings that could make batches depend on each
/// other.
pub(crate) fn all_specs() -> Vec<Spec> {
    let kinds = Kind::ALL.into_iter().flat_map(|kind| Shape::ALL.map(|shape| (kind, shape)));
    let specs = kinds.flat_map(|(kind, shape)| {
        Format::ALL.map(|format| {
            let churn = if kind == Kind::Metrics { 0.1 } else { 0.0 };
            Spec { kind, shape, format, churn, batch_size: 37, ..Spec::default() }
        })
    });
    specs.filter(|spec| spec.validate().is_ok()).collect()
}

fn moment(index: u64) -> u64 {
    NOW + index * 77_000_000
}

#[test]
fn threads_and_orders_make_no_difference() {
    for spec in all_specs() {
        let mut one = Synthesizer::new(&spec, 11).unwrap();
        let expected: Vec<Vec<u8>> = (0..24)
            .map(|index| {
                let mut out = Vec::new();
                one.batch(index, moment(index), &mut out);
                out
            })
            .collect();
        let (spec, expected) = (&spec, &expected);
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                scope.spawn(move || {
                    let mut another = Synthesizer::new(spec, 11).unwrap();
                    let mut out = Vec::new();
                    // 7 and 24 have no common factor: all of them, in an order of each thread's own.
                    for index in (0..24).map(|step| (step * 7 + thread * 5) % 24) {
                        another.batch(index, moment(index), &mut out);
                        assert!(out == expected[index as usize], "{spec:?} {index}");
                    }
                });
            }
        });
        let differs = |seed, index, now| {
            let mut out = Vec::new();
            Synthesizer::new(spec, seed).unwrap().batch(index, now, &mut out);
            out != expected[3]
        };
        assert!(!differs(11, 3, moment(3)));
        assert!(differs(12, 3, moment(3)) && differs(11, 4, moment(3)) && differs(11, 3, moment(4)));
    }
}

#[test]
fn a_synthesizer_can_be_sent_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Synthesizer::new(&spec("{}"), 1).unwrap());
}

#[test]
fn the_last_batch_that_there_can_be_is_made() {
    for kind in Kind::ALL {
        let spec = Spec { kind, ..spec("{}") };
        let mut out = Vec::new();
        Synthesizer::new(&spec, u64::MAX).unwrap().batch(u64::MAX, NOW, &mut out);
        assert_eq!(crate::synth::decoders::columnar(&out).1.len(), 1_000);
    }
}
