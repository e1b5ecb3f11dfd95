# title: fakeroot: owners that are not, kept over processes
# serves: tar stat
# seconds: 60
# needs: fakeroot tar
set -euo pipefail
mkdir tree
for number in {1..200}; do echo "$number" >"tree/$number"; done
fakeroot bash -c 'chown -R 12:34 tree; chown 56:78 tree/7; mknod tree/device c 1 3
  tar --sort=name --mtime=@0 --numeric-owner -cf tree.tar tree
  stat -c "%u %g %F" tree/7 tree/9 tree/device'
tar --numeric-owner -tvf tree.tar | sha256sum
