# title: ruby: hashes, strings, threads, fork, collections that compact
# serves: ruby.*
# seconds: 120
# needs: ruby
set -euo pipefail
cat >work.rb <<'END'
require "digest"
require "json"
random = Random.new(7)
rows = Hash.new { |hash, key| hash[key] = [] }
60000.times { |i| rows["k#{random.rand(20000)}"] << "x" * (i % 300) }
puts Digest::SHA256.hexdigest(JSON.generate(rows.sort.to_h))
puts (1..100000).map { |i| "word#{i}" }.join(" ").scan(/\w+7\b/).size
threads = (1..6).map { |n| Thread.new { (1..20000).sum { |i| (i * n).to_s.length } } }
puts threads.map(&:value).inspect
GC.compact if GC.respond_to?(:compact)
big = String.new
200.times { |i| big << (i % 256).chr * 100000 }
puts Digest::SHA256.hexdigest(big)
reader, writer = IO.pipe
pid = fork { reader.close; writer.write((1..2000).inject(:*).to_s); writer.close }
writer.close
puts Digest::SHA256.hexdigest(reader.read)
Process.wait(pid)
puts $?.exitstatus
END
ruby work.rb
