# Roots of other systems, kept between runs: for the scripts that source this at the
# tree's root, having set `who`. As root, or as a user with sudo. HAK_CACHE: see
# build_command.sh. $scratch is a folder that goes with the script.
# shellcheck shell=bash
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
mkdir -p "$cache"
scratch=$(mktemp -d)
sudo=()
[[ $(id -u) == 0 ]] || sudo=(sudo)
trap '"${sudo[@]}" rm -rf "$scratch"' EXIT

fail() {
  echo "$who: $*" >&2
  exit 1
}

# inside ROOT COMMAND...: with /proc, as programs expect.
inside() {
  local root=$1
  shift
  "${sudo[@]}" unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# bare_root SUITE ROOT: the smallest set of packages of a release of Debian's, or of Ubuntu's, whose
# keys come with a package of its own that this one is known by.
bare_root() {
  local keyring=ubuntu-keyring_2023.11.28.1_all.deb
  case $1 in
    noble)
      curl -fsS -o "$scratch/$keyring" "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/$keyring" &&
        echo "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8  $scratch/$keyring" | sha256sum --check --quiet &&
        dpkg-deb -x "$scratch/$keyring" "$scratch/keyring" &&
        "${sudo[@]}" debootstrap --variant=minbase --keyring="$scratch/keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg" \
          "$1" "$2" http://archive.ubuntu.com/ubuntu /usr/share/debootstrap/scripts/gutsy
      ;;
    *) "${sudo[@]}" debootstrap --variant=minbase "$1" "$2" ;;
  esac
}

# kept_root NAME SUITE COMMAND: prints a root of the smallest set of packages in
# which the command was carried out. It begins as a copy of the root that is called SUITE.
kept_root() {
  local root=$cache/roots/$1
  local make=(bare_root "$2" "$root.new")
  if [[ $(cat "$root/etc/hakmem" 2>/dev/null) != "$3" || ! -x $root/bin/sh ]]; then
    [[ $1 == "$2" ]] || make=("${sudo[@]}" cp -a "$(kept_root "$2" "$2" true)" "$root.new")
    "${sudo[@]}" rm -rf "$root" "$root.new"
    mkdir -p "$cache/roots"
    { "${make[@]}" && inside "$root.new" sh -ec "$3" &&
      inside "$root.new" sh -c 'printf %s "$1" >/etc/hakmem' - "$3" && "${sudo[@]}" mv "$root.new" "$root"; } \
      >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "no root $1"; }
  fi
  echo "$root"
}

# beside ROOT FOLDER COMMAND...: in a kept root, with the folder as /mnt.
beside() {
  "${sudo[@]}" unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc="$1/proc" bash -ec '
    mount --bind "$1" "$0/mnt"
    mount -t tmpfs none "$0/tmp"
    root=$0
    shift
    exec chroot "$root" env -i PATH=/usr/bin:/bin "$@"' "$@"
}
