#include "tools/hakmem/frame_policy.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kAllocators[] = {
    "libhakmem*",   "malloc",        "calloc",         "realloc",
    "reallocarray", "memalign",      "posix_memalign", "aligned_alloc",
    "valloc",       "pvalloc",       "mallocx",        "rallocx",
    "operator new", "operator new[]"};

constexpr std::string_view kWrappers[] = {
    // C: whatever is called so.
    "*malloc", "*calloc", "*zalloc", "*realloc", "*memalign", "*strdup",
    "*strndup", "*memdup", "*Malloc", "*Calloc", "*Realloc", "*Strdup",
    "*Strndup",
    // C++: the standard library's containers, strings, streams and pointers.
    "std::*", "__gnu_cxx::*", "_ZSt*", "_ZNSt*", "_ZNKSt*", "libstdc++.so*",
    "libc++.so*", "__cxa_allocate_exception",
    "__cxa_allocate_dependent_exception",
    // Rust.
    "alloc::alloc::*", "alloc::vec::*", "alloc::raw_vec::*", "alloc::boxed::*",
    "alloc::string::*", "alloc::str::*", "alloc::slice::*", "alloc::sync::*",
    "alloc::rc::*", "alloc::fmt::*", "alloc::collections::*",
    "alloc::borrow::*", "alloc::ffi::*", "core::alloc::*", "core::iter::*",
    "core::ops::*", "core::ptr::*", "core::option::*", "core::result::*",
    "core::str::*", "core::slice::*", "core::fmt::*", "core::cell::*",
    "core::array::*", "core::mem::*", "core::convert::*", "core::clone::*",
    "core::default::*", "hashbrown::*", "__rust_*", "__rustc::__rust_*",
    "__rdl_*", "__rg_*",
    // Go, in profiles of its own.
    "runtime.mallocgc*", "runtime.newobject", "runtime.makeslice*",
    "runtime.growslice", "runtime.makemap*", "runtime.rawstring*",
    "runtime.concatstring*",
    // Java.
    "jdk.internal.misc.Unsafe.*", "java.nio.Bits.*", "java.nio.ByteBuffer.*",
    "java.nio.DirectByteBuffer*", "Interpreter", "StubRoutines*",
    // glibc.
    "libc.so*", "wcsdup", "asprintf", "__asprintf*", "vasprintf",
    "__vasprintf*", "fopen*", "__fopen*", "_IO_*", "__libc_alloc*", "fdopen",
    "getline", "getdelim", "__getdelim", "open_memstream", "opendir",
    "fdopendir", "__alloc_dir", "__opendir*", "scandir*", "realpath*",
    "__realpath*", "getcwd", "__getcwd*", "allocate_dtv", "_dl_allocate_tls",
    "tls_get_addr_tail", "__tls_get_addr", "allocate_dtv_entry",
    "allocate_and_init",
    // Other allocators, and libraries' own.
    "je_*", "mi_malloc*", "mi_calloc*", "mi_realloc*", "mi_zalloc*", "mi_new*",
    "tc_malloc*", "tc_new*", "g_malloc*", "g_realloc*", "g_try_malloc*",
    "g_try_realloc*", "g_strdup*", "g_memdup*", "g_slice_*", "xmalloc*",
    "xcalloc*", "xrealloc*", "xmemdup*", "xpalloc*", "xmlMalloc*",
    "xmlMemMalloc*", "apr_palloc*", "apr_pcalloc*", "apr_pstr*", "apr_pmemdup*",
    "apr_allocator_alloc*", "allocator_alloc", "luaM_*", "l_alloc",
    "absl::container_internal::*", "absl::inlined_vector_internal::*",
    "boost::container::*", "google::protobuf::Arena::*",
    "llvm::allocate_buffer", "llvm::BumpPtrAllocatorImpl*",
    "llvm::SmallVector*", "llvm::MallocAllocator::*", "QArrayData::*",
    // Programs.
    "zmalloc*", "zcalloc*", "zrealloc*", "ztrymalloc*", "ztrycalloc*",
    "ztryrealloc*", "_sdsnew*", "sdsnew*", "sdsMakeRoom*", "_sdsMakeRoom*",
    "palloc*", "repalloc*", "MemoryContextAlloc*", "AllocSet*",
    "GenerationAlloc*", "SlabAlloc*", "SlabContextCreate*", "BumpAlloc*",
    "pg_malloc*", "pg_realloc*", "guc_malloc*", "ngx_alloc", "ngx_palloc*",
    "ngx_pnalloc*", "ngx_pcalloc*", "ngx_pmemalign*", "ngx_create_pool",
    "ngx_array_create", "ngx_array_push*", "ngx_list_push", "isc__mem_*",
    "isc_mem_*", "init_alloc_root*", "alloc_root*", "multi_alloc_root*",
    "init_sql_alloc*", "alloc_dynamic*", "ngx_create_temp_buf",
    "ngx_alloc_chain_link", "pool_get_from_os*", "pool_alloc*", "__pool_alloc*",
    "regional_alloc*", "alloc_special_obtain", "mm_alloc", "mp_alloc*",
    "sqlite3Malloc*", "sqlite3_malloc*", "sqlite3_realloc*", "sqlite3Realloc*",
    "sqlite3DbMalloc*", "sqlite3DbRealloc*", "sqlite3DbStr*",
    "dbMallocRawFinish", "dbReallocFinish", "mallocWithAlarm", "PyMem_*",
    "_PyMem_*", "_PyObject_Malloc*", "_PyObject_Calloc*", "_PyObject_Realloc*",
    "_PyObject_GC_*", "_PyObject_New*", "PyType_GenericAlloc",
    "_PyType_AllocNoTrack", "gc_alloc*", "pymalloc_*", "new_arena",
    "allocate_from_new_pool*", "arena_map_*", "Perl_safesys*", "Perl_sv_grow*",
    "Perl_more_*", "Rf_alloc*", "ruby_xmalloc*", "ruby_xcalloc*",
    "ruby_xrealloc*", "objspace_xmalloc*", "objspace_xrealloc*", "os::malloc*",
    "os::realloc*", "AllocateHeap*", "ReallocateHeap*", "Arena::grow*",
    "Arena::Amalloc*", "ChunkPool::*", "v8::base::Malloc*",
    "v8::internal::AllocWithRetry*", "v8::internal::Zone::*",
    "node::UncheckedMalloc*", "node::UncheckedRealloc*", "_emalloc*",
    "_ecalloc*", "_erealloc*", "_safe_emalloc*", "zend_mm_*", "__zend_malloc*",
    "do_alloc_pages"};

constexpr std::string_view kSources[] = {
    "/include/c++/",      "/rustc/",
    "/rust/deps/",        "/library/alloc/src/",
    "/library/core/src/", "/library/std/src/",
    "/libstdc++-v3/"};

constexpr std::string_view kStarters[] = {
    "_start",         "__libc_start_*", "start_thread", "clone",
    "clone3",         "__clone*",       "call_init",    "_dl_init",
    "_dl_start_user", "ld-linux*",      "libc.so*"};

constexpr std::string_view kPython =
    "PYTHONPERFSUPPORT=1 at its start brings them, from Python 3.12 on";
constexpr std::string_view kNode =
    "node --perf-basic-prof --interpreted-frames-native-stack brings them";
constexpr std::string_view kDotNet =
    "DOTNET_PerfMapEnabled=1 at its start brings them";

constexpr Runtime kRuntimes[] = {
    {"python*", kPython},
    {"libpython*", kPython},
    {"node", kNode},
    {"nodejs", kNode},
    {"libnode.so*", kNode},
    {"java", ""},
    {"libjli.so", ""},
    {"libjvm.so",
     "java -XX:+PreserveFramePointer, and then `jcmd PID Compiler.perfmap`, "
     "brings them"},
    {"dotnet", ""},
    {"libcoreclr.so", kDotNet}};

}  // namespace

std::span<const std::string_view> AllocatorNames() { return kAllocators; }
std::span<const std::string_view> WrapperNames() { return kWrappers; }
std::span<const std::string_view> WrapperSources() { return kSources; }
std::span<const Runtime> Runtimes() { return kRuntimes; }
std::span<const std::string_view> StarterNames() { return kStarters; }

}  // namespace hakmem::tools
