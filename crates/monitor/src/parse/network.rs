//! Files about the network.

use super::{hexadecimal, lines, number, words};

/// A figure of `/proc/net/snmp` or `/proc/net/netstat`: pairs of lines, the first of which has the names and
/// the second the values, both behind the protocol's name (`Tcp:`, `TcpExt:`).
pub fn figure(bytes: &[u8], protocol: &[u8], name: &[u8]) -> Option<u64> {
    let mut of_protocol = lines(bytes).filter(|line| words(line).next() == Some(protocol));
    let (names, values) = (of_protocol.next()?, of_protocol.next()?);
    let (_, value) = words(names).zip(words(values)).skip(1).find(|(found, _)| *found == name)?;
    number(value)
}

/// A figure of `/proc/net/sockstat`: `TCP: inuse 5 orphan 0 tw 3 …`.
pub fn sockets(bytes: &[u8], protocol: &[u8], name: &[u8]) -> Option<u64> {
    let line = lines(bytes).find(|line| words(line).next() == Some(protocol))?;
    let mut fields = words(line).skip(1);
    while let (Some(found), Some(value)) = (fields.next(), fields.next()) {
        if found == name {
            return number(value);
        }
    }
    None
}

/// Packets that the devices of `/proc/net/dev` dropped or found broken, in both directions, over all of them.
pub fn device_drops(bytes: &[u8]) -> Option<u64> {
    // Behind the name: bytes, packets, errs, drop and four more, of each direction.
    let of_device = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let mut fields = words(&line[colon + 1..]).map(number);
        let (received, dropped) = (fields.nth(2)??, fields.next()??);
        let (sent, not_sent) = (fields.nth(6)??, fields.next()??);
        [dropped, sent, not_sent].into_iter().try_fold(received, u64::checked_add)
    };
    let mut devices = lines(bytes).filter_map(of_device);
    let first = devices.next()?;
    devices.try_fold(first, u64::checked_add)
}

/// Returns `true` if the socket of a line of `/proc/net/tcp` or `tcp6` listens.
pub fn is_listening(line: &[u8]) -> bool {
    words(line).nth(3) == Some(b"0A")
}

/// The inode of the socket of a line of `/proc/net/tcp` or `tcp6`, if it listens on one of the ports.
pub fn listener(line: &[u8], ports: &[u16]) -> Option<u64> {
    let mut fields = words(line);
    let local = fields.nth(1)?;
    let colon = local.iter().rposition(|byte| *byte == b':')?;
    let port = u16::try_from(hexadecimal(&local[colon + 1..])?).ok()?;
    (is_listening(line) && ports.contains(&port)).then(|| number(fields.nth(7)?)).flatten()
}

/// The inode of the socket of a line of `/proc/net/unix`, if it is bound to that path.
pub fn unix_listener(line: &[u8], path: &[u8]) -> Option<u64> {
    let mut fields = words(line);
    let inode = fields.nth(6)?;
    (fields.next()? == path).then(|| number(inode)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &[u8] = b"Ip: Forwarding DefaultTTL\nIp: 2 64\n\
        Tcp: RtoMin MaxConn OutSegs RetransSegs InErrs\nTcp: 200 -1 198533017 108185 0\n";

    #[test]
    fn figures_are_found_by_protocol_and_name() {
        assert_eq!(figure(SNMP, b"Tcp:", b"RetransSegs"), Some(108_185));
        assert_eq!(figure(SNMP, b"Ip:", b"DefaultTTL"), Some(64));
        // Some are negative: no count.
        assert_eq!(figure(SNMP, b"Tcp:", b"MaxConn"), None);
        assert_eq!(figure(SNMP, b"Ip:", b"RetransSegs"), None);
        assert_eq!(figure(b"Tcp: OutSegs\n", b"Tcp:", b"OutSegs"), None);
    }

    #[test]
    fn sockets_are_found_by_name() {
        let text = b"sockets: used 21\nTCP: inuse 1 orphan 0 tw 7 alloc 1 mem 276\nUDP: inuse 4 mem 0\n";
        assert_eq!(sockets(text, b"TCP:", b"tw"), Some(7));
        assert_eq!(sockets(text, b"UDP:", b"inuse"), Some(4));
        assert_eq!(sockets(text, b"UDP:", b"tw"), None);
    }

    #[test]
    fn drops_of_all_devices_add_up() {
        let text =
            b"Inter-|   Receive                      |  Transmit\n face |bytes packets errs drop fifo\n\
            lo: 125 198 1 590 0 0 0 0 125 198 2 3 0 0 0 0\n eth0:353 18 0 4 0 0 0 0 13 12 0 0 0 0 0 0\n";
        assert_eq!(device_drops(text), Some(600));
        assert_eq!(device_drops(b"Inter-|\n"), None);
    }

    #[test]
    fn listeners_are_told_from_connections() {
        let line = |state| {
            format!(
                "   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        \
                 0 2908307 1 00000000489f1354 100 0 0 10 0"
            )
        };
        assert_eq!(listener(line("0A").as_bytes(), &[80, 8080]), Some(2_908_307));
        assert_eq!(listener(line("01").as_bytes(), &[8080]), None);
        assert_eq!(listener(line("0A").as_bytes(), &[80]), None);
        let six = b"0: 00000000000000000000000001000000:0050 0:0 0A 0:0 00:0 0 0 0 77 1";
        assert_eq!(listener(six, &[80]), Some(77));
        let unix = b"000000007ccedfda: 00000002 00000000 00010000 0001 01 2904093 /run/x.sock";
        assert_eq!(unix_listener(unix, b"/run/x.sock"), Some(2_904_093));
        assert_eq!(unix_listener(unix, b"/run/y.sock"), None);
    }
}
