//! One run: prepare, run, conclude.

pub(crate) mod around;
pub(crate) mod backend;
pub(crate) mod built_in_sink;
pub(crate) mod calibration;
pub(crate) mod control;
pub(crate) mod describe;
pub(crate) mod documents;
pub(crate) mod done_once;
pub(crate) mod evidence;
pub(crate) mod fleet;
pub(crate) mod foreign_file;
pub(crate) mod import;
pub(crate) mod live;
pub(crate) mod made_plan;
pub(crate) mod outputs;
pub(crate) mod page;
pub(crate) mod refresher;
pub(crate) mod refusals;
pub(crate) mod request;
pub(crate) mod result_files;
pub(crate) mod run;
pub(crate) mod saved_runs;
pub(crate) mod saving;
pub(crate) mod searched;
pub(crate) mod side_runs;
pub(crate) mod wrk;
