//! Rows of values that iterations keep for others: what a server has created, for whoever reads, changes or
//! deletes it.

use std::sync::Arc;

use plimsoll_core::{Random, Shard};

/// What a pool is compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Its name in the plan.
    pub name: String,
    /// The variables (their positions) whose values make a row.
    pub columns: Vec<u16>,
    /// Rows that are there before anything is kept, dealt to the workers in turn: values in the order of the
    /// columns, each [fit for a header](crate::header::is_value).
    pub rows: Arc<[Row]>,
}

impl PoolSpec {
    /// Rows that one worker keeps at most. One more takes the place of a row that is drawn.
    pub const MOST: usize = 100_000;
}

/// A pool as one worker has it: what its iterations keep is for its iterations. It allocates nothing once it
/// has been as full as it gets.
#[derive(Debug)]
pub(crate) struct Pool {
    columns: Vec<u16>,
    rows: Vec<Packed>,
    /// Rows that were taken, for their memory.
    spare: Vec<Packed>,
    /// The values of a row that is being made.
    staged: Row,
}

/// The values of a row, in the order of the columns.
pub type Row = Vec<Vec<u8>>;

/// A row in one piece: rows are picked at random out of more memory than caches have, where each piece of its
/// own would be waited for.
#[derive(Debug, Default)]
struct Packed {
    /// The length of each value in four bytes, and then the values.
    bytes: Vec<u8>,
}

/// Bytes of a length.
const LENGTH: usize = size_of::<u32>();

impl Packed {
    fn set<'v>(&mut self, values: impl Iterator<Item = &'v [u8]> + Clone) {
        self.bytes.clear();
        for value in values.clone() {
            // A value comes from a response, of which no more than some mebibytes are read.
            self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        values.for_each(|value| self.bytes.extend_from_slice(value));
    }

    /// The values of a row of so many.
    fn values(&self, columns: usize) -> impl Iterator<Item = &[u8]> {
        let (lengths, mut rest) = self.bytes.split_at(columns * LENGTH);
        lengths.as_chunks::<LENGTH>().0.iter().map(move |length| {
            let (value, after) = rest.split_at(u32::from_le_bytes(*length) as usize);
            rest = after;
            value
        })
    }
}

impl Pool {
    /// One worker's, with its share of the rows that are there at first.
    pub(crate) fn new(spec: &PoolSpec, worker: Shard) -> Self {
        let mine = spec.rows.iter().skip(worker.index as usize).step_by(worker.of.max(1) as usize);
        let fit = mine.filter(|row| row.len() == spec.columns.len()).take(PoolSpec::MOST);
        let packed = |row: &Row| {
            let mut packed = Packed::default();
            packed.set(row.iter().map(Vec::as_slice));
            packed
        };
        let staged = vec![Vec::new(); spec.columns.len()];
        Self { columns: spec.columns.clone(), rows: fit.map(packed).collect(), spare: Vec::new(), staged }
    }

    /// Keeps the values that the variables have: in the place of a row that is drawn if it is full.
    ///
    /// # Panics
    /// If a variable of its columns is not there.
    pub(crate) fn keep(&mut self, random: &mut Random, variables: &[Vec<u8>]) {
        let row = added(&mut self.rows, &mut self.spare, random);
        row.set(self.columns.iter().map(|&variable| &variables[usize::from(variable)][..]));
    }

    /// A row for [`keep_staged`](Self::keep_staged), with whatever values: they are to be overwritten.
    pub(crate) fn stage(&mut self) -> &mut [Vec<u8>] {
        &mut self.staged
    }

    /// Keeps the row that was staged.
    pub(crate) fn keep_staged(&mut self, random: &mut Random) {
        let row = added(&mut self.rows, &mut self.spare, random);
        row.set(self.staged.iter().map(Vec::as_slice));
    }

    /// Gives a row, each with the same probability; where it `leaves`, no one else gets it. Without any row
    /// the variables are not set.
    ///
    /// # Panics
    /// If a variable of its columns is not there.
    pub(crate) fn give(
        &mut self,
        leaves: bool,
        random: &mut Random,
        variables: &mut [Vec<u8>],
        known: &mut [bool],
    ) {
        if self.rows.is_empty() {
            for &variable in &self.columns {
                variables[usize::from(variable)].clear();
                known[usize::from(variable)] = false;
            }
            return;
        }
        let place = random.below(self.rows.len() as u64) as usize;
        for (value, &variable) in self.rows[place].values(self.columns.len()).zip(&self.columns) {
            let variable = usize::from(variable);
            variables[variable].clear();
            variables[variable].extend_from_slice(value);
            known[variable] = true;
        }
        if leaves {
            self.spare.push(self.rows.swap_remove(place));
        }
    }
}

/// A row more, whose values are to be set: that of another one, which is drawn, if there are as many as may
/// be.
fn added<'r>(rows: &'r mut Vec<Packed>, spare: &mut Vec<Packed>, random: &mut Random) -> &'r mut Packed {
    let last = rows.len();
    if last >= PoolSpec::MOST {
        return &mut rows[random.below(last as u64) as usize];
    }
    rows.push(spare.pop().unwrap_or_default());
    &mut rows[last]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A pool with the columns 2 and 0 of three variables.
    fn pool() -> Pool {
        Pool::new(&spec([].into()), Shard::WHOLE)
    }

    fn spec(rows: Arc<[Row]>) -> PoolSpec {
        PoolSpec { name: "orders".to_owned(), columns: vec![2, 0], rows }
    }

    fn keep(pool: &mut Pool, random: &mut Random, number: usize) {
        let value = |name: &str| format!("{name}{number}").into_bytes();
        pool.keep(random, &[value("a"), b"other".to_vec(), value("c")]);
    }

    /// What a row sets the variables to.
    fn given(pool: &mut Pool, leaves: bool, random: &mut Random) -> Option<[String; 2]> {
        let (mut variables, mut known) = (vec![b"old".to_vec(); 3], vec![true, false, true]);
        pool.give(leaves, random, &mut variables, &mut known);
        assert_eq!((&variables[1][..], known[1], known[0]), (&b"old"[..], false, known[2]));
        let text = |number: usize| String::from_utf8(variables[number].clone()).unwrap();
        known[0].then(|| [text(0), text(2)])
    }

    #[test]
    fn a_row_that_is_taken_is_gone_and_one_that_is_picked_stays() {
        let (mut pool, mut random) = (pool(), Random::new(1, 0));
        assert_eq!((given(&mut pool, true, &mut random), given(&mut pool, false, &mut random)), (None, None));
        for round in 0..3 {
            (0..50).for_each(|number| keep(&mut pool, &mut random, number));
            let picked: BTreeSet<_> =
                (0..2_000).filter_map(|_| given(&mut pool, false, &mut random)).collect();
            assert_eq!(picked.len(), 50, "every row is picked at times, in round {round}");
            let taken: BTreeSet<_> = (0..50).filter_map(|_| given(&mut pool, true, &mut random)).collect();
            assert_eq!(taken, picked);
            assert!(taken.contains(&["a7".to_owned(), "c7".to_owned()]));
            assert_eq!(given(&mut pool, true, &mut random), None);
        }
        assert_eq!((pool.rows.len(), pool.spare.len()), (0, 50), "memory is used again");
    }

    #[test]
    fn what_is_there_at_first_is_dealt_to_the_workers() {
        let row = |number: usize| vec![format!("c{number}").into_bytes(), format!("a{number}").into_bytes()];
        // One of them does not fit.
        let rows: Vec<Row> = (0..10).map(row).chain([vec![b"x".to_vec()]]).collect();
        let (spec, mut random, mut all) = (spec(rows.into()), Random::new(3, 0), BTreeSet::new());
        for index in 0..3 {
            let mut pool = Pool::new(&spec, Shard { index, of: 3 });
            while let Some(row) = given(&mut pool, true, &mut random) {
                assert!(all.insert(row));
            }
        }
        assert_eq!(all.len(), 10);
        assert!(all.contains(&["a9".to_owned(), "c9".to_owned()]));
    }

    #[test]
    fn a_full_pool_keeps_what_comes_and_gives_up_another_row() {
        let (mut pool, mut random) = (pool(), Random::new(2, 0));
        let most = PoolSpec::MOST;
        (0..most + most / 2).for_each(|number| keep(&mut pool, &mut random, number));
        assert_eq!(pool.rows.len(), most);
        let number = |row: &Packed| row.values(2).last().expect("two columns")[1..].len();
        let late = pool.rows.iter().filter(|row| number(row) >= 6).count();
        // Of the last 50,000 some have given way to each other: 1 - exp(-1/2) of 100,000 were replaced.
        assert!((38_000..41_000).contains(&late), "{late}");
    }
}
