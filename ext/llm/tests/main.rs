//! The load on language models, against the truth log of its own server and servers that are not what they
//! should be.

mod load;
mod program;
