//! Rows of values that iterations keep for others: resources that a server has created, for iterations that
//! read, change or delete them.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::{Random, Shard};

/// Specification of a pool, before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Name of the pool in the plan.
    pub name: String,
    /// The variables (their positions) whose values make a row.
    pub columns: Vec<u16>,
    /// Rows that are there before anything is kept, dealt to the workers in turn: values in the order of the
    /// columns.
    pub rows: Arc<[Row]>,
}

/// Number of draws for a row that is not in use: where half of the rows are in use, one time in 65,536 all
/// draws are in vain.
const DRAWS: u32 = 16;

impl PoolSpec {
    /// Rows that one worker keeps at most. One more takes the place of a row that is drawn.
    pub const MOST: usize = 100_000;
}

/// A pool as one worker has it: rows of its iterations are for its iterations. It allocates nothing once it
/// has been as full as it gets.
#[derive(Debug)]
pub(crate) struct Pool {
    columns: Vec<u16>,
    rows: Vec<Packed>,
    /// Rows that were taken, for their memory.
    spare: Vec<Packed>,
    /// The values of a row that is being made.
    staged: Row,
    /// Number of iterations that use a row, by its number: those that have picked it and are not over.
    in_use: HashMap<u64, u32>,
    /// The number of the next row.
    next: u64,
}

/// The values of a row, in the order of the columns.
pub type Row = Vec<Vec<u8>>;

/// A row in one piece: rows are picked at random out of more memory than caches have, where each piece of its
/// own would be waited for.
#[derive(Debug, Default)]
struct Packed {
    /// The length of each value in four bytes, and then the values.
    bytes: Vec<u8>,
    /// Unique among all rows: not reused for a later row in its place, or in another pool.
    number: u64,
}

/// Bits of the number of a row below the number of its pool.
const POOL_BITS: u32 = 48;

/// The pool of the row with this number.
pub(crate) const fn pool_of(number: u64) -> u16 {
    (number >> POOL_BITS) as u16
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

    fn numbered(&mut self, next: &mut u64) -> &mut Self {
        self.number = *next;
        *next += 1;
        self
    }

    /// The values of a row of this many columns.
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
    /// One worker's, with its share of the rows that are there at first: the plan's pool of this number.
    pub(crate) fn new(spec: &PoolSpec, number: u16, worker: Shard) -> Self {
        let mine = spec.rows.iter().skip(worker.index as usize).step_by(worker.of.max(1) as usize);
        let fit = mine.filter(|row| row.len() == spec.columns.len()).take(PoolSpec::MOST);
        let mut next = u64::from(number) << POOL_BITS;
        let packed = |row: &Row| {
            let mut packed = Packed::default();
            packed.numbered(&mut next).set(row.iter().map(Vec::as_slice));
            packed
        };
        let rows = fit.map(packed).collect();
        let staged = vec![Vec::new(); spec.columns.len()];
        let (columns, spare, in_use) = (spec.columns.clone(), Vec::new(), HashMap::new());
        Self { columns, rows, spare, staged, in_use, next }
    }

    /// Keeps the values that the variables have: in place of a row that is drawn if it is full.
    ///
    /// # Panics
    /// If a variable of its columns is not there.
    pub(crate) fn keep(&mut self, random: &mut Random, variables: &[Vec<u8>]) {
        let row = added(&mut self.rows, &mut self.spare, random).numbered(&mut self.next);
        row.set(self.columns.iter().map(|&variable| &variables[usize::from(variable)][..]));
    }

    /// The rows that are there.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let columns = self.columns.len();
        self.rows.iter().map(move |row| row.values(columns).map(<[u8]>::to_vec).collect())
    }

    /// A row for [`keep_staged`](Self::keep_staged), with stale values that have to be overwritten.
    pub(crate) fn stage(&mut self) -> &mut [Vec<u8>] {
        &mut self.staged
    }

    /// Keeps the row that was staged.
    pub(crate) fn keep_staged(&mut self, random: &mut Random) {
        let row = added(&mut self.rows, &mut self.spare, random).numbered(&mut self.next);
        row.set(self.staged.iter().map(Vec::as_slice));
    }

    /// Takes a row, each with the same probability; its number, if it stays: it is in use until that is
    /// [released](Self::release). Without any row the variables are not set.
    ///
    /// Where it `leaves`, no other iteration gets it or has it: a resource that is deleted must not be
    /// changed by another one. Where nearly all rows are in use there is none. Rows that the iteration has
    /// `picked` itself are not in its own way.
    ///
    /// # Panics
    /// If a variable of its columns is not there.
    pub(crate) fn give(
        &mut self,
        leaves: bool,
        picked: &[u64],
        random: &mut Random,
        variables: &mut [Vec<u8>],
        known: &mut [bool],
    ) -> Option<u64> {
        let count = self.rows.len() as u64;
        let mut places = (0..if count == 0 { 0 } else { DRAWS }).map(|_| random.below(count) as usize);
        let is_free = |place: &usize| !leaves || !self.is_used_by_others(self.rows[*place].number, picked);
        let Some(place) = places.find(is_free) else {
            for &variable in &self.columns {
                variables[usize::from(variable)].clear();
                known[usize::from(variable)] = false;
            }
            return None;
        };
        for (value, &variable) in self.rows[place].values(self.columns.len()).zip(&self.columns) {
            let variable = usize::from(variable);
            variables[variable].clear();
            variables[variable].extend_from_slice(value);
            known[variable] = true;
        }
        if leaves {
            self.spare.push(self.rows.swap_remove(place));
            return None;
        }
        let number = self.rows[place].number;
        *self.in_use.entry(number).or_default() += 1;
        Some(number)
    }

    fn is_used_by_others(&self, number: u64, picked: &[u64]) -> bool {
        let Some(&users) = self.in_use.get(&number) else { return false };
        users as usize > picked.iter().filter(|own| **own == number).count()
    }

    /// An iteration that has picked this row is over.
    pub(crate) fn release(&mut self, number: u64) {
        if let Some(users) = self.in_use.get_mut(&number) {
            *users -= 1;
            if *users == 0 {
                self.in_use.remove(&number);
            }
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
        Pool::new(&spec([].into()), 0, Shard::WHOLE)
    }

    fn spec(rows: Arc<[Row]>) -> PoolSpec {
        PoolSpec { name: "orders".to_owned(), columns: vec![2, 0], rows }
    }

    fn keep(pool: &mut Pool, random: &mut Random, number: usize) {
        let value = |name: &str| format!("{name}{number}").into_bytes();
        pool.keep(random, &[value("a"), b"other".to_vec(), value("c")]);
    }

    /// Returns the values to which a row sets the variables.
    fn given(pool: &mut Pool, leaves: bool, random: &mut Random) -> Option<[String; 2]> {
        let (mut variables, mut known) = (vec![b"old".to_vec(); 3], vec![true, false, true]);
        let number = pool.give(leaves, &[], random, &mut variables, &mut known);
        number.into_iter().for_each(|number| pool.release(number));
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
    fn what_others_use_is_not_taken() {
        let (mut pool, mut random) = (pool(), Random::new(4, 0));
        (0..8).for_each(|number| keep(&mut pool, &mut random, number));
        let (mut variables, mut known) = (vec![Vec::new(); 3], vec![false; 3]);
        let mut give = |pool: &mut Pool, leaves, picked: &[u64]| {
            let number = pool.give(leaves, picked, &mut random, &mut variables, &mut known);
            (number, known[0].then(|| variables[0].clone()))
        };
        // Two users of one row; two others are used once.
        let (first, value) = give(&mut pool, false, &[]);
        let first = first.expect("it stays");
        *pool.in_use.get_mut(&first).expect("it is in use") += 1;
        let mut used = vec![value];
        while pool.in_use.len() < 3 {
            used.push(give(&mut pool, false, &[]).1);
        }
        let taken: Vec<_> = (0..5).map(|_| give(&mut pool, true, &[])).collect();
        assert!(taken.iter().all(|(number, value)| number.is_none() && !used.contains(value)), "{taken:?}");
        assert_eq!(pool.rows.len(), 3);
        // A user that picked a row may use it, although another user of that row has ended.
        pool.release(first);
        assert!(pool.is_used_by_others(first, &[]) && !pool.is_used_by_others(first, &[first]));
        assert_eq!((give(&mut pool, true, &[]), pool.rows.len()), ((None, None), 3), "all are in use");
        assert!(give(&mut pool, true, &[first; 2]).1.is_some(), "its own");
        let numbers: Vec<u64> = pool.in_use.keys().copied().collect();
        for number in numbers {
            (0..9).for_each(|_| pool.release(number));
        }
        assert!(pool.in_use.is_empty());
    }

    #[test]
    fn what_is_there_at_first_is_dealt_to_the_workers() {
        let row = |number: usize| vec![format!("c{number}").into_bytes(), format!("a{number}").into_bytes()];
        // One of them does not fit.
        let rows: Vec<Row> = (0..10).map(row).chain([vec![b"x".to_vec()]]).collect();
        let (spec, mut random, mut all) = (spec(rows.into()), Random::new(3, 0), BTreeSet::new());
        for index in 0..3 {
            let mut pool = Pool::new(&spec, 0, Shard { index, of: 3 });
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
        // Some of the last 50,000 were replaced by later ones: 1 - exp(-1/2) of 100,000 were replaced.
        assert!((38_000..41_000).contains(&late), "{late}");
    }
}
