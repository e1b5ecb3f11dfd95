"""Runs in gdb, before the program: compares the call stack of each sample with gdb's own walk.

STACKS names the file for the result, as JSON: how many stacks were the same, how many frames they
had, and the first of the others. The program is killed after MOST samples.
"""
import json
import os

import gdb

# Frames that gdb makes up: the stack has none for them.
MADE_UP = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


def code_of(process):
    """The ranges in which there is code."""
    with open("/proc/%d/maps" % process, encoding="utf-8") as maps:
        lines = [line.split() for line in maps]
    return [tuple(int(end, 16) for end in line[0].split("-")) for line in lines if "x" in line[1]]


def gdbs_walk(frame):
    addresses = []
    code = code_of(gdb.selected_inferior().pid)
    try:
        while frame is not None:
            # Past the first function of a thread gdb goes on with what it finds on the stack.
            if not any(begin <= frame.pc() < end for begin, end in code):
                break
            if frame.type() not in MADE_UP:
                addresses.append(frame.pc())
            frame = frame.older()
    except gdb.error:
        pass
    return addresses


class Sample(gdb.Breakpoint):
    same = frames = samples = 0
    other = None

    def stop(self):
        frame = gdb.selected_frame()
        stack = frame.read_var("stack")
        ours = [int(stack["addresses"][i]) for i in range(int(stack["count"]))]
        most = int(stack["addresses"].type.range()[1]) + 1
        theirs = gdbs_walk(frame)
        # Before it are hakmem's own functions.
        if ours and ours[0] in theirs:
            theirs = theirs[theirs.index(ours[0]):][:most]
        Sample.samples += 1
        if ours == theirs:
            Sample.same += 1
            Sample.frames += len(ours)
        elif Sample.other is None:
            Sample.other = [[gdb.execute("info symbol %d" % address, to_string=True).strip() for address in side]
                            for side in (ours, theirs)]
        return Sample.samples >= int(os.environ["MOST"])


gdb.execute("set confirm off")
gdb.execute("set breakpoint pending on")
gdb.execute("set backtrace past-main on")
gdb.execute("set startup-with-shell off")
Sample("hakmem::HeapProfile::Add")
gdb.execute("run")
with open(os.environ["STACKS"], "w", encoding="utf-8") as result:
    json.dump({"samples": Sample.samples, "same": Sample.same, "frames": Sample.frames, "other": Sample.other}, result)
if gdb.selected_inferior().pid != 0:
    gdb.execute("kill")
