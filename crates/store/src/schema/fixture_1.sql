INSERT INTO runs (id, name, state, started_at, started_unix_ns, tool_version, plan_hash, seed, model, target)
VALUES ('9e37', 'nightly', 'finished', '2026-03-01T12:00:00.250Z', 1772366400250000000, '0.1.0', 'ab', 7, 'open', 'http://a/');
INSERT INTO tags (run, tag, value) VALUES (1, 'branch', 'main');
