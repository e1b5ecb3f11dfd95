#!/bin/bash
# Bullet 3.24 (Debian libbullet-dev 3.24+dfsg-2, x86-64): a world without a body takes
# more than 4 MiB, nearly all of it before there is a world.
#
# A good guess: a configuration is a few numbers, an empty world some lists, and memory
# comes with bodies and their contacts. Seen: the usual configuration makes two pools in
# its constructor, of 4,096 contacts and of 4,096 algorithms for pairs. The list of free
# places is written through each pool, so all pages are in memory. A program with a
# world for each level, test or simulated robot pays this for each. With pools of 64
# places a configuration takes a sixtieth.
#
# Seen: KiB of malloc for a default configuration 4297, in memory 4296; for all the rest
# of a world 22; for a configuration with pools of 64 places 68.
#
# Needs g++, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libbullet-dev=3.24+dfsg-2 \
  libbullet3.24=3.24+dfsg-2
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >world.cc <<'CC'
#include <bullet/btBulletDynamicsCommon.h>
#include <malloc.h>

#include <cstdio>
#include <fstream>
#include <string>

size_t Used() {
  struct mallinfo2 figures = mallinfo2();
  return figures.uordblks + figures.hblkhd;
}

size_t InMemoryKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") break;
  }
  size_t kib = 0;
  status >> kib;
  return kib;
}

int main() {
  InMemoryKib();  // its own first memory
  size_t before = Used(), in_memory = InMemoryKib();
  auto* usual = new btDefaultCollisionConfiguration;
  size_t configured = Used();
  in_memory = InMemoryKib() - in_memory;
  auto* dispatcher = new btCollisionDispatcher(usual);
  auto* broad = new btDbvtBroadphase;
  auto* solver = new btSequentialImpulseConstraintSolver;
  auto* world = new btDiscreteDynamicsWorld(dispatcher, broad, solver, usual);
  size_t made = Used();
  btDefaultCollisionConstructionInfo info;
  info.m_defaultMaxPersistentManifoldPoolSize = 64;
  info.m_defaultMaxCollisionAlgorithmPoolSize = 64;
  auto* small = new btDefaultCollisionConfiguration(info);
  size_t all = Used();
  std::printf("%zu %zu %zu %zu %d\n", (configured - before) >> 10, in_memory,
              (made - configured) >> 10, (all - made) >> 10,
              world->getNumCollisionObjects() + (small == nullptr));
}
CC
g++ -O1 -I package/usr/include -I package/usr/include/bullet -o world world.cc \
  "$libraries"/libBulletDynamics.so.3.24 "$libraries"/libBulletCollision.so.3.24 \
  "$libraries"/libLinearMath.so.3.24
read -r usual in_memory world small bodies < <(LD_LIBRARY_PATH=$libraries ./world)
echo "KiB of a configuration $usual, in memory $in_memory, of a world with $bodies" \
  "bodies $world; of a configuration with pools of 64 $small"
((bodies == 0 && usual > 4200 && in_memory > 4000 && world < 100 && small < 200)) ||
  { echo "not what was seen"; exit 1; }
