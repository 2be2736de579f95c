//! The tables, and how a store of an earlier version gets those of this one.

use rusqlite::{Connection, TransactionBehavior};

/// In the header of the file, so that the file can be identified: "PLIM".
pub const APPLICATION_ID: u32 = 0x504c_494d;

/// The steps from each version to the next, the first from an empty file to version 1. Released ones are
/// never changed: another schema is another step. `schemas_are_those_of_their_versions` holds them.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The version of the schema that this program writes.
pub const VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings a store that has version `from` to that of `migrations`, in one transaction. Another process may
/// have done so meanwhile.
pub(crate) fn migrate(db: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    if version(db)? >= migrations.len() {
        return Ok(());
    }
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in migrations.iter().skip(version(&step)?) {
        step.execute_batch(migration)?;
    }
    step.pragma_update(None, "application_id", APPLICATION_ID)?;
    step.pragma_update(None, "user_version", migrations.len().max(version(&step)?) as u32)?;
    step.commit()
}

/// The version of a store; 0 of one without tables.
pub(crate) fn version(db: &Connection) -> rusqlite::Result<usize> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(db: &Connection) -> String {
        let mut statement =
            db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap().join(";\n")
    }

    fn of_version(version: usize) -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &MIGRATIONS[..version]).unwrap();
        db
    }

    /// A change of the tables without a new version is found here: add a migration instead of accepting
    /// another snapshot of a version that was released.
    #[test]
    fn schemas_are_those_of_their_versions() {
        for number in 1..=MIGRATIONS.len() {
            let db = of_version(number);
            assert_eq!(version(&db).unwrap(), number);
            insta::assert_snapshot!(format!("schema_{number}"), tables(&db));
        }
    }

    #[test]
    fn a_store_of_each_version_comes_to_this_one_and_keeps_its_runs() {
        for number in 1..=MIGRATIONS.len() {
            let mut db = of_version(number);
            db.execute_batch(include_str!("schema/fixture_1.sql")).unwrap();
            migrate(&mut db, MIGRATIONS).unwrap();
            assert_eq!(tables(&db), tables(&of_version(MIGRATIONS.len())));
            let names = "SELECT group_concat(name || ' ' || tag) FROM runs JOIN tags ON run = number";
            let names: String = db.query_one(names, [], |row| row.get(0)).unwrap();
            assert_eq!(names, "nightly branch");
        }
    }

    /// A migration of a later version is applied once, after those that were applied before, and either
    /// completely or not at all.
    #[test]
    fn steps_are_taken_once_and_wholly() {
        let later =
            [MIGRATIONS, &["ALTER TABLE runs ADD COLUMN note TEXT; UPDATE runs SET note = 'x'"]].concat();
        let mut db = of_version(MIGRATIONS.len());
        db.execute_batch(include_str!("schema/fixture_1.sql")).unwrap();
        let broken = [&later[..], &["CREATE TABLE more (a); SELECT nothing FROM nowhere"]].concat();
        assert!(migrate(&mut db, &broken).is_err());
        let latest = MIGRATIONS.len();
        assert_eq!((version(&db).unwrap(), tables(&db)), (latest, tables(&of_version(latest))));
        migrate(&mut db, &later).unwrap();
        migrate(&mut db, &later).unwrap();
        let note: String = db.query_one("SELECT note FROM runs", [], |row| row.get(0)).unwrap();
        assert_eq!((version(&db).unwrap(), note), (latest + 1, "x".to_owned()));
        // A program of an earlier version changes nothing of it.
        migrate(&mut db, MIGRATIONS).unwrap();
        assert_eq!(version(&db).unwrap(), latest + 1);
    }
}
