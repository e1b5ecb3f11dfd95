# title: php: arrays, strings, JSON, sorting, with its own allocator and without
# serves: php.*
# seconds: 120
# needs: php
set -euo pipefail
cat >work.php <<'END'
<?php
mt_srand(7);
$rows = [];
for ($i = 0; $i < 60000; $i++) {
  $rows["k" . mt_rand(0, 20000)][] = str_repeat(chr(97 + $i % 26), $i % 300);
}
ksort($rows);
echo hash("sha256", json_encode($rows)), "\n";
echo hash("sha256", serialize(unserialize(serialize($rows)))), "\n";
$text = "";
for ($i = 0; $i < 100000; $i++) $text .= "word$i ";
echo preg_match_all('/\w+7\b/', $text), " ", strlen(gzuncompress(gzcompress($text))), "\n";
class Node { public $next; public $data; }
for ($round = 0; $round < 20; $round++) {
  $first = $node = new Node;
  for ($i = 0; $i < 5000; $i++) { $node->next = new Node; $node = $node->next; $node->data = [$i, "$i"]; }
  $node->next = $first;
}
unset($first, $node);
echo gc_collect_cycles() > 0 ? "collected" : "", "\n";
$object = new SplObjectStorage;
for ($i = 0; $i < 10000; $i++) $object[new Node] = $i;
echo count($object), "\n";
END
php work.php
USE_ZEND_ALLOC=0 php work.php
