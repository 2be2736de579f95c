//! The whole program, as its users run it: processes over loopback, against servers whose truth is known and
//! against other people's servers.
//!
//! Tests wait for events (a line of a process, its end), never for a time. Tests compare with the truth log
//! of the very run, so that a busy machine moves both sides of a comparison.

mod accounts;
mod accuracy;
mod around;
mod attack;
mod backends;
mod bodies;
mod canister;
mod certificates;
mod cluster;
mod cluster_network;
mod cluster_writes;
mod contract;
pub(crate) mod crud_cluster;
mod crud_load;
mod data;
mod elsewhere;
mod exports;
mod families;
mod fleet;
mod foreign;
mod http2;
mod imported;
mod ingest_demo;
mod ingest_load;
pub(crate) mod ingest_target;
mod ingest_verify;
mod interruption;
mod live;
mod making;
mod names;
mod outcome;
mod outputs;
mod own_metrics;
mod pool;
mod printed;
pub(crate) mod process;
mod proxied;
mod queries;
mod receivers;
mod recording;
mod refusals;
mod resending;
mod shards;
pub(crate) mod sink;
mod slow_clients;
mod steering;
mod terminal;
mod thresholds;
mod tokens;
mod traces;
mod try_once;
mod ui;
mod watching;
mod websocket;
mod websocket_accounts;
mod websocket_answers;
mod websocket_deflate;
mod websocket_http2;
mod websocket_lag;
