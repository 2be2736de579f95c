//! The seam between a plan file's scenarios and the requests of a plan.

use crate::document::LoadedDocument;
use crate::protocol::Wish;
use crate::requests::Requests;
use crate::resolve::Resolver;
use crate::{PlanPatch, Problem};

impl Resolver<'_> {
    /// Compiles the scenarios of a plan file. Headers, credentials and TLS settings of `patch` hold for all
    /// of their requests.
    pub(crate) fn compiled(
        &mut self,
        patch: &PlanPatch,
        document: &LoadedDocument,
        wish: &Wish,
    ) -> Option<Requests> {
        let _ = (patch, wish);
        let place = document.document.scenarios.first().and_then(crate::document::Field::place);
        self.fail(Problem::new("scenarios of plan files are not built yet").at(place))
    }
}
