#!/bin/bash
# OpenJDK 17 (17.0.15, x86-64): to write an array by a channel leaves a copy of it
# outside the heap for each thread that did.
#
# A good guess: ByteBuffer.wrap is a buffer in the heap, so who makes no direct buffer
# has none, and what the write needs goes with it. Seen: the array is copied into a
# direct buffer, which the thread keeps for its next write, however large it is. Each
# thread keeps its own until it ends. A collection frees none, and the heap shows none:
# only the pool "direct" and malloc. jdk.nio.maxCachedBufferSize bounds it, and has no
# bound unless it is set.
#
# Seen: MiB of direct buffers after eight threads have written 32 MiB each, and
# collections: 256; with -Djdk.nio.maxCachedBufferSize=1048576 0.
#
# Needs a JDK 17. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >Write.java <<'JAVA'
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;

public class Write {
  static final CountDownLatch written = new CountDownLatch(8);
  static final byte[] array = new byte[32 << 20];

  static void write() {
    var nowhere = Path.of("/dev/null");
    try (var channel = FileChannel.open(nowhere, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.wrap(array));
      written.countDown();
      Thread.currentThread().join();
    } catch (Exception exception) {
      throw new RuntimeException(exception);
    }
  }

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 8; ++i) {
      var thread = new Thread(Write::write);
      thread.setDaemon(true);
      thread.start();
    }
    written.await();
    System.gc();
    System.gc();
    for (var pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
      if (!pool.getName().equals("direct")) continue;
      System.out.println(pool.getMemoryUsed() >> 20);
    }
  }
}
JAVA
javac Write.java
unset JAVA_TOOL_OPTIONS
kept=$(java -Xmx512m Write)
bounded=$(java -Xmx512m -Djdk.nio.maxCachedBufferSize=1048576 Write)
echo "$(java --version | head -n 1): MiB of direct buffers after eight threads'" \
  "writes: $kept; with a bound: $bounded"
((kept >= 250 && bounded < 10)) || { echo "not what was seen"; exit 1; }
