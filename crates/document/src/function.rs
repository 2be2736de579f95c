//! Names of the functions of templates.

/// The functions of templates by their names, in the order in which they are described. A test of `plan`
/// compares them with those that `scenario` carries out.
pub const FUNCTIONS: [&str; 28] = [
    "sequence",
    "worker",
    "uuid",
    "traceparent",
    "timestamp_s",
    "timestamp_ms",
    "timestamp_us",
    "timestamp_ns",
    "random_int",
    "random_float",
    "random_hex",
    "random_string",
    "range",
    "zipf",
    "pick",
    "hash",
    "base64",
    "base64url",
    "urlencode",
    "upper",
    "lower",
    "json",
    "fill",
    "merge",
    "digest",
    "token",
    "env",
    "secret",
];

/// Returns `true` if `${name}` has a meaning without any variable, or would have one with arguments: no
/// variable of a plan can have this name.
pub fn is_function(name: &str) -> bool {
    // Variables are often called so; these functions always have arguments, so that both can be there.
    let may_be_both = ["token", "digest"].contains(&name);
    !may_be_both && FUNCTIONS.contains(&name)
}
