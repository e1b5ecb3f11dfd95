#!/bin/bash
# libzmq 4.3.5 in pyzmq 27.3.0 (PyPI, CPython 3.11, x86-64): a received message of 100
# bytes that is kept takes more memory than one of 10,000.
#
# A good guess: a message that is not copied (copy=False, or a zmq_msg_t in C) takes
# its size and a header, as it does with inproc. Seen: what a socket receives is read
# into a buffer of 8 KiB, with room behind for the headers of all messages that fit
# into it. Each message from 33 bytes up points into that buffer, and so keeps all of
# it. Messages that come one by one have a buffer each. Below 33 bytes, and from
# 8 KiB up, a message has its own memory. zmq_msg_size has 100, and no figure has the
# rest.
#
# Seen: bytes of malloc for each of 2,000 kept messages, by ipc: of 20 bytes 16, of 100
# 18,183, of 1,000 18,183, of 10,000 10,064; by inproc: of 100 168.
#
# Needs python3 (3.8 and up) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install pyzmq==27.3.0
cat >keep.py <<'PYTHON'
import ctypes

import zmq

COUNT = 2000


class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
                "fordblks keepcost".split()]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Info


def used():
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def show(context, address, size):
    receiver, sender = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    receiver.bind(address)
    sender.connect(address)

    def receive():
        sender.send(bytes(size))
        return receiver.recv(copy=False)

    for _ in range(50):
        receive()
    kept = [None] * COUNT
    before = used()
    for i in range(COUNT):
        kept[i] = receive()
    print((used() - before) // COUNT, end=" ")
    assert all(len(message) == size for message in kept)
    sender.close()
    receiver.close()


context = zmq.Context()
for size in (20, 100, 1000, 10000):
    show(context, f"ipc://{size}.socket", size)
show(context, "inproc://here", 100)
PYTHON
seen=$(env -u LD_PRELOAD venv/bin/python keep.py)
read -r tiny hundred thousand long inproc <<<"$seen"
echo "bytes for each of 20, 100, 1000, 10000; of 100 by inproc: $seen"
((tiny < 100 && hundred > 15000 && thousand > 15000 && long < 11000 && inproc < 300)) ||
  { echo "not what was seen"; exit 1; }
