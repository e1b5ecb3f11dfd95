# title: node: JSON, maps, buffers, zlib, crypto, worker threads, a child process
# heavy: yes
# serves: node
# seconds: 180
# needs: node
set -euo pipefail
node "$PROGRAMS/work.js"
