//! Keys in PEM files (RFC 7468).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::der;
use crate::identity::BadKey;

/// A private key as a file has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// The seed, and the public key if the file has it.
    Ed25519([u8; 32], Option<Vec<u8>>),
    Secp256k1([u8; 32]),
    P256([u8; 32]),
}

/// Makes the files that are taken.
const HOW: &str = "`openssl genpkey -algorithm ed25519 -out key.pem` makes a key that is taken, \
                   and so does `openssl ecparam -name secp256k1 -genkey -noout -out key.pem`";

/// The private key of a PEM file.
pub(crate) fn read(text: &str) -> Result<Secret, BadKey> {
    let mut others = Vec::new();
    let mut rest = text;
    while let Some((label, body, behind)) = next_block(rest)? {
        match label {
            // A file with separate parameters names the curve in the key, too.
            "EC PARAMETERS" => {}
            "PRIVATE KEY" => return pkcs8(&decoded(body)?),
            "EC PRIVATE KEY" if body.contains("ENCRYPTED") => return Err(encrypted()),
            "EC PRIVATE KEY" => return sec1(&decoded(body)?),
            "ENCRYPTED PRIVATE KEY" => return Err(encrypted()),
            _ => others.push(label),
        }
        rest = behind;
    }
    Err(match others.first() {
        Some(&"CERTIFICATE") => BadKey::new(
            "the file has a certificate and no private key",
            "give the file of its key".to_owned(),
        ),
        Some(label) if label.ends_with("PUBLIC KEY") => BadKey::new(
            "the file has a public key and no private key",
            "messages are signed with the private key: give its file".to_owned(),
        ),
        Some(label) => {
            BadKey::new(format!("the file has a `{label}` and no private key that is taken"), HOW.to_owned())
        }
        None => BadKey::new("the file is not PEM: it has no `-----BEGIN PRIVATE KEY-----`", HOW.to_owned()),
    })
}

/// The label and the text of the next block, and the rest.
fn next_block(text: &str) -> Result<Option<(&str, &str, &str)>, BadKey> {
    let Some((_, behind)) = text.split_once("-----BEGIN ") else { return Ok(None) };
    let Some((label, behind)) = behind.split_once("-----") else { return Ok(None) };
    match behind.split_once(&format!("-----END {label}-----")) {
        Some((body, behind)) => Ok(Some((label, body, behind))),
        None => Err(BadKey::new(
            format!("the PEM block `{label}` has no end"),
            "the file was cut off: copy it once more".to_owned(),
        )),
    }
}

fn decoded(body: &str) -> Result<Vec<u8>, BadKey> {
    let letters: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).map_err(|error| {
        let problem = format!("the PEM block is not base64: {}", error.to_string().to_lowercase());
        BadKey::new(problem, "the file is damaged: copy it once more".to_owned())
    })
}

fn encrypted() -> BadKey {
    let hint = "take the password off with `openssl pkey -in FILE -out key.pem`";
    BadKey::new("the private key is encrypted", hint.to_owned())
}

fn damaged() -> BadKey {
    let hint = "the file is damaged: copy it once more".to_owned();
    BadKey::new("the PEM block does not have the structure of a private key", hint)
}

/// A PrivateKeyInfo (RFC 5208) or OneAsymmetricKey (RFC 5958).
fn pkcs8(der: &[u8]) -> Result<Secret, BadKey> {
    let parsed = || {
        let mut der = der;
        let mut info = der::take(&mut der, der::SEQUENCE)?;
        der::take(&mut info, der::INTEGER)?;
        let mut algorithm = der::take(&mut info, der::SEQUENCE)?;
        let oid = der::take(&mut algorithm, der::OID)?;
        let curve = der::take(&mut algorithm, der::OID);
        let key = der::take(&mut info, der::OCTET_STRING)?;
        // Attributes, which are not used.
        der::take(&mut info, 0xa0);
        Some((oid, curve, key, der::take(&mut info, 0x81)))
    };
    let (oid, curve, mut key, public) = parsed().ok_or_else(damaged)?;
    if oid == der::ED25519 {
        let seed = der::take(&mut key, der::OCTET_STRING).and_then(|seed| seed.try_into().ok());
        // A bit string without unused bits.
        let public = public.and_then(|public| public.strip_prefix(&[0])).map(<[u8]>::to_vec);
        return Ok(Secret::Ed25519(seed.ok_or_else(damaged)?, public));
    }
    if let (der::EC_KEY, Some(on_curve)) = (oid, curve.and_then(curve_of)) {
        return ec_private_key(key).map(|(secret, _)| on_curve(secret));
    }
    Err(foreign(if oid == der::EC_KEY { curve.unwrap_or_default() } else { oid }))
}

/// An ECPrivateKey (RFC 5915) by itself.
fn sec1(der: &[u8]) -> Result<Secret, BadKey> {
    match ec_private_key(der)? {
        (secret, Some(curve)) => {
            curve_of(curve).map(|on_curve| on_curve(secret)).ok_or_else(|| foreign(curve))
        }
        (_, None) => Err(BadKey::new("the private key does not name its curve", HOW.to_owned())),
    }
}

/// Returns the constructor of a secret of this curve; `None` if its keys are not accepted.
fn curve_of(oid: &[u8]) -> Option<fn([u8; 32]) -> Secret> {
    match oid {
        der::SECP256K1 => Some(Secret::Secp256k1),
        der::P256 => Some(Secret::P256),
        _ => None,
    }
}

/// The secret of an ECPrivateKey, and its curve if it names one.
fn ec_private_key(mut der: &[u8]) -> Result<([u8; 32], Option<&[u8]>), BadKey> {
    let mut parsed = || {
        let mut key = der::take(&mut der, der::SEQUENCE)?;
        der::take(&mut key, der::INTEGER)?;
        let secret = der::take(&mut key, der::OCTET_STRING)?;
        let curve = der::take(&mut key, 0xa0).and_then(|mut named| der::take(&mut named, der::OID));
        Some((secret, curve))
    };
    let (secret, curve) = parsed().ok_or_else(damaged)?;
    match secret.try_into() {
        Ok(secret) => Ok((secret, curve)),
        // Other curves have other lengths.
        Err(_) => Err(curve.map_or_else(damaged, foreign)),
    }
}

fn foreign(oid: &[u8]) -> BadKey {
    let name = match oid {
        der::RSA => "an RSA key",
        _ => "a key of another kind",
    };
    BadKey::new(format!("{name} is not taken: it has to be Ed25519, secp256k1 or P-256"), HOW.to_owned())
}
