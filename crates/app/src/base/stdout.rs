//! Results on stdout.

use std::io::Write;

use plimsoll_document::Problem;

use crate::base::failure::Failure;
use crate::base::streams::{self, Content};

/// Writes text to stdout. A reader that has seen enough (`| head`) is not a failure.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    content_to_stdout(Content::Text, write)
}

/// Writes content that may be no text to stdout. A reader that has seen enough (`| head`) is not a failure.
pub(crate) fn content_to_stdout(
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    match streams::to_stdout(content, write) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(Problem::new(format!("cannot write to stdout: {error}"))))
        }
        _ => Ok(()),
    }
}
