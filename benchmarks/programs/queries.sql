-- Queries whose answers follow from tables.sql.
SELECT region, count(*), sum(amount), min(item.name COLLATE "C") FROM item JOIN owner ON owner.id = item.owner
  GROUP BY region ORDER BY region;
SELECT md5(string_agg(name, ',' ORDER BY name COLLATE "C", id)) FROM item;
SELECT sum((note ->> 'a')::bigint) FROM item WHERE note ->> 'b' ~ '^y{50}y*$';
SELECT md5(jsonb_agg(note || jsonb_build_object('c', name) ORDER BY id)::text) FROM item WHERE id % 10 = 0;
SELECT count(*) FROM item AS a JOIN item AS b ON a.name = b.name AND a.id < b.id;
