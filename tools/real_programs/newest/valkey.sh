# title: valkey-server, as redis.sh
# serves: valkey-server|valkey-check-rdb valkey-benchmark valkey-cli
# seconds: 180
# needs: valkey-server valkey-benchmark valkey-cli
exec bash "$PROGRAMS/programs/redis.sh" valkey
