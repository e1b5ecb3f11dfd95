# Work for perl: each part prints a line that follows from all it has built.
use strict;
use warnings;
use threads;
use Digest::SHA qw(sha256_hex);
use Storable qw(freeze thaw dclone);

my $state = 12345;
sub next_number {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return int($state / 65536);
}

sub words {
    my ($count) = @_;
    return map { join '', map { chr(97 + next_number() % 26) } 1 .. 1 + next_number() % 12 } 1 .. $count;
}

# A hash that grows, shrinks and grows again.
my %count;
$count{$_}++ for words(60000);
delete $count{$_} for grep { /^[a-m]/ } keys %count;
$count{$_} .= 'x' x (length $_) for words(30000);
print "hash ", scalar(keys %count), " ", sha256_hex(join ',', map { "$_=$count{$_}" } sort keys %count), "\n";

# Nested structures, copied, frozen and thawed.
my $tree = {};
for my $word (words(20000)) {
    my $node = $tree;
    $node = $node->{$_} //= {} for split //, $word;
    push @{ $node->{''} }, $word;
}
local $Storable::canonical = 1;
my $copy = dclone($tree);
undef $tree;
my $frozen = freeze($copy);
print "tree ", length($frozen), " ", sha256_hex(freeze(thaw($frozen))), "\n";

# Regular expressions over a long string, which is then rewritten in place.
my $text = join ' ', words(80000);
my $vowels = () = $text =~ /[aeiou]+/g;
(my $changed = $text) =~ s/\b(\w)(\w*)\b/\u$2$1/g;
print "text $vowels ", sha256_hex($changed), "\n";

# Sorting, closures, strings that grow to megabytes.
my @sorted = sort { length $a <=> length $b || $a cmp $b } split / /, $changed;
my @closures = map { my $n = $_; sub { $n += shift; $n } } 1 .. 20000;
my $sum = 0;
$sum += $closures[ $_ % @closures ]->($_) for 1 .. 100000;
my $long = '';
$long .= substr($sorted[ $_ % @sorted ], 0, 3) x 7 for 1 .. 200000;
print "sort $sum ", length($long), " ", sha256_hex($long), "\n";

# Threads: each is a copy of the whole interpreter.
sub build {
    my ($seed) = @_;
    my %own;
    $own{ ($seed * $_) % 10007 } .= "$_," for 1 .. 20000;
    return sha256_hex(join ';', map { "$_$own{$_}" } sort keys %own);
}
my @threads = map { threads->create(\&build, $_) } 1 .. 4;
print "thread $_\n" for map { $_->join } @threads;

# fork, with what the parent has built.
for my $number (1 .. 4) {
    my $child = open(my $pipe, '-|') // die "fork: $!";
    if (!$child) {
        my @part = grep { length($_) == $number } @sorted;
        print sha256_hex(join ',', @part), "\n";
        exit 0;
    }
    print "child $number ", scalar(<$pipe>);
    close $pipe or die "child $number: status $?";
}
