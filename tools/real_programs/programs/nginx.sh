# title: nginx under ab: static files, gzip, a proxy, reloads
# heavy: yes
# serves: nginx.* ab
# seconds: 180
# needs: nginx ab pgrep
set -euo pipefail
server=
stop() { [[ -z $server ]] || kill -QUIT "$server" 2>/dev/null || true; }
trap stop EXIT
mkdir -p files logs
for number in {1..30}; do seq $((number * number * 20)) > "files/$number.txt"; done
user=
[[ $(id -u) != 0 ]] || user="user nobody $(id -gn nobody);"
cat > nginx.conf <<CONF
$user
daemon off;
worker_processes 2;
pid $PWD/nginx.pid;
error_log stderr;
events { worker_connections 256; }
http {
  access_log $PWD/logs/access.log;
  client_body_temp_path $PWD/tmp/body;
  proxy_temp_path $PWD/tmp/proxy;
  fastcgi_temp_path $PWD/tmp/fastcgi;
  uwsgi_temp_path $PWD/tmp/uwsgi;
  scgi_temp_path $PWD/tmp/scgi;
  gzip on;
  gzip_min_length 100;
  default_type text/plain;
  server {
    listen unix:$PWD/back.sock;
    root $PWD/files;
  }
  server {
    listen 127.0.0.1:$FREE_PORT;
    root $PWD/files;
    location /proxied/ { proxy_pass http://unix:$PWD/back.sock:/; }
  }
}
CONF
nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf" &
server=$!
address=http://127.0.0.1:$FREE_PORT
# fetch PATH [HEADER]: the answer's body.
fetch() {
  exec 3<>"/dev/tcp/127.0.0.1/$FREE_PORT" || return 1
  printf 'GET %s HTTP/1.0\r\n%s\r\n\r\n' "$1" "${2:-X: y}" >&3
  sed '1,/^\r$/d' <&3
  exec 3<&-
}
until (fetch /1.txt >/dev/null) 2>/dev/null; do kill -0 "$server"; done
load() { ab -q "$@" | grep -E '^(Document Length|Complete requests|Failed requests|Non-2xx)'; }
# Once no old worker is left to close a connection that ab still uses.
reload() {
  local old
  old=$(pgrep -P "$server" | sort)
  nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf" -s reload
  while [[ -n $(comm -12 <(echo "$old") <(pgrep -P "$server" | sort)) ]]; do kill -0 "$server"; done
}
load -n 8000 -c 20 -k "$address/5.txt"
load -n 3000 -c 20 -H 'Accept-Encoding: gzip' "$address/20.txt"
reload
load -n 3000 -c 20 -k "$address/proxied/12.txt"
reload
for number in {1..30}; do
  fetch "/$number.txt" | cmp - "files/$number.txt"
  fetch "/proxied/$number.txt" 'Accept-Encoding: gzip' | sha256sum
done
fetch /missing.txt
kill -QUIT "$server"
wait "$server"
server=
