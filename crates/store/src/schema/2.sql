-- Searches and sweeps beside runs, each with its answer in words and its outcome. What they have is in their
-- result, as `find -o json` writes it; nothing is saved of them beside that.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'run' CHECK (kind IN ('run', 'search', 'sweep'));
ALTER TABLE runs ADD COLUMN answer TEXT;
ALTER TABLE runs ADD COLUMN outcome TEXT;
