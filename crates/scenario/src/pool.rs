//! Rows of values that iterations keep for others: what a server has created, for whoever reads, changes or
//! deletes it.

use plimsoll_core::Random;

/// What a pool is compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Its name in the plan.
    pub name: String,
    /// The variables (their positions) whose values make a row.
    pub columns: Vec<u16>,
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
    rows: Vec<Row>,
    /// Rows that were taken, for their memory.
    spare: Vec<Row>,
}

/// The values of a row, in the order of the columns.
type Row = Vec<Vec<u8>>;

impl Pool {
    pub(crate) fn new(spec: &PoolSpec) -> Self {
        Self { columns: spec.columns.clone(), rows: Vec::new(), spare: Vec::new() }
    }

    /// Keeps the values that the variables have.
    ///
    /// # Panics
    /// If a variable of its columns is not there.
    pub(crate) fn keep(&mut self, random: &mut Random, variables: &[Vec<u8>]) {
        self.add(random);
        let row = self.rows.last_mut().expect("it was just added");
        for (value, &variable) in row.iter_mut().zip(&self.columns) {
            value.clear();
            value.extend_from_slice(&variables[usize::from(variable)]);
        }
    }

    /// Adds a row, whose values are to be overwritten: in the place of one that is drawn if it is full.
    pub(crate) fn add(&mut self, random: &mut Random) -> &mut [Vec<u8>] {
        if self.rows.len() >= PoolSpec::MOST {
            let place = random.below(self.rows.len() as u64) as usize;
            let row = self.rows.swap_remove(place);
            self.rows.push(row);
        } else {
            self.rows.push(self.spare.pop().unwrap_or_default());
        }
        let row = self.rows.last_mut().expect("it was just pushed");
        row.resize_with(self.columns.len(), Vec::new);
        row
    }

    /// Takes back the row that was added last.
    pub(crate) fn give_up(&mut self) {
        self.spare.extend(self.rows.pop());
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
        for (value, &variable) in self.rows[place].iter().zip(&self.columns) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A pool with the columns 2 and 0 of three variables.
    fn pool() -> Pool {
        Pool::new(&PoolSpec { name: "orders".to_owned(), columns: vec![2, 0] })
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
    fn a_full_pool_keeps_what_comes_and_gives_up_another_row() {
        let (mut pool, mut random) = (pool(), Random::new(2, 0));
        let most = PoolSpec::MOST;
        (0..most + most / 2).for_each(|number| keep(&mut pool, &mut random, number));
        assert_eq!(pool.rows.len(), most);
        let late = pool.rows.iter().filter(|row| row[1][1..].len() >= 6).count();
        // Of the last 50,000 some have given way to each other: 1 - exp(-1/2) of 100,000 were replaced.
        assert!((38_000..41_000).contains(&late), "{late}");
    }
}
