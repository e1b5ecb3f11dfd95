-- Work for sqlite3: each query's answer follows from what was inserted.
PRAGMA cache_size = -32000;
CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, name TEXT, amount REAL, note BLOB);
CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT UNIQUE, region TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
  INSERT INTO owner SELECT i, printf('owner-%05d', i * 7919 % 100003), char(65 + i % 7) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
  INSERT INTO item SELECT i, 1 + i * 31 % 2000, printf('%.*c-%d', 1 + i % 40, 'x', i * 48271 % 65537),
    (i * 16807 % 100000) / 100.0, CASE WHEN i % 100 = 0 THEN zeroblob(i % 5000) END FROM n;
COMMIT;
CREATE INDEX item_owner ON item (owner, amount);
CREATE INDEX item_name ON item (name COLLATE NOCASE);
ANALYZE;
SELECT count(*), sum(amount), max(length(note)) FROM item;
SELECT region, count(*), round(sum(amount), 2), min(item.name) FROM item JOIN owner ON owner.id = item.owner
  GROUP BY region ORDER BY region;
SELECT owner.name, round(total, 2), place FROM (
  SELECT owner, sum(amount) AS total, rank() OVER (ORDER BY sum(amount) DESC, owner) AS place FROM item GROUP BY owner)
  JOIN owner ON owner.id = owner WHERE place <= 10 ORDER BY place;
SELECT count(DISTINCT substr(name, 1, 20)), count(DISTINCT upper(name)) FROM item;
SELECT length(group_concat(name, ',')) FROM (SELECT name FROM item ORDER BY name DESC LIMIT 50000);
SELECT length(json_group_array(json_object('id', id, 'name', name))) FROM item WHERE id % 10 = 0;
SELECT sum(json_extract(value, '$.a')) FROM json_each((
  SELECT json_group_array(json_object('a', id, 'b', name)) FROM item WHERE id <= 20000));
SELECT count(*) FROM item AS a JOIN item AS b ON a.name = b.name AND a.id < b.id WHERE a.owner < 200;
BEGIN;
UPDATE item SET name = name || '-' || owner WHERE owner % 3 = 0;
DELETE FROM item WHERE amount < 250;
SELECT changes();
SAVEPOINT half;
DELETE FROM item WHERE owner > 1000;
ROLLBACK TO half;
COMMIT;
CREATE VIRTUAL TABLE search USING fts5(name);
INSERT INTO search SELECT name FROM item WHERE id % 5 = 0;
SELECT count(*) FROM search WHERE search MATCH 'xxxx*';
DROP INDEX item_name;
VACUUM;
PRAGMA integrity_check;
SELECT count(*), sum(id), sum(length(name)) FROM item;
