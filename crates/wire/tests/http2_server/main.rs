//! The HTTP/2 server against a client that is made of bytes.

#[path = "../http2_client/frames.rs"]
#[allow(dead_code, reason = "shared with the tests of the client, which need other frames")]
mod frames;

mod link;

mod bounds;
mod cuts;
mod opening;
mod replies;
mod requests;
mod violations;
