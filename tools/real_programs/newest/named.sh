# title: named, whose memory contexts are jemalloc's extended calls: a zone, queries, a reload
# serves: (named|isc-net).* dig
# seconds: 120
# needs: named dig named-checkzone
set -euo pipefail
server=
stop() { [[ -z $server ]] || kill "$server" 2>/dev/null || true; }
trap stop EXIT
{
  echo '$TTL 300'
  echo '@ SOA ns admin 1 3600 600 86400 300'
  echo '@ NS ns'
  echo 'ns A 127.0.0.1'
  for number in {1..2000}; do echo "host$number A 10.0.$((number / 250)).$((number % 250 + 1))"; done
  for number in {1..200}; do echo "text$number TXT \"$(printf "%0$((number % 200 + 1))d" "$number")\""; done
} >zone
cat >named.conf <<END
options { directory "$PWD"; listen-on port $FREE_PORT { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; pid-file none; };
controls { };
zone "example" { type primary; file "zone"; };
END
named-checkzone example zone >&2
named -g -4 -n 2 -c named.conf >&2 &
server=$!
ask() { dig -p "$FREE_PORT" @127.0.0.1 +tries=1 +time=5 +short "$@"; }
until [[ $(ask ns.example A) == 127.0.0.1 ]]; do kill -0 "$server"; done
for number in {1..2000}; do echo "host$number.example A"; done >questions
for number in {1..200}; do echo "text$number.example TXT"; done >>questions
ask -f questions | sort | sha256sum
ask +tcp example AXFR | sort | sha256sum
kill -HUP "$server"
ask none.example A
ask host77.example A
kill "$server"
wait "$server"
server=
