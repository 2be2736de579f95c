//! Files about the machine as a whole.

use plimsoll_core::Nanos;
use plimsoll_metrics::CoreUse;

use super::{lines, number, ticks, words};

/// The processors of `/proc/stat`, in its order: since the machine was started.
pub fn cores(bytes: &[u8]) -> impl Iterator<Item = CoreUse> {
    // The first line, "cpu", is the sum.
    lines(bytes).filter_map(|line| {
        let rest = line.strip_prefix(b"cpu")?;
        rest.first().is_some_and(u8::is_ascii_digit).then(|| core(rest)).flatten()
    })
}

/// One line without its `cpu`: proc_stat(5).
fn core(line: &[u8]) -> Option<CoreUse> {
    let mut fields = words(line).skip(1).map(|word| number(word).map(ticks));
    let (user, nice, system) = (fields.next()??, fields.next()??, fields.next()??);
    let (_idle, _waiting) = (fields.next()??, fields.next()??);
    let (irq, softirq, steal) = (fields.next()??, fields.next()??, fields.next()??);
    Some(CoreUse { busy: user + nice + system + irq + softirq, softirq, steal })
}

/// Total time for which some task waited for a processor: `/proc/pressure/cpu`, in microseconds there.
pub fn pressure(bytes: &[u8]) -> Option<Nanos> {
    let line = lines(bytes).find(|line| line.starts_with(b"some "))?;
    let total = words(line).find_map(|word| word.strip_prefix(b"total="))?;
    Some(Nanos(number(total)?.saturating_mul(1_000)))
}

/// The mean load of the last minute in hundredths: `/proc/loadavg`.
pub fn load_hundredths(bytes: &[u8]) -> Option<u64> {
    let word = words(bytes).next()?;
    let point = word.iter().position(|byte| *byte == b'.')?;
    let (whole, part) = (number(&word[..point])?, &word[point + 1..]);
    let part = (part.len() == 2).then(|| number(part)).flatten()?;
    whole.checked_mul(100)?.checked_add(part)
}

/// Returns the number of local ports in `ip_local_port_range`.
pub fn port_count(bytes: &[u8]) -> Option<u64> {
    let mut ends = words(bytes).map(number);
    let (first, last) = (ends.next()??, ends.next()??);
    last.checked_sub(first)?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_has_its_line() {
        let text = b"cpu  30 2 20 500 9 1 4 6 0 0\ncpu0 10 1 20 250 9 0 3 4 0 0\n\
                     cpu1 20 1 0 250 0 1 1 2 0 0\nintr 5 0\n";
        let ms = Nanos::from_millis;
        let found: Vec<CoreUse> = cores(text).collect();
        assert_eq!(
            found,
            [
                CoreUse { busy: ms(340), softirq: ms(30), steal: ms(40) },
                CoreUse { busy: ms(230), softirq: ms(10), steal: ms(20) }
            ]
        );
        assert_eq!(cores(b"cpu0 1 2 3").count(), 0);
        assert_eq!(cores(b"cpufreq 1 2 3 4 5 6 7 8").count(), 0);
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let text = b"some avg10=14.92 avg60=12.45 avg300=8.47 total=8676186789\n\
                     full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(pressure(text), Some(Nanos(8_676_186_789_000)));
        assert_eq!(pressure(b"full avg10=0.00 total=5\n"), None);
    }

    #[test]
    fn the_load_has_two_decimals() {
        assert_eq!(load_hundredths(b"3.10 1.86 1.52 3/110 23101\n"), Some(310));
        for bad in [&b"3 1"[..], b"3.1 2", b"", b"x.10", b".10"] {
            assert_eq!(load_hundredths(bad), None);
        }
    }

    #[test]
    fn ports_are_counted_with_both_ends() {
        assert_eq!(port_count(b"32768\t60999\n"), Some(28_232));
        assert_eq!((port_count(b"5 4"), port_count(b"7")), (None, None));
    }
}
