-- Work for PostgreSQL: each query's answer follows from what was inserted.
CREATE TABLE owner AS SELECT i AS id, 'owner-' || i * 7919 % 100003 AS name, chr(65 + i % 7) AS region
  FROM generate_series(1, 2000) AS i;
CREATE TABLE item AS SELECT i AS id, 1 + i * 31 % 2000 AS owner, repeat('x', i % 40) || i * 48271::bigint % 65537 AS name,
    (i * 16807::bigint % 100000) / 100.0 AS amount, jsonb_build_object('a', i, 'b', repeat('y', i % 100)) AS note
  FROM generate_series(1, 200000) AS i;
CREATE INDEX ON item (owner, amount);
CREATE INDEX ON item USING gin (note);
ANALYZE;
SELECT count(*), sum(amount), max(length(name)) FROM item;
SELECT region, count(*), sum(amount), min(item.name COLLATE "C") FROM item JOIN owner ON owner.id = item.owner
  GROUP BY region ORDER BY region;
SELECT name, total, place FROM (SELECT owner, sum(amount) AS total, rank() OVER (ORDER BY sum(amount) DESC, owner) AS place
  FROM item GROUP BY owner) AS ranked JOIN owner ON owner.id = owner WHERE place <= 10 ORDER BY place;
SELECT md5(string_agg(name, ',' ORDER BY name COLLATE "C", id)) FROM item;
SELECT sum((note ->> 'a')::bigint) FROM item WHERE note ->> 'b' ~ '^y{50}y*$';
SELECT count(*) FROM item AS a JOIN item AS b ON a.name = b.name AND a.id < b.id;
SELECT md5(array_agg(DISTINCT substr(name, 1, 20) ORDER BY substr(name, 1, 20))::text) FROM item;
DO $$
DECLARE
  total text := '';
BEGIN
  FOR i IN 1 .. 5000 LOOP
    total := md5(total || i);
    BEGIN
      IF i % 100 = 0 THEN RAISE EXCEPTION 'on purpose'; END IF;
    EXCEPTION WHEN raise_exception THEN total := total || '!';
    END;
  END LOOP;
  UPDATE item SET name = total WHERE id % 10 = 0;
END $$;
DELETE FROM item WHERE amount < 250;
VACUUM FULL item;
SELECT count(*), sum(id), md5(string_agg(name, ',' ORDER BY id)) FROM item;
