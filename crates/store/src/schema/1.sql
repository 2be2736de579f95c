-- Runs that are over, and those under way. Times are whole nanoseconds; NULL is what a run does not have or
-- has not come to yet.
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'killed')),
    started_at TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    -- Of the process that makes it, as long as it goes on: who it is, and when it was last heard of.
    process TEXT,
    heard_unix_ns INTEGER,
    tool_version TEXT NOT NULL,
    plan_hash TEXT NOT NULL,
    load_checksum TEXT,
    seed INTEGER NOT NULL,
    model TEXT NOT NULL,
    target TEXT NOT NULL,
    duration_s REAL,
    target_per_s REAL,
    achieved_per_s REAL,
    started INTEGER,
    ok INTEGER,
    failed INTEGER,
    timed_out INTEGER,
    response_time_p50_ns INTEGER,
    response_time_p90_ns INTEGER,
    response_time_p99_ns INTEGER,
    response_time_p99_9_ns INTEGER,
    response_time_max_ns INTEGER,
    service_time_p50_ns INTEGER,
    service_time_p90_ns INTEGER,
    service_time_p99_ns INTEGER,
    service_time_p99_9_ns INTEGER,
    service_time_max_ns INTEGER,
    cpu_us_per_request REAL,
    valid INTEGER,
    -- Codes with spaces between them.
    invalid_reasons TEXT,
    -- pass, fail or none.
    thresholds TEXT,
    plan TEXT,
    -- The result as `run -o json` writes it.
    result TEXT,
    -- The whole run with its histograms: what `export -o saved` writes.
    saved BLOB,
    -- What was known at the start, as long as it goes on: JSON.
    beginning TEXT
) STRICT;
CREATE INDEX runs_by_time ON runs (started_unix_ns);
CREATE INDEX runs_by_name ON runs (name, started_unix_ns);
-- A tag without a value has an empty one.
CREATE TABLE tags (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_by_tag ON tags (tag, value);
-- Of runs that go on: one row per interval, JSON as in the result.
CREATE TABLE intervals (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
-- Of runs that go on: what became of the requests of each step in parts of the run, of which neighbours are
-- joined, so that their number is bounded. The kind is 0 for the warm-up, 1 for the measured part, 2 for the
-- drain.
CREATE TABLE parts (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    kind INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    length_ns INTEGER NOT NULL,
    tallies BLOB NOT NULL,
    PRIMARY KEY (run, kind, number)
) STRICT;
