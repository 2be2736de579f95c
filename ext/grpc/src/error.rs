//! Classes of errors: one for each status of a call that is not OK.

use plimsoll_core::{ErrorClass, ErrorRow};

/// A status in a whole response. `is_of_server`: it says that the server is at fault, as 5xx does.
const fn status(name: &'static str, is_of_server: bool) -> ErrorRow {
    ErrorRow { name, is_answer: true, is_of_server }
}

/// The call was cancelled.
static CANCELLED: ErrorRow = status("grpc_cancelled", false);
/// The status is unknown to the client, or there is none.
static UNKNOWN: ErrorRow = status("grpc_unknown", true);
/// The client gave a wrong argument.
static INVALID_ARGUMENT: ErrorRow = status("grpc_invalid_argument", false);
/// The deadline passed at the server.
static DEADLINE_EXCEEDED: ErrorRow = status("grpc_deadline_exceeded", false);
/// Something that was asked for does not exist.
static NOT_FOUND: ErrorRow = status("grpc_not_found", false);
/// Something that was to be created exists.
static ALREADY_EXISTS: ErrorRow = status("grpc_already_exists", false);
/// The caller may not do this.
static PERMISSION_DENIED: ErrorRow = status("grpc_permission_denied", false);
/// A quota or some other resource is used up.
static RESOURCE_EXHAUSTED: ErrorRow = status("grpc_resource_exhausted", false);
/// The system is not in the state that the call needs.
static FAILED_PRECONDITION: ErrorRow = status("grpc_failed_precondition", false);
/// The call was aborted, as after a conflict of transactions.
static ABORTED: ErrorRow = status("grpc_aborted", false);
/// The call went past the valid range.
static OUT_OF_RANGE: ErrorRow = status("grpc_out_of_range", false);
/// The server has no such method.
static UNIMPLEMENTED: ErrorRow = status("grpc_unimplemented", true);
/// An invariant of the server is broken.
static INTERNAL: ErrorRow = status("grpc_internal", true);
/// The service is unavailable at the moment.
static UNAVAILABLE: ErrorRow = status("grpc_unavailable", true);
/// Data is lost or damaged.
static DATA_LOSS: ErrorRow = status("grpc_data_loss", true);
/// The caller has no valid credentials.
static UNAUTHENTICATED: ErrorRow = status("grpc_unauthenticated", false);

/// The classes of the status codes from 1 on.
pub(crate) const ROWS: [&ErrorRow; 16] = [
    &CANCELLED,
    &UNKNOWN,
    &INVALID_ARGUMENT,
    &DEADLINE_EXCEEDED,
    &NOT_FOUND,
    &ALREADY_EXISTS,
    &PERMISSION_DENIED,
    &RESOURCE_EXHAUSTED,
    &FAILED_PRECONDITION,
    &ABORTED,
    &OUT_OF_RANGE,
    &UNIMPLEMENTED,
    &INTERNAL,
    &UNAVAILABLE,
    &DATA_LOSS,
    &UNAUTHENTICATED,
];

/// Returns the class of a status code; `None` for OK.
pub(crate) fn class_of(code: usize) -> Option<ErrorClass> {
    code.checked_sub(1).map(|failed| ErrorClass::Other(ROWS[failed]))
}

#[cfg(test)]
mod tests {
    use crate::fields::CODES;

    use super::*;

    #[test]
    fn every_code_but_ok_has_a_class_of_its_name() {
        assert_eq!((class_of(0), CODES.len()), (None, ROWS.len() + 1));
        for (code, name) in CODES.iter().enumerate().skip(1) {
            let class = class_of(code).expect("a class");
            assert_eq!(class.name(), format!("grpc_{}", name.to_ascii_lowercase()));
            assert!(class.is_answer() && ErrorClass::from_name(class.name()).is_none());
        }
    }
}
