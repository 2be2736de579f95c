//! Reports of threads that are added up.

/// Adds reports of a type up, field by field. All fields have to be named.
#[macro_export]
macro_rules! add_fields {
    ($report:ident { $($field:ident),+ $(,)? }) => {
        impl ::core::ops::AddAssign for $report {
            fn add_assign(&mut self, other: Self) {
                let Self { $($field),+ } = other;
                $(self.$field += $field;)+
            }
        }
    };
}
