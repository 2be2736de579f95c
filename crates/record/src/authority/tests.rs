use super::*;

/// A day of 2026.
const NOW: Nanos = Nanos::from_secs(1_790_000_000);

fn hosts(names: &[&str]) -> Hosts {
    Hosts::new(names.iter().copied()).expect("names")
}

fn authority(names: &[&str]) -> Authority {
    Authority::generate(hosts(names), NOW).expect("there are random numbers")
}

fn later(days: u64) -> Nanos {
    Nanos(NOW.0 + days * DAY * 1_000_000_000)
}

fn der(authority: &Authority) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(authority.certificate().as_bytes()).expect("a certificate")
}

/// Holds a certificate against that of its authority, as a client does.
fn verify(authority: &Authority, signed: &Certificate, at: Nanos) -> Result<(), webpki::Error> {
    let root = der(authority);
    let anchor = anchor_from_trusted_cert(&root).expect("an authority");
    let provider = aws_lc_rs::default_provider();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds(at)));
    let parsed = EndEntityCert::try_from(signed.der()).expect("a certificate");
    let algorithms = provider.signature_verification_algorithms.all;
    let usage = KeyUsage::server_auth();
    parsed.verify_for_usage(algorithms, &[anchor], &[], time, usage, None, None).map(|_| ())
}

/// A certificate that the key of an authority signs for any name on purpose.
fn forged(authority: &mut Authority, host: &str) -> Certificate {
    let hosts = std::mem::take(&mut authority.hosts);
    let signed = authority.sign(host, NOW, seconds(later(1)));
    authority.hosts = hosts;
    signed.expect("the key signs")
}

#[test]
fn an_authority_lasts_a_year_and_certificates_of_hosts_a_month() {
    let mut made = authority(&[]);
    assert_eq!(not_after(&der(&made)), Some(seconds(later(365))));
    assert_eq!(made.last_day(), "2027-09-21");
    made.server_config("a.test", NOW).expect("a name");
    assert_eq!(made.made["a.test"].until, seconds(later(30)));
    // One that is about to end is made anew.
    made.server_config("a.test", later(28)).expect("a name");
    assert_eq!(made.made["a.test"].until, seconds(later(30)));
    made.server_config("a.test", later(29)).expect("a name");
    assert_eq!(made.made["a.test"].until, seconds(later(59)));
    // None goes on when the authority has ended.
    made.server_config("a.test", later(350)).expect("a name");
    assert_eq!(made.made["a.test"].until, seconds(later(365)));
    let signed = made.sign("a.test", NOW, seconds(later(30))).expect("a name");
    assert_eq!(not_after(signed.der()), Some(seconds(later(30))));
    for (day, holds) in [(0, true), (29, true), (31, false)] {
        assert_eq!(verify(&made, &signed, later(day)).is_ok(), holds, "after {day} days");
    }
}

#[test]
fn an_authority_is_read_again_up_to_its_last_week() {
    let made = authority(&["a.test", "*.b.test"]);
    let read = |names: &[&str], at| Authority::read(made.certificate(), made.key(), hosts(names), at);
    let same = ["*.b.test", "a.test"];
    for day in [0, 357] {
        let mut read = read(&same, later(day)).expect("it is valid");
        assert_eq!((read.certificate(), read.key()), (made.certificate(), made.key()));
        let signed = read.sign("x.b.test", later(day), seconds(later(day + 1))).expect("a name");
        assert_eq!(verify(&made, &signed, later(day)), Ok(()));
        assert!(read.server_config("a.test", later(day)).is_ok());
    }
    let stale = |names: &[&str], at| match read(names, at) {
        Err(Unusable::Stale(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(stale(&same, later(358)), "it expires on 2027-09-21");
    assert_eq!(stale(&same, later(365)), "it has expired on 2027-09-21");
    assert!(stale(&["a.test"], NOW).contains("for other names"));
    assert!(stale(&[], NOW).contains("for other names"));
    let other = authority(&same);
    let mixed = Authority::read(made.certificate(), other.key(), hosts(&same), NOW);
    assert!(matches!(mixed, Err(Unusable::Stale(why)) if why.contains("another key")));
    let broken = Authority::read(made.certificate(), "", hosts(&same), NOW);
    assert_eq!(broken.err(), Some(Unusable::Stale("its key cannot be read".to_owned())));
}

#[test]
fn an_authority_until_4096_is_stale_and_one_of_others_is_left_alone() {
    let named = |name: &str| {
        let key = KeyPair::generate().expect("there are random numbers");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let certificate = params.self_signed(&key).expect("it can be signed").pem();
        Authority::read(&certificate, &key.serialize_pem(), Hosts::default(), NOW).err()
    };
    let stale = "it is of an older version, and valid until 4096-01-01".to_owned();
    assert_eq!(named("Plimsoll recording proxy of this machine"), Some(Unusable::Stale(stale)));
    assert!(matches!(named("Root of a company"), Some(Unusable::Foreign(_))));
    let text = Authority::read("no certificate", "", Hosts::default(), NOW);
    assert!(matches!(text, Err(Unusable::Foreign(_))));
}

#[test]
fn a_stolen_key_signs_for_no_other_name() {
    for (names, permitted, others) in [
        (
            &["api.example.test", "*.shop.test"][..],
            &["api.example.test", "a.shop.test", "a.b.shop.test"][..],
            &["example.test", "evil.test", "evilshop.test", "127.0.0.1", "::1"][..],
        ),
        (&["127.0.0.1"], &["127.0.0.1"], &["127.0.0.2", "::1", "evil.test"]),
        (&["::1", "a.test"], &["::1", "a.test"], &["127.0.0.1", "::2", "evil.test"]),
    ] {
        let mut made = authority(names);
        for host in permitted {
            let signed = made.sign(host, NOW, seconds(later(1))).expect("it is permitted");
            assert_eq!(verify(&made, &signed, NOW), Ok(()), "{names:?}: {host}");
        }
        for host in others {
            let refused = made.server_config(host, NOW).map(|_| ());
            assert!(refused.is_err_and(|wrong| wrong.contains("not among the hosts")), "{names:?}: {host}");
            let signed = forged(&mut made, host);
            let verified = verify(&made, &signed, NOW);
            assert_eq!(verified, Err(webpki::Error::NameConstraintViolation), "{names:?}: {host}");
        }
    }
    let mut any = authority(&[]);
    let signed = forged(&mut any, "evil.test");
    assert_eq!(verify(&any, &signed, NOW), Ok(()), "without names there is no constraint");
}

#[test]
fn certificates_of_two_hosts_have_two_numbers() {
    let made = authority(&[]);
    let sign = |host: &str| made.sign(host, NOW, seconds(later(1))).expect("a name");
    let (one, two) = (sign("a.test"), sign("b.test"));
    let serial = |signed: &Certificate| {
        EndEntityCert::try_from(signed.der()).expect("a certificate").serial().to_vec()
    };
    assert_eq!(serial(&one).len(), SERIAL_BYTES);
    assert_ne!(serial(&one), serial(&two));
}

#[test]
fn names_that_no_host_has_get_no_certificate() {
    let mut made = authority(&[]);
    for host in ["*", "*.test", "a b", "", "a.test:443", &"a.".repeat(200)] {
        assert!(made.server_config(host, NOW).is_err(), "{host}");
    }
    let long = format!("{}.test", "a".repeat(60));
    for host in ["a.test", "127.0.0.1", "::1", long.as_str()] {
        assert!(made.server_config(host, NOW).is_ok(), "{host}");
    }
}

#[test]
fn a_bounded_number_of_certificates_is_kept() {
    let mut made = authority(&[]);
    for index in 0..=MOST_HOSTS {
        made.server_config(&format!("h{index}.test"), NOW).expect("a name");
        assert!(made.made.len() <= MOST_HOSTS);
    }
    assert_eq!(made.made.len(), 1, "they are made again when they are needed");
}
