# title: java: javac, threads, collections, direct buffers, zip
# heavy: yes
# serves: javac java
# seconds: 300
# needs: javac java
set -euo pipefail
cp "$PROGRAMS/Work.java" .
javac -J-Xmx512m Work.java
java -Xmx512m -XX:+UseSerialGC Work
java -Xmx512m -XX:+UseG1GC Work
