use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::KeySize;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use super::*;

const SECOND: u64 = 1_000_000_000;
/// A time in 2023, in nanoseconds since 1970.
const NOW: u64 = 1_700_000_000 * SECOND + 999_999_999;

fn spec(algorithm: Algorithm, claims: &str) -> TokenSpec {
    TokenSpec {
        name: "api".to_owned(),
        algorithm,
        key_id: None,
        claims: claims.to_owned(),
        stamps: Stamp::DEFAULT.to_vec(),
        lifetime_s: 300,
        refresh_before_ns: 30 * SECOND,
    }
}

fn signer(algorithm: Algorithm, claims: &str, key: &[u8]) -> Signer {
    Signer::new(spec(algorithm, claims), key, &Scope::default()).unwrap()
}

fn pem(der: &[u8]) -> Vec<u8> {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n").into_bytes()
}

fn decoded(text: &str) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn token_at(signer: &Signer, unix_ns: u64) -> String {
    let signed = signer.sign(signer.draft(unix_ns, &mut Random::new(1, 1)));
    String::from_utf8(signed.text).unwrap()
}

/// Header and claims of a token, and its signature.
fn parts(token: &str) -> (Value, Value, Vec<u8>) {
    let parts: Vec<Vec<u8>> = token.split('.').map(decoded).collect();
    let [header, claims, signature] = parts.try_into().unwrap();
    (serde_json::from_slice(&header).unwrap(), serde_json::from_slice(&claims).unwrap(), signature)
}

#[test]
fn the_examples_of_the_standards_have_their_signatures() {
    // RFC 7515, A.1.
    let key =
        decoded("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow");
    let input = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6\
                 Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let sign = |signer: Signer, input: &str| {
        let signed = signer.sign(Draft { input: input.as_bytes().to_vec(), due_ns: 7 });
        assert_eq!(signed.due_ns, 7);
        String::from_utf8(signed.text).unwrap()
    };
    let token = sign(signer(Algorithm::Hs256, "{}", &key), input);
    assert_eq!(token, format!("{input}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));

    // RFC 8037, A.4; the key is behind the head of PKCS#8 for Ed25519 (RFC 8410 section 7).
    let mut key = vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    key.extend(decoded("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"));
    let input = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let token = sign(signer(Algorithm::EdDsa, "{}", &pem(&key)), input);
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert_eq!(token, format!("{input}.{signature}"));
}

#[test]
fn each_algorithm_signs_what_its_verification_accepts() {
    let rng = SystemRandom::new();
    let kind = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let ec = EcdsaKeyPair::generate_pkcs8(kind, &rng).unwrap();
    let ed = Ed25519KeyPair::generate_pkcs8(&rng).unwrap();
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let rsa: aws_lc_rs::encoding::Pkcs8V1Der<'_> = rsa.as_der().unwrap();
    let cases: [(Algorithm, &[u8], &'static dyn signature::VerificationAlgorithm); 3] = [
        (Algorithm::Es256, ec.as_ref(), &signature::ECDSA_P256_SHA256_FIXED),
        (Algorithm::EdDsa, ed.as_ref(), &signature::ED25519),
        (Algorithm::Rs256, rsa.as_ref(), &signature::RSA_PKCS1_2048_8192_SHA256),
    ];
    for (algorithm, der, verification) in cases {
        let signer = signer(algorithm, r#"{"scope": "write"}"#, &pem(der));
        let token = token_at(&signer, NOW);
        let (input, _) = token.rsplit_once('.').unwrap();
        let (header, claims, signature) = parts(&token);
        assert_eq!(header["alg"], algorithm.name());
        assert_eq!(claims["exp"], 1_700_000_300);
        let public = signature::UnparsedPublicKey::new(verification, signer.public_key().unwrap());
        public.verify(input.as_bytes(), &signature).unwrap();
        assert!(public.verify(&input.as_bytes()[1..], &signature).is_err());
    }
    for (algorithm, kind) in [
        (Algorithm::Hs256, hmac::HMAC_SHA256),
        (Algorithm::Hs384, hmac::HMAC_SHA384),
        (Algorithm::Hs512, hmac::HMAC_SHA512),
    ] {
        let token = token_at(&signer(algorithm, "{}", b"secret"), NOW);
        let (input, _) = token.rsplit_once('.').unwrap();
        let (header, _, signature) = parts(&token);
        assert_eq!(header["alg"], algorithm.name());
        hmac::verify(&hmac::Key::new(kind, b"secret"), input.as_bytes(), &signature).unwrap();
    }
}

#[test]
fn claims_are_those_of_the_spec_and_of_the_time() {
    let spec = TokenSpec {
        key_id: Some("k1".to_owned()),
        stamps: Stamp::ALL.to_vec(),
        ..spec(Algorithm::Hs256, r#" { "sub": "load", "n": [1, {"a": "${uuid}"}] } "#)
    };
    let signer = Signer::new(spec, b"secret", &Scope::default()).unwrap();
    let (header, claims, _) = parts(&token_at(&signer, NOW));
    assert_eq!(header, serde_json::json!({ "alg": "HS256", "typ": "JWT", "kid": "k1" }));
    assert_eq!((&claims["sub"], &claims["iat"]), (&"load".into(), &1_700_000_000.into()));
    assert_eq!((&claims["nbf"], &claims["exp"]), (&1_700_000_000.into(), &1_700_000_300.into()));
    assert_eq!(claims["jti"].as_str().unwrap().len(), 32);
    assert_eq!(claims["n"][1]["a"].as_str().unwrap().len(), 36);
    let other = signer.sign(signer.draft(NOW, &mut Random::new(2, 1))).text;
    assert_ne!(parts(&String::from_utf8(other).unwrap()).1["jti"], claims["jti"]);
}

#[test]
fn a_worker_has_the_same_token_until_it_is_due() {
    let signers = [Arc::new(signer(Algorithm::Hs256, "{}", b"secret"))];
    let mut random = Random::new(1, 1);
    let mut tokens = Tokens::new(&signers, NOW, &mut random);
    // 30 seconds before the end of a lifetime that counts from a whole second.
    let due = (1_700_000_300 - 30) * SECOND;
    assert_eq!(tokens.due_ns(), due);
    assert!(tokens.due(due - 1).is_none());
    let before = tokens.text(0).to_vec();
    let (number, signer) = tokens.due(due).unwrap();
    let signed = signer.sign(signer.draft(due, &mut random));
    tokens.replace(number, signed);
    assert_ne!(tokens.text(0), before);
    assert_eq!(tokens.due_ns(), (1_700_000_270 + 270) * SECOND);
    assert_eq!((tokens.text(1), Tokens::default().due_ns()), (&b""[..], u64::MAX));
}

#[test]
fn templates_name_tokens_and_sign_for_a_subject() {
    let signers = [signer(Algorithm::Hs256, r#"{"sub": "all"}"#, b"a"), signer(Algorithm::Hs256, "{}", b"b")];
    let [first, mut second] = signers;
    second.spec.name = "each".to_owned();
    let signers = [Arc::new(first), Arc::new(second)];
    let names = ["user".to_owned()];
    let scope = Scope { tokens: &signers, ..Scope::new(&names) };
    let mut random = Random::new(1, 1);
    let tokens = Tokens::new(&signers, NOW, &mut random);
    let variables = [b"4\"2".to_vec()];
    let mut rendered = |text: &str| {
        let template = Template::parse_in(text.as_bytes(), &scope).unwrap();
        assert!(template.has_secret() && !template.is_static());
        let context =
            Context { unix_ns: NOW, variables: &variables, tokens: Some(&tokens), ..Context::default() };
        let mut out = Vec::new();
        template.render(&context, &mut random, &mut out);
        (String::from_utf8(out).unwrap(), template.needs_clock())
    };
    let (shared, needs_clock) = rendered("Bearer ${token(api)}");
    assert_eq!((shared.as_bytes(), needs_clock), ([b"Bearer ", tokens.text(0)].concat().as_slice(), false));
    let (own, needs_clock) = rendered("Bearer ${token(each,'user-${user}')}");
    assert!(needs_clock);
    let own = own.strip_prefix("Bearer ").unwrap();
    let (_, claims, signature) = parts(own);
    assert_eq!(claims, serde_json::json!({ "sub": "user-4\"2", "iat": 1_700_000_000, "exp": 1_700_000_300 }));
    let (input, _) = own.rsplit_once('.').unwrap();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, b"b"), input.as_bytes(), &signature).unwrap();
    let wrong = |text: &str| Template::parse_in(text.as_bytes(), &scope).unwrap_err().to_string();
    assert!(wrong("${token(apu)}").contains("there is no token `apu`"));
    assert!(wrong("${token(api,user)}").contains("has a `sub` among its claims already"));
}

#[test]
fn what_is_wrong_is_said_without_the_key() {
    let ed = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let ed = pem(ed.as_ref());
    let refused = |spec: TokenSpec, key: &[u8]| Signer::new(spec, key, &Scope::default()).unwrap_err();
    for (algorithm, key) in [
        (Algorithm::Rs256, &ed[..]),
        (Algorithm::Es256, &ed[..]),
        (Algorithm::Hs256, &ed[..]),
        (Algorithm::EdDsa, b"topsecret"),
        (Algorithm::Hs512, b""),
    ] {
        let error = refused(spec(algorithm, "{}"), key);
        assert_eq!(error.about, TokenPart::Key);
        assert_eq!(error.message, format!("the key does not fit {}", algorithm.name()));
        assert!(!error.hint.contains("topsecret"));
    }
    let message = |claims: &str| {
        let error = refused(spec(Algorithm::Hs256, claims), b"topsecret");
        assert_eq!(error.about, TokenPart::Claims);
        error.message
    };
    assert_eq!(message("[1]"), "the claims are not an object");
    assert!(message("{").starts_with("the claims are not JSON: "));
    assert_eq!(message(r#"{"exp": 5}"#), "the claim `exp` is made at each signing");
    assert!(message(r#"{"sub": "${user}"}"#).starts_with("unknown template slot"));
    for (lifetime_s, refresh_s) in [(30, 30), (1, 0), (20, 30)] {
        let times =
            TokenSpec { lifetime_s, refresh_before_ns: refresh_s * SECOND, ..spec(Algorithm::Hs256, "{}") };
        assert_eq!(refused(times, b"topsecret").about, TokenPart::Lifetime);
    }
    assert!("HS1".parse::<Algorithm>().unwrap_err().contains("it can be one of HS256, HS384"));
    assert!(!format!("{:?}", signer(Algorithm::Hs256, "{}", b"topsecret")).contains("topsecret"));
}
