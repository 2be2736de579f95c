//! Calls of gRPC: messages by the descriptors of a service, made at run time, and the judgement of answers by
//! the status of the call.

mod calls;
mod judge;
mod load;
mod message;
mod reflection;
mod schema;
mod spec;

pub use calls::CALL;
pub use judge::judge;
pub use load::{Data, GrpcLoad, SchemaFile, deadline_of, method_name, origin};
pub use reflection::Reflection;
pub use schema::{FileDescription, MethodDescription, Schema, SchemaError};
pub use spec::GrpcSpec;
