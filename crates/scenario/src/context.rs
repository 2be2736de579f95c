//! What a template may name, and what its rendering is given.

/// What a rendering may depend on, besides random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context<'a> {
    /// Index of the arrival, unique in the run; all steps of an iteration have that of the iteration.
    pub index: u64,
    /// Index of the worker that renders.
    pub worker: u32,
    /// Wall-clock time, nanoseconds since 1970.
    pub unix_ns: u64,
    /// The values of the variables, in the order of [`Scope::variables`]; one that is not there renders
    /// nothing. Each must be fit for a header ([`header::is_value`](crate::header::is_value)): whoever takes
    /// a value from outside checks that before it is stored, as [`Extract::apply`](crate::Extract::apply)
    /// does, and no rendering looks at it again.
    pub variables: &'a [Vec<u8>],
}

/// What a template may name besides the slots that always are there. The default is: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The names of the variables: `${name}` stands for the value with the name's position in
    /// [`Context::variables`]. A slot that is called the same is meant instead.
    pub variables: &'a [String],
}
