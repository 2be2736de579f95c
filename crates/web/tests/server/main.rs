//! The server as browsers, pages of other sites and other users of the machine meet it: by raw sockets, so
//! that nothing is sent which a client library would have mended.

mod attack;
mod client;
mod files;
mod pages;
