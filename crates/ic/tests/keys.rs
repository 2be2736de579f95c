//! Key files, as openssl writes them.

use plimsoll_ic::{Identity, is_signed_by};

const ED25519: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEILG83BoZ/82r4C//J7ItqNiZoASmvLvsXVdhArONh2Ks
-----END PRIVATE KEY-----
";
const SECP256K1: &str = "-----BEGIN EC PRIVATE KEY-----
MHQCAQEEIAbhtqmTAkoxV5z7KhlgTFINj/dxBiFe2CHvgmsPEntioAcGBSuBBAAK
oUQDQgAEo3pEYDIdjuwzjgjeiV2FSstvg6lGSrXFf+oP/jJxxzayju8EvpXgdnjk
45w3OnY0MVNwuZQvLFBXp1v3Eq7ZNA==
-----END EC PRIVATE KEY-----
";
/// The key of [`SECP256K1`] in PKCS#8.
const SECP256K1_PKCS8: &str = "-----BEGIN PRIVATE KEY-----
MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgBuG2qZMCSjFXnPsqGWBM
Ug2P93EGIV7YIe+Caw8Se2KhRANCAASjekRgMh2O7DOOCN6JXYVKy2+DqUZKtcV/
6g/+MnHHNrKO7wS+leB2eOTjnDc6djQxU3C5lC8sUFenW/cSrtk0
-----END PRIVATE KEY-----
";
const P256: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIMWuDN12YI2KcN/RIpgYsoOb0EmSYvogar0zkA4WTgU9oAoGCCqGSM49
AwEHoUQDQgAEoRBAHCTB3X7MIakjKgl1R0WshbgotiY3M6/SeyLIcqzvDyLqd43O
O5HS9AZ8U6aNBuh/PfQTr+llaj4tYDPEsQ==
-----END EC PRIVATE KEY-----
";
const P256_PKCS8: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgxa4M3XZgjYpw39Ei
mBiyg5vQSZJi+iBqvTOQDhZOBT2hRANCAAShEEAcJMHdfswhqSMqCXVHRayFuCi2
Jjczr9J7IshyrO8PIup3jc47kdL0BnxTpo0G6H899BOv6WVqPi1gM8Sx
-----END PRIVATE KEY-----
";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAnDw3pb/G9yMEo4Tfm4nzhQJleMt5fm7RsAwP8d/MIWc=
-----END PUBLIC KEY-----
";
const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhr4CzYTiaEvwICCAAw
-----END ENCRYPTED PRIVATE KEY-----
";

#[test]
fn an_ed25519_key_is_the_one_that_openssl_made() {
    let identity = Identity::from_pem(ED25519).unwrap();
    let der = identity.public_key_der().unwrap();
    let expected = "302a300506032b65700321009c3c37a5bfc6f72304a384df9b89f385026578cb797e6ed1b00c0ff1dfcc2167";
    let hex: String = der.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected);
    let signature = identity.sign(b"message").unwrap();
    assert!(is_signed_by(der, b"message", &signature));
    assert!(!is_signed_by(der, b"massage", &signature));
}

#[test]
fn a_secp256k1_key_is_the_same_in_both_forms() {
    let identity = Identity::from_pem(SECP256K1).unwrap();
    let with_parameters =
        format!("-----BEGIN EC PARAMETERS-----\nBgUrgQQACg==\n-----END EC PARAMETERS-----\n{SECP256K1}");
    for other in [SECP256K1_PKCS8, &with_parameters] {
        assert_eq!(Identity::from_pem(other).unwrap().sender(), identity.sender());
    }
    let der = identity.public_key_der().unwrap();
    assert_eq!((der.len(), &der[23..28]), (88, &[0x04, 0xa3, 0x7a, 0x44, 0x60][..]));
    let signature = identity.sign(b"message").unwrap();
    assert!(is_signed_by(der, b"message", &signature));
    assert!(!is_signed_by(der, b"massage", &signature));
}

#[test]
fn a_p256_key_is_the_one_that_openssl_made() {
    // `openssl pkey -in key.pem -pubout -outform DER`
    let expected = "3059301306072a8648ce3d020106082a8648ce3d03010703420004a110401c24c1dd7ecc21a9232a0975\
                    4745ac85b828b6263733afd27b22c872acef0f22ea778dce3b91d2f4067c53a68d06e87f3df413afe9656a3e2d6033c4b1";
    for pem in [P256, P256_PKCS8] {
        let identity = Identity::from_pem(pem).unwrap();
        let der = identity.public_key_der().unwrap();
        let hex: String = der.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
        let signature = identity.sign(b"message").unwrap();
        assert!(is_signed_by(der, b"message", &signature));
        assert!(!is_signed_by(der, b"massage", &signature));
    }
    assert!(Identity::p256([0; 32]).is_err() && Identity::p256([0xff; 32]).is_err());
}

#[test]
fn whoever_signs_nothing_is_anonymous() {
    let identity = Identity::anonymous();
    assert!(identity.is_anonymous() && identity.public_key_der().is_none());
    assert_eq!((identity.sender().to_string().as_str(), identity.sign(b"message")), ("2vxsx-fae", None));
}

#[test]
fn other_files_are_refused_with_what_they_are_and_what_to_do() {
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
    let foreign = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----";
    // The name of another curve.
    let p384 = P256_PKCS8.replace("AwEHBG0w", "AwEGBG0w");
    let cut = &ED25519[..60];
    let letters = ED25519.replace("MC4C", "M!4C");
    let length = ED25519.replace("MC4C", "MC8C");
    let rsa = "-----BEGIN PRIVATE KEY-----\nMBUCAQAwDQYJKoZIhvcNAQEBBQAEAQA=\n-----END PRIVATE KEY-----";
    for (text, problem, hint) in [
        ("", "not PEM", "openssl genpkey"),
        ("hello", "not PEM", "openssl genpkey"),
        (certificate, "a certificate", "its key"),
        (PUBLIC, "a public key", "private key"),
        (ENCRYPTED, "encrypted", "password"),
        (foreign, "`OPENSSH PRIVATE KEY`", "openssl genpkey"),
        (&p384, "a key of another kind", "secp256k1"),
        (rsa, "an RSA key", "openssl genpkey"),
        (cut, "has no end", "copy it"),
        (&letters, "not base64", "copy it"),
        (&length, "structure", "copy it"),
    ] {
        let error = Identity::from_pem(text).unwrap_err();
        assert!(error.problem.contains(problem), "{text}: {error}");
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
}

#[test]
fn a_file_with_the_public_key_of_another_one_is_refused() {
    // OneAsymmetricKey of RFC 8410 section 10.3 has both keys; here the seed is another one.
    let base64 = "MFECAQEwBQYDK2VwBCIEILG83BoZ/82r4C//J7ItqNiZoASmvLvsXVdhArONh2KsgSEA";
    let own = "nDw3pb/G9yMEo4Tfm4nzhQJleMt5fm7RsAwP8d/MIWc=";
    let pem = |key: &str| format!("-----BEGIN PRIVATE KEY-----\n{base64}{key}\n-----END PRIVATE KEY-----\n");
    let identity = Identity::from_pem(&pem(own)).unwrap();
    assert_eq!(identity.sender(), Identity::from_pem(ED25519).unwrap().sender());
    let error = Identity::from_pem(&pem(&own.replace("nDw3", "nDw4"))).unwrap_err();
    assert!(error.problem.contains("does not belong"), "{error}");
}
