#!/bin/bash
# Runs servers and interpreters of Debian sid in a root of their own, on libc's malloc, or the
# one they bring, and on hakmem's release and hardened variants, and compares what they say.
#   tools/newest_userland.sh [--keep] [NAME...]
# NAME is a script of tools/real_programs: without one, all that are named below. --keep takes the
# root of an earlier run as it is, instead of sid's packages of today. As root, or as a user with sudo; needs
# debootstrap. HAK_CACHE and HAK_BAZEL: see build_command.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
keep=
if [[ ${1-} == --keep ]]; then
  keep=yes
  shift
fi
programs=(redis valkey named fd postgres mariadb python_newest node php ruby java faketime fakeroot ucx perl clisp)
(( ! $# )) || programs=("$@")
who=newest_userland
. tools/system_roots.sh

packages="bind9 bind9-dnsutils clisp fakeroot faketime fd-find mariadb-client mariadb-server nodejs openjdk-26-jdk-headless
  perl php-cli postgresql procps python3 python3.15 redis-server redis-tools ruby ucx-utils valkey-server valkey-tools"
# A mirror may be older than sid's lists are valid. Nothing is to be started.
# shellcheck disable=SC2086
install="printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  apt-get -o Acquire::Check-Valid-Until=false update
  apt-get install -y --no-install-recommends $(echo $packages)
  apt-get clean"

[[ -n $keep ]] || "${sudo[@]}" rm -rf "$cache/roots/newest" "$cache/roots/sid"
root=$(kept_root newest sid "$install")

read -ra bazel <<<"${HAK_BAZEL:-bazel}"
mkdir -p "$cache/bazel"
"${bazel[@]}" build --noshow_progress "--disk_cache=$cache/bazel" //allocator:preload_release //allocator:preload_hardened \
  >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "the libraries do not build"; }

work=$root/opt/hakmem
"${sudo[@]}" rm -rf "$work"
"${sudo[@]}" mkdir -p "$work"
"${sudo[@]}" cp bazel-bin/allocator/libhakmem.so bazel-bin/allocator/libhakmem-hardened.so "$work"
"${sudo[@]}" cp -r tools/real_programs tools/program_file.py tools/statistics_file.py "$work"
arguments=()
for program in "${programs[@]}"; do arguments+=(--only "$program"); done
# What ran: other packages of sid may be there tomorrow.
# shellcheck disable=SC2086,SC2016
inside "$root" dpkg-query -W -f '${Package} ${Version}\n' libc6 $packages

passed=0
failed=0
for library in libhakmem.so libhakmem-hardened.so; do
  echo "on $library:"
  set +e
  inside "$root" python3 /opt/hakmem/real_programs/run.py --library "/opt/hakmem/$library" "${arguments[@]}" | tee "$scratch/output"
  set -e
  read -r ran _ broke _ < <(tail -n 1 "$scratch/output" | grep -E '^[0-9]+ passed, [0-9]+ failed$' || echo 0 - "${#programs[@]}" -)
  passed=$((passed + ran))
  failed=$((failed + broke))
done
echo "$passed passed, $failed failed"
(( failed == 0 ))
