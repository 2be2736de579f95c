//! The HTTP/2 server against a client that is made of bytes.

use crate::http2_client::frames;

mod link;

mod bounds;
mod cuts;
mod opening;
mod replies;
mod requests;
mod violations;
