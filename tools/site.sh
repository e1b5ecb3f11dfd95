#!/bin/bash
# Makes pages of the documents, with a search, to be read from a folder or a server:
# they ask nothing of the network.
#   tools/site.sh OUTPUT_DIRECTORY
# A link that leads nowhere is an error, and so is a document that no list of
# tools/site/index.md has.
set -euo pipefail
if [[ $# != 1 || $1 == -* ]]; then
  echo "usage: tools/site.sh OUTPUT_DIRECTORY" >&2
  exit 2
fi
mkdir -p "$1"
output=$(realpath "$1")
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Sphinx reads a folder as a whole, so it gets what git knows or would add.
mkdir "$scratch/tree"
git ls-files -z --cached --others --exclude-standard -- . ':!fuzz/corpus' ':!*.trace' |
  tar --null --files-from=- --create | tar --extract --directory="$scratch/tree"
mv "$scratch/tree/tools/site/index.md" "$scratch/tree/"
sphinx-build -q -W --keep-going -j auto -c "$scratch/tree/tools/site" -d "$scratch/doctrees" "$scratch/tree" "$output"
