//! The list of extensions that the program has. Leaving one out is a line here and one in the manifest.
#![forbid(unsafe_code)]

use plimsoll_app::Extension;

/// The extensions, in the order of their commands in help.
pub const EXTENSIONS: &[Extension] = &[
    plimsoll_cache::EXTENSION,
    plimsoll_grpc::EXTENSION,
    plimsoll_llm::EXTENSION,
    plimsoll_redis::EXTENSION,
];
