// The knowledge itself. To add an entry: its remedies, then a row in kTable; a
// test holds the table against the details that hakmem has, and
// docs/failures.md against the table.
//
// Every command here can be copied as it stands; whoever changes one has run
// it.

#include <span>

#include "tools/hakmem/advice.h"

namespace hakmem::tools {
namespace {

constexpr Remedy kSize[] = {
    {"The program",
     "Look at how the size is computed at the call site below. A size close "
     "to 18446744073709551615 is a negative number that became unsigned: "
     "check for it before the call. A size of a few TiB is often a length "
     "read from damaged or foreign input, or a number of bytes counted in "
     "bits."},
    {"The compiler",
     "Have the mistake reported where it is made (clang; gcc and clang warn "
     "of the conversion with -Wsign-conversion).",
     "clang++ -g -fsanitize=implicit-conversion,unsigned-integer-overflow …"},
};

constexpr Remedy kAlignment[] = {
    {"The program",
     "Ask for the alignment that is needed: 64 is a cache line, 4096 a page, "
     "2097152 a huge page. Larger ones are nearly always size and alignment "
     "in the wrong order: it is aligned_alloc(alignment, size), but "
     "posix_memalign(&pointer, alignment, size)."},
};

constexpr Remedy kOverflow[] = {
    {"The program",
     "Check the number of elements before the call: it is a negative number "
     "that became unsigned, or came from input that nobody checked. hakmem "
     "refused what would have been a block that is too small."},
};

constexpr Remedy kMaxAlloc[] = {
    {"hakmem",
     "Raise the limit, or leave the variable out (then there is none), where "
     "the program is started.",
     "export HAKMEM_MAX_ALLOC={needed_number}"},
    {"systemd", "In the unit (systemctl edit UNIT):",
     "[Service]\nUnsetEnvironment=HAKMEM_MAX_ALLOC"},
    {"The program",
     "If no request should be that large, the call site below is where to "
     "look."},
};

constexpr Remedy kRegion[] = {
    {"The program",
     "Live blocks really take up terabytes of addresses, or other mappings "
     "lie in their way. See what is mapped, and what holds the live bytes.",
     "awk '{print $6}' /proc/{pid}/maps | sort | uniq -c | sort -n | tail"},
    {"The system",
     "Under valgrind, an emulator or a kernel with 39-bit addresses there is "
     "less room. Run the program without them to see whether it is that."},
};

constexpr Remedy kHeapLimit[] = {
    {"hakmem",
     "Raise the limit, or leave the variable out (then there is none), where "
     "the program is started.",
     "export HAKMEM_HEAP_LIMIT={suggested_mib}M"},
    {"hakmem run", "The same for one run:",
     "hakmem run --limit={suggested_mib}M -- PROGRAM …"},
    {"systemd", "In the unit (systemctl edit UNIT):",
     "[Service]\nEnvironment=HAKMEM_HEAP_LIMIT={suggested_mib}M"},
    {"Kubernetes", "In the container's specification:",
     "env:\n- name: HAKMEM_HEAP_LIMIT\n  value: \"{suggested_mib}M\""},
    {"The program",
     "If it should get by with this limit: {live} were live and {cached} "
     "cached when it failed. Where the live bytes are far below the limit, "
     "free memory lies in pieces; HAKMEM_DECAY_MS=0 returns it sooner."},
};

constexpr Remedy kMetadata[] = {
    {"The program",
     "hakmem's own tables are as large as the greatest address space it "
     "serves. Very many threads that each hold memory are the usual reason: "
     "count them.",
     "ls /proc/{pid}/task | wc -l"},
    {"hakmem", "Keep less per thread.", "export HAKMEM_DEPOT=0"},
};

constexpr Remedy kMaxMapCount[] = {
    {"The machine, now",
     "As root; holds until the next boot. No restart is "
     "needed: programs that run have it at once.",
     "sysctl -w vm.max_map_count={suggested_number}"},
    {"The machine, for good", "As root:",
     "echo vm.max_map_count={suggested_number} > "
     "/etc/sysctl.d/90-max-map-count.conf && sysctl --system"},
    {"Docker",
     "The setting belongs to the host, not to the container: set it there, "
     "as above. (docker run --sysctl refuses it.)"},
    {"Kubernetes",
     "Set it on the node, as above, or by a privileged init container; it is "
     "not among the sysctls that securityContext can set.",
     "initContainers:\n"
     "- name: max-map-count\n"
     "  image: busybox\n"
     "  securityContext: {privileged: true}\n"
     "  command: [sysctl, -w, vm.max_map_count={suggested_number}]"},
    {"The program",
     "Find out what the mappings are. Usual reasons: thousands of files "
     "mapped, mprotect or madvise on parts of mappings (each splits one in "
     "three), a JIT, thread stacks with their guard pages.",
     "awk '{print $6}' /proc/{pid}/maps | sort | uniq -c | sort -n | tail"},
};

constexpr Remedy kRlimitAs[] = {
    {"Running process",
     "Raise it without a restart. As root, and without the colon, if it is to "
     "go above the hard limit:",
     "prlimit --pid {pid} --as={suggested_number}:"},
    {"Shell",
     "In the shell or script that starts the program, before it. The number "
     "is in KiB. \"cannot modify limit\" means that the hard limit is lower: "
     "then root has to raise it, in one of the ways below.",
     "ulimit -v unlimited      # or: ulimit -v {suggested_kib}"},
    {"systemd", "In the unit (systemctl edit UNIT), then restart it:",
     "[Service]\nLimitAS=infinity"},
    {"Login sessions", "As root, then log in again:",
     "echo '* - as unlimited' > /etc/security/limits.d/90-as.conf"},
    {"Docker, Kubernetes",
     "Neither has a flag for it. It comes from the image's entry point or "
     "from the daemon's unit; raise it in the entry point:",
     "sh -c 'ulimit -v unlimited; exec PROGRAM'"},
    {"The program",
     "Look for setrlimit(RLIMIT_AS) in it (Python: resource.setrlimit). If "
     "the limit is to stay, map less: fewer threads (each stack counts in "
     "full), smaller mapped files."},
};

constexpr Remedy kRlimitData[] = {
    {"Running process",
     "Raise it without a restart. As root, and without the colon, if it is to "
     "go above the hard limit:",
     "prlimit --pid {pid} --data={suggested_number}:"},
    {"Shell",
     "In the shell or script that starts the program, before it. The number "
     "is in KiB.",
     "ulimit -d unlimited      # or: ulimit -d {suggested_kib}"},
    {"systemd", "In the unit (systemctl edit UNIT), then restart it:",
     "[Service]\nLimitDATA=infinity"},
    {"Docker", "When the container is made:", "docker run --ulimit data=-1 …"},
    {"The program",
     "Look for setrlimit(RLIMIT_DATA) in it. If the limit is to stay, use "
     "less: thread stacks and anonymous mappings count as well as the heap."},
};

constexpr Remedy kRlimitMemlock[] = {
    {"Running process",
     "Raise it without a restart. As root, and without the colon, if it is to "
     "go above the hard limit:",
     "prlimit --pid {pid} --memlock={suggested_number}:"},
    {"Shell",
     "In the shell or script that starts the program, before it. The number "
     "is in KiB.",
     "ulimit -l unlimited      # or: ulimit -l {suggested_kib}"},
    {"systemd", "In the unit (systemctl edit UNIT), then restart it:",
     "[Service]\nLimitMEMLOCK=infinity"},
    {"Docker",
     "When the container is made:", "docker run --ulimit memlock=-1 …"},
    {"The program",
     "Look for mlockall(MCL_FUTURE) in it (databases and audio programs have "
     "a setting for it): with it, every new block is locked at once and "
     "counts here. MCL_ONFAULT locks only what is touched."},
};

constexpr Remedy kCgroup[] = {
    {"systemd", "Raise it without a restart, and for good:",
     "systemctl set-property UNIT MemoryMax={suggested_mib}M"},
    {"Docker", "Raise it without a restart:",
     "docker update --memory {suggested_mib}m --memory-swap {suggested_mib}m "
     "CONTAINER"},
    {"Kubernetes", "In the container's specification:",
     "resources:\n  limits:\n    memory: \"{suggested_mib}Mi\""},
    {"By hand",
     "As root (in a group of version 1 the file is "
     "memory.limit_in_bytes):",
     "echo {suggested_number} > {source}"},
    {"Who uses it",
     "The limit is for all processes of the group together, with the files "
     "they read and write. See what counts (anon: memory; file: page cache, "
     "which the kernel takes back by itself).",
     "head -4 \"$(dirname {source})/memory.stat\""},
    {"The program",
     "Have it know its limit: HAKMEM_HEAP_LIMIT below the group's leaves "
     "room for stacks, code and files, and fails one call with an event "
     "where the kernel would kill the whole process.",
     "export HAKMEM_HEAP_LIMIT={below_mib}M"},
};

constexpr Remedy kOvercommit[] = {
    {"The machine, now",
     "As root; holds until the next boot. In mode 2: it promises no more than "
     "there is; mode 0, the usual one, counts what is used.",
     "sysctl -w vm.overcommit_memory=0"},
    {"The machine, for good",
     "As root; see first which file in /etc/sysctl.d has set mode 2, and why.",
     "echo vm.overcommit_memory=0 > /etc/sysctl.d/99-overcommit.conf && "
     "sysctl --system"},
    {"A block that stays sparse",
     "In mode 0: no block may be longer than memory and swap. Mode 1 grants "
     "all (as root); who fills it is killed.",
     "sysctl -w vm.overcommit_memory=1"},
    {"Keep mode 2",
     "Then raise what it may promise: a greater share of the memory (in "
     "percent, as root) …",
     "sysctl -w vm.overcommit_ratio=90"},
    {"Swap", "… or add swap, all of which may be promised (as root):",
     "fallocate -l 4G /swapfile && chmod 600 /swapfile && mkswap /swapfile && "
     "swapon /swapfile"},
    {"Docker, Kubernetes",
     "The setting belongs to the host, not to the container: set it there."},
    {"The program",
     "All that is mapped counts, used or not, in all processes together: find "
     "those with the largest mappings.",
     "grep -E '^(CommitLimit|Committed_AS)' /proc/meminfo; "
     "ps -eo pid,vsz,comm --sort=-vsz | head"},
};

constexpr Remedy kAddressInUse[] = {
    {"The program",
     "Look for mappings at fixed addresses (MAP_FIXED) in it, in a JIT or in "
     "a sanitizer's runtime, and see what lies between hakmem's blocks.",
     "cat /proc/{pid}/maps"},
    {"hakmem",
     "If the program maps nothing at fixed addresses, this is worth a report "
     "with the trace."},
};

constexpr Remedy kInjected[] = {
    {"hakmem", "Leave HAKMEM_FAIL_NTH out of the environment.",
     "unset HAKMEM_FAIL_NTH"},
};

constexpr Remedy kUnknown[] = {
    {"The evidence",
     "Compare the limits below with their use: one may have been reached for "
     "a moment and be free again."},
    {"By the error",
     "EAGAIN: the program locks its memory (mlockall). EPERM or EACCES: a "
     "security module or a seccomp filter forbids the mapping "
     "(docker run --security-opt). ENOMEM: see what the kernel says.",
     "dmesg | tail -20"},
    {"Look closer", "What the process may do, and what it asks the kernel for:",
     "cat /proc/{pid}/limits; strace -f -e trace=memory -p {pid}"},
};

constexpr AdviceEntry kTable[] = {
    {"Threshold", "size", "A size that no block can have",
     "{call} was asked for {size}, more than the {value} that a block can "
     "have at most.",
     "{call} was asked for {size}, more than any block can have.",
     "No setting makes room for it. Nearly always the size was computed "
     "wrongly.",
     kSize},
    {"Threshold", "alignment", "An alignment that no block can have",
     "{call} was asked for an alignment of {alignment} bytes, more than the "
     "{value} that a block can have at most.",
     "{call} was asked for an alignment of {alignment} bytes, which no block "
     "can have.",
     "No setting changes that. Alignments above a huge page (2 MiB) are "
     "nearly always a mistake.",
     kAlignment},
    {"Threshold", "overflow", "A number of elements that is too large",
     "{call} was asked for {product} in 64 bits.", "",
     "No setting makes room for it. The number of elements was computed "
     "wrongly, or came from input.",
     kOverflow},
    {"Threshold", "max_alloc", "Larger than HAKMEM_MAX_ALLOC allows",
     "{call} was asked for {size}; HAKMEM_MAX_ALLOC allows {value} in one "
     "call.",
     "{call} was asked for {size}; HAKMEM_MAX_ALLOC allows less in one call.",
     "Somebody has set this limit on purpose, in the environment of the "
     "program. The machine may have plenty of memory.",
     kMaxAlloc},
    {"Exhaustion", "region", "hakmem's addresses are used up",
     "hakmem has {value} of addresses for blocks of this kind; {use} are "
     "taken, and {needed} more were needed in one piece.",
     "hakmem's region of addresses has no room for {size} more.",
     "This is about addresses, not about memory: blocks lie in one region of "
     "up to 12 TiB.",
     kRegion},
    {"Exhaustion", "heap_limit", "HAKMEM_HEAP_LIMIT is reached",
     "HAKMEM_HEAP_LIMIT allows {value} for blocks; {use} are granted, and "
     "{needed} more were needed.",
     "HAKMEM_HEAP_LIMIT leaves no room for {size} more.",
     "Somebody has set this limit on purpose, in the environment of the "
     "program. The machine may have plenty of memory. hakmem gave back what "
     "it had cached and tried again before the call failed.",
     kHeapLimit},
    {"Exhaustion", "metadata", "A table of hakmem's is full",
     "A table in which hakmem keeps account of blocks or threads is full: "
     "{use} of {value} are taken.",
     "A table in which hakmem keeps account of blocks or threads is full.",
     "The program's blocks are well; only new ones that need the table "
     "cannot be had.",
     kMetadata},
    {"MapFail", "max_map_count", "vm.max_map_count is reached",
     "The process has {use} mappings; vm.max_map_count allows {value}, so the "
     "kernel refused one more, however much memory is free.",
     "The process has as many mappings as vm.max_map_count allows, so the "
     "kernel refused one more, however much memory is free.",
     "A mapping is a piece of address space with one set of rights: a block "
     "of memory, a file, a thread's stack. Each line of /proc/PID/maps is "
     "one.",
     kMaxMapCount},
    {"MapFail", "rlimit_as", "The address-space limit (ulimit -v) is reached",
     "The address-space limit (RLIMIT_AS, ulimit -v) is {value}; {use} are "
     "mapped, and {needed} more were needed, however much memory is free.",
     "The address-space limit (RLIMIT_AS, ulimit -v) has no room for "
     "{refused_bytes} more, however much memory is free.",
     "The limit counts addresses, not memory: libraries, mapped files and "
     "the full stack of every thread count even when they are never touched.",
     kRlimitAs},
    {"MapFail", "rlimit_data", "The data limit (ulimit -d) is reached",
     "The data limit (RLIMIT_DATA, ulimit -d) is {value}; {use} are in use, "
     "and {needed} more were needed, however much memory is free.",
     "The data limit (RLIMIT_DATA, ulimit -d) has no room for "
     "{refused_bytes} more, however much memory is free.",
     "Since Linux 4.7 the limit counts every private writable mapping, "
     "anonymous memory above all, touched or not.",
     kRlimitData},
    {"MapFail", "rlimit_memlock", "The limit of locked memory is reached",
     "The process locks its memory (mlockall), and may lock {value} "
     "(RLIMIT_MEMLOCK, ulimit -l); {use} are locked, and {needed} more were "
     "needed.",
     "The process locks its memory (mlockall), and RLIMIT_MEMLOCK (ulimit "
     "-l) has no room for {refused_bytes} more.",
     "A program that has called mlockall(MCL_FUTURE) locks each new mapping "
     "as it makes it. Root's processes are not limited.",
     kRlimitMemlock},
    {"MapFail", "cgroup", "The control group's memory limit is reached",
     "The control group may have {value} ({source}) and has {use}, so the "
     "kernel had no memory for another mapping.",
     "The control group (container, service) is full, so the kernel had no "
     "memory for another mapping.",
     "The limit is set from outside, by systemd, Docker or Kubernetes, "
     "however much memory the machine has. The next thing the kernel may do "
     "is to kill a process of the group (\"OOMKilled\", exit status 137).",
     kCgroup},
    {"MapFail", "overcommit", "The kernel promises no more memory (overcommit)",
     "The kernel promises {value}; {use} are promised, and {needed} more were "
     "needed. In vm.overcommit_memory=2 that is for all processes together, "
     "in mode 0 for one block: memory and swap.",
     "The kernel would not promise {refused_bytes} more "
     "(vm.overcommit_memory).",
     "It is promises that count here, not use: memory that was mapped and "
     "never touched counts, so `free` may show gigabytes.",
     kOvercommit},
    {"MapFail", "address_in_use", "Another mapping lies in the way",
     "{refused_call} of {refused_bytes} found its addresses taken by another "
     "mapping.",
     "",
     "hakmem maps its blocks side by side and gives up places that something "
     "else has taken; this time there was no other.",
     kAddressInUse},
    {"MapFail", "injected", "A failure that HAKMEM_FAIL_NTH asked for",
     "HAKMEM_FAIL_NTH had this call of the kernel refused, to test the "
     "program.",
     "", "Nothing is wrong with the machine.", kInjected},
    {"MapFail", "unknown", "The kernel refused, and no known limit explains it",
     "The kernel refused {refused_call} of {refused_bytes} with {error}; none "
     "of the limits that hakmem reads explains it.",
     "", "What hakmem has read is listed as evidence.", kUnknown},
};

constexpr AdviceEntry kKilled = {
    "Killed",
    "cgroup",
    "The kernel killed the process: its group was full",
    "The kernel killed {program} (process {pid}), because the control group "
    "may have {value} ({source}) and had used it up. No call failed.",
    "The kernel killed {program} (process {pid}), because the control group "
    "had used its memory up. No call failed.",
    "Linux hands out memory that it may not have, and when a page of it is "
    "touched that the group has no room for, it is too late to say no. The "
    "group's limit is set from outside, by systemd, Docker or Kubernetes "
    "(\"OOMKilled\", exit status 137), however much memory the machine has.",
    kCgroup};

}  // namespace

const AdviceEntry& KilledEntry() { return kKilled; }

std::span<const AdviceEntry> AdviceTable() { return kTable; }

}  // namespace hakmem::tools
