//! One node on the published lithair-core, with the command line of Lithair's own example: the system that
//! the reference cluster (`plimsoll target crud-cluster`) has the API of.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Parser;
use lithair_core::DeclarativeModel;
use lithair_core::app::LithairServer;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A node with the model `products` at /api/products
#[derive(Debug, Parser)]
struct Args {
    /// Number of the node; the node with number 0 leads at once
    #[arg(long, default_value_t = 0)]
    node_id: u64,
    /// Port of its API, on 127.0.0.1
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Ports of the other nodes, with commas between them; without them the node is alone
    #[arg(long, value_delimiter = ',')]
    peers: Vec<u16>,
    /// Folder of the data of all nodes
    #[arg(long, env = "EXPERIMENT_DATA_BASE", default_value = "data")]
    data: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize, DeclarativeModel)]
struct Product {
    #[db(primary_key, indexed)]
    #[lifecycle(immutable)]
    #[http(expose)]
    #[serde(default = "Uuid::new_v4")]
    id: Uuid,
    // A unique name would make every create look at all items.
    #[http(expose, validate = "non_empty")]
    name: String,
    #[http(expose, validate = "min_value(0.01)")]
    price: f64,
    #[http(expose)]
    category: String,
    #[lifecycle(immutable)]
    #[http(expose)]
    #[serde(default = "Utc::now")]
    created_at: DateTime<Utc>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { node_id, port, peers, data } = Args::parse();
    let folder = data.join(format!("pure_node_{node_id}/products_events"));
    std::fs::create_dir_all(&folder)?;
    let mut server = LithairServer::new()
        .with_host("127.0.0.1")
        .with_port(port)
        .with_model::<Product>(folder.display().to_string(), "/api/products");
    if !peers.is_empty() {
        let peers = peers.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>();
        server = server.with_raft_cluster(node_id, peers);
    }
    server.serve().await
}
