#!/bin/bash
# no_defect_in_products_test.sh FUZZER LIBRARY…: the switch of the planted
# defects is in the fuzz target's symbol table, and in no library's.
set -euo pipefail

has_switch() {
  nm "$1" | grep planted_defect >/dev/null
}

if ! has_switch "$1"; then
  echo "$1 has no planted_defect, so this test would find it nowhere" >&2
  exit 1
fi
for library in "${@:2}"; do
  if has_switch "$library"; then
    echo "$library contains planted defects" >&2
    exit 1
  fi
done
