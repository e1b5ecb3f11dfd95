import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/** Work for the Java machine: each part prints a line that follows from all it has built. */
public final class Work {
  private static String digest(byte[] data) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data));
  }

  private static String word(Random random) {
    StringBuilder word = new StringBuilder();
    for (int i = random.nextInt(30); i >= 0; --i) word.append((char) ('a' + random.nextInt(26)));
    return word.toString();
  }

  private static void collections() throws Exception {
    Random random = new Random(1);
    Map<String, List<Integer>> map = new TreeMap<>();
    for (int i = 0; i < 200_000; ++i) {
      map.computeIfAbsent(word(random), key -> new ArrayList<>()).add(random.nextInt(1000));
      if (i % 3 == 0)
        map.remove(map.keySet().iterator().next());
    }
    System.out.println(
        "collections " + map.size() + " " + digest(map.toString().getBytes("UTF-8")));
  }

  private static void buffers() throws Exception {
    MessageDigest all = MessageDigest.getInstance("SHA-256");
    for (int round = 0; round < 40; ++round) {
      List<ByteBuffer> held = new ArrayList<>();
      for (int i = 1; i <= 60; ++i) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(i * 1777);
        while (buffer.hasRemaining()) buffer.put((byte) (i * round));
        held.add(buffer.flip());
      }
      held.forEach(all::update);
    }
    System.out.println("buffers " + HexFormat.of().formatHex(all.digest()));
  }

  private static void zip() throws Exception {
    Random random = new Random(3);
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 300_000; ++i) text.append(word(random)).append(' ');
    byte[] plain = text.toString().getBytes("UTF-8");
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
      out.write(plain);
    }
    try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(packed.toByteArray()))) {
      System.out.println("zip " + packed.size() + " " + digest(in.readAllBytes()));
    }
  }

  private static void threads() throws Exception {
    var executor = Executors.newFixedThreadPool(8);
    Map<Integer, String> shared = new ConcurrentHashMap<>();
    List<Future<?>> futures = new ArrayList<>();
    for (int task = 0; task < 200; ++task) {
      int seed = task;
      futures.add(executor.submit(() -> {
        Random random = new Random(seed);
        shared.put(seed,
            IntStream.range(0, 500)
                .mapToObj(i -> word(random))
                .sorted()
                .collect(Collectors.joining(",")));
        return null;
      }));
    }
    for (Future<?> future : futures) future.get();
    executor.shutdown();
    for (int i = 0; i < 300; ++i) {
      Thread thread = new Thread(() -> shared.merge(0, "x", String::concat));
      thread.start();
      thread.join();
    }
    System.out.println("threads " + digest(new TreeMap<>(shared).toString().getBytes("UTF-8")));
  }

  private static void expressions() {
    Random random = new Random(5);
    String text =
        IntStream.range(0, 50_000).mapToObj(i -> word(random)).collect(Collectors.joining(" "));
    Pattern pattern = Pattern.compile("\\b([a-m]+)([n-z]*)\\b");
    System.out.println("expressions " + pattern.matcher(text).results().count() + " "
        + pattern.matcher(text).replaceAll("$2$1").hashCode());
  }

  public static void main(String[] arguments) throws Exception {
    collections();
    buffers();
    zip();
    threads();
    expressions();
  }
}
