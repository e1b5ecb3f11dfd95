# title: git: commits, branches, merge, gc, fsck, clone, blame, log on a repository it makes
# serves: git
# seconds: 240
# needs: git perl
set -euo pipefail
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
clock=1000000000
commit() {
  clock=$((clock + 60))
  GIT_AUTHOR_DATE="$clock +0000" GIT_COMMITTER_DATE="$clock +0000" git commit -q -m "$1"
}
# change SEED: rewrites parts of many files, always in the same way.
change() {
  perl -e '
    my $s = shift;
    sub r { $s = ($s * 1103515245 + 12345) % 2147483648; int($s / 65536) }
    for my $f (map { r() % 200 } 1 .. 40) {
      mkdir "d" . $f % 10;
      my $name = "d" . $f % 10 . "/f$f.txt";
      my @lines;
      if (open my $in, "<", $name) { @lines = <$in> }
      push @lines, "line " . r() . " of $f\n" for 1 .. 30;
      $lines[r() % @lines] = "changed " . r() . "\n" for 1 .. 5;
      open my $out, ">", $name or die "$name: $!";
      print $out @lines;
    }
    open my $out, ">", "blob" or die; print $out pack("N*", map { r() * $_ } 1 .. 300000);
  ' "$1"
}

git init -q -b main repository
cd repository
for number in {1..30}; do
  change "$number"
  git add -A
  commit "Change $number"
  (( number % 10 )) || git tag "v$number"
done
git checkout -q -b side v20
echo side > side.txt
git add side.txt
commit "A side"
git checkout -q main
GIT_COMMITTER_DATE='1100000000 +0000' GIT_AUTHOR_DATE='1100000000 +0000' \
  git merge -q --no-ff -m "Merge the side" side
git log --stat --format='%H %s' | sha256sum
git log -p | sha256sum
git -c pack.threads=4 gc -q --aggressive --prune=now
git fsck --full --strict --no-progress
git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
git clone -q --no-local . ../clone
git -C ../clone rev-parse HEAD
git -C ../clone fsck --full --no-progress
git -C ../clone diff --stat v10 v30 | tail -1
git -C ../clone diff v10 v30 | sha256sum
git -C ../clone grep -c changed v30 -- d3 | sha256sum
git -C ../clone archive v30 | sha256sum
for file in $(git ls-files 'd*/*' | head -40); do git blame -w -M "$file"; done | sha256sum
git rev-list --all --objects | sort | sha256sum
