# Objects, strings and hashes in ruby: work.rb ROUNDS. Prints a line per round.
require 'digest'
require 'json'
require 'set'

Item = Struct.new(:id, :name, :tags)

class Numbers
  def initialize(seed)
    @state = seed
  end

  def take(bound)
    @state = (@state * 1103515245 + 12345) & 0x7fffffff
    (@state >> 8) % bound
  end
end

def word(numbers)
  Array.new(3 + numbers.take(30)) { (97 + numbers.take(26)).chr }.join
end

def round(seed)
  numbers = Numbers.new(seed)
  items = Array.new(20_000) { |i| Item.new(i, word(numbers), [numbers.take(50), numbers.take(9).to_s]) }
  groups = items.group_by { |item| item.name[0, 2] }
  groups.delete_if { |key, _| key < 'f' }
  text = JSON.generate(groups.transform_values { |list| list.map(&:to_a) })
  again = JSON.parse(text)
  lines = again.flat_map { |key, list| list.map { |id, name, tags| "#{key} #{id} #{name.capitalize} #{tags.join('-')}" } }
  long = +''
  lines.sort.each { |line| long << line.gsub(/[aeiou]+/) { |vowels| vowels.upcase.reverse } << "\n" }
  set = Set.new(long.scan(/\w{4,8}/))
  big = (1..600).inject(:*) / (1..400).inject(:*)
  [again.size, set.size, big.to_s.size, Digest::SHA256.hexdigest(long)[0, 16]].join(' ')
end

1.upto(ARGV.fetch(0).to_i) { |seed| puts round(seed) }
