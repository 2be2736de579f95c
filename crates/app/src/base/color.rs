//! The choice of colours, and what a terminal can show.

use clap::ValueEnum;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Appearance of the screen. Colour alone conveys nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    /// Emphasis by ANSI colours.
    pub(crate) color: bool,
    /// Characters beyond ASCII.
    pub(crate) unicode: bool,
}
