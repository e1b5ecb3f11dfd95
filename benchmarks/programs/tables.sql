-- Tables for queries.sql.
CREATE TABLE owner AS SELECT i AS id, 'owner-' || i * 7919 % 100003 AS name, chr(65 + i % 7) AS region
  FROM generate_series(1, 500) AS i;
CREATE TABLE item AS SELECT i AS id, 1 + i * 31 % 500 AS owner, repeat('x', i % 40) || i * 48271::bigint % 65537 AS name,
    (i * 16807::bigint % 100000) / 100.0 AS amount, jsonb_build_object('a', i, 'b', repeat('y', i % 100)) AS note
  FROM generate_series(1, 8000) AS i;
CREATE INDEX ON item (owner, amount);
ANALYZE;
