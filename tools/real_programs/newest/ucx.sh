# title: UCX, which rewrites libc's calls for mappings and is to be told of each: growing, moving and freeing large blocks
# serves: python3.* ucx_info
# seconds: 60
# needs: python3 ucx_info
set -euo pipefail
ucx_info -v | head -1
python3 - <<'END'
import ctypes
import glob

# Which loads the other, and is asked for by it.
ctypes.CDLL(glob.glob("/usr/lib/*/libucs.so.0")[0], ctypes.RTLD_GLOBAL)
ucm = ctypes.CDLL(glob.glob("/usr/lib/*/libucm.so.0")[0])
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
UNMAPPED = 1 << 17
# What is called must not allocate: a function that does nothing.
print(ucm.ucm_set_event_handler(UNMAPPED, 0, libc.abs, None))
for start in (100_000, 1 << 20, 5 << 20, 40 << 20):
    block, size = libc.malloc(start), start
    ctypes.memset(block, 7, size)
    for _ in range(4):
        block = libc.realloc(block, size * 2)
        kept = ctypes.string_at(block, size)
        print(size, kept.count(7) == size)
        size *= 2
        ctypes.memset(block, 7, size)
    block = libc.realloc(block, start)
    print(ctypes.string_at(block, start).count(7) == start)
    libc.free(block)
libc.malloc_trim(0)
ucm.ucm_unset_event_handler(UNMAPPED, libc.abs, None)
END
