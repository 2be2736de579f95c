//! The flag for names of secrets.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RedactArgs {
    /// Hide the values of this name in results, too: a query parameter, header or field of a body; repeatable
    ///
    /// Values of names such as token, key, secret, password, sig, session and code, and of headers such as
    /// Authorization and Cookie, are stars in everything that is written anyway. What is sent stays as it is.
    /// See docs/reports.md.
    #[arg(long = "redact", value_name = "NAME", hide_short_help = true)]
    pub(crate) names: Vec<String>,
}
