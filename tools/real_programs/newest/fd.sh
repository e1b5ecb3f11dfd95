# title: fd, whose allocator is jemalloc's extended calls: patterns, threads, commands
# serves: fdfind
# seconds: 60
# needs: fdfind
set -euo pipefail
for folder in {1..40}; do
  mkdir -p "tree/$folder/sub"
  for file in {1..30}; do echo "$folder $file" >"tree/$folder/sub/file_$file.txt"; done
done
fdfind --threads 4 'file_.*[37]\.txt$' tree | sort | sha256sum
fdfind --threads 4 --size +4b --changed-within 1d . tree | sort | sha256sum
fdfind --threads 3 'file_12' tree --exec cat {} | sort | sha256sum
fdfind --glob '*_2?.txt' tree --exec-batch wc -c | tail -1
