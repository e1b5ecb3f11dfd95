#include "tools/hakmem/frame_table.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kAllocators[] = {
    "libhakmem*",   "malloc",        "calloc",         "realloc",
    "reallocarray", "memalign",      "posix_memalign", "aligned_alloc",
    "valloc",       "pvalloc",       "mallocx",        "rallocx",
    "operator new", "operator new[]"};

constexpr std::string_view kWrappers[] = {
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
    // glibc.
    "libc.so*", "strdup", "__strdup", "strndup", "__strndup", "wcsdup",
    "asprintf", "__asprintf*", "vasprintf", "__vasprintf*", "fopen*",
    "__fopen*", "_IO_*", "__libc_alloc*", "fdopen", "getline", "getdelim",
    "__getdelim", "open_memstream", "opendir", "fdopendir", "__alloc_dir",
    "__opendir*", "scandir*", "realpath*", "__realpath*", "getcwd", "__getcwd*",
    "allocate_dtv", "_dl_allocate_tls", "tls_get_addr_tail", "__tls_get_addr",
    "allocate_dtv_entry", "allocate_and_init",
    // Other allocators, and libraries' own.
    "je_*", "mi_malloc*", "mi_calloc*", "mi_realloc*", "mi_zalloc*", "mi_new*",
    "tc_malloc*", "tc_new*", "g_malloc*", "g_realloc*", "g_try_malloc*",
    "g_try_realloc*", "g_strdup*", "g_strndup*", "g_memdup*", "g_slice_*",
    "xmalloc*", "xcalloc*", "xrealloc*", "xzalloc*", "xstrdup*", "xstrndup*",
    "xmemdup*", "xnmalloc*", "x2realloc*", "x2nrealloc*", "xpalloc*",
    "do_xmalloc*", "safe_malloc*", "safe_calloc*", "safe_realloc*",
    "my_malloc*", "my_realloc*", "my_strdup*", "CRYPTO_malloc*",
    "CRYPTO_zalloc*", "CRYPTO_calloc*", "CRYPTO_realloc*",
    "CRYPTO_clear_realloc*", "CRYPTO_strdup*", "CRYPTO_strndup*",
    "CRYPTO_memdup*", "xmlMalloc*", "xmlMemMalloc*", "xmlStrdup", "xmlStrndup",
    "apr_palloc*", "apr_pcalloc*", "apr_pstr*", "apr_pmemdup*",
    "apr_allocator_alloc*", "allocator_alloc", "luaM_*", "l_alloc",
    "uv__malloc", "uv__calloc", "uv__realloc*", "uv__strdup",
    "absl::container_internal::*", "absl::inlined_vector_internal::*",
    "boost::container::*", "google::protobuf::Arena::*", "llvm::safe_malloc*",
    "llvm::safe_calloc*", "llvm::safe_realloc*", "llvm::allocate_buffer",
    "llvm::BumpPtrAllocatorImpl*", "llvm::SmallVector*",
    "llvm::MallocAllocator::*", "QArrayData::*", "qMalloc*",
    // Programs.
    "zmalloc*", "zcalloc*", "zrealloc*", "ztrymalloc*", "ztrycalloc*",
    "ztryrealloc*", "zstrdup*", "palloc*", "repalloc*", "pstrdup", "pnstrdup",
    "MemoryContextAlloc*", "MemoryContextStrdup", "AllocSet*",
    "GenerationAlloc*", "SlabAlloc*", "SlabContextCreate*", "BumpAlloc*",
    "pg_malloc*", "pg_realloc*", "pg_strdup*", "guc_malloc*", "guc_realloc*",
    "guc_strdup*", "ngx_alloc", "ngx_calloc", "ngx_memalign", "ngx_palloc*",
    "ngx_pnalloc*", "ngx_pcalloc*", "ngx_pmemalign*", "ngx_create_pool",
    "ngx_array_create", "ngx_array_push*", "ngx_list_push",
    "ngx_create_temp_buf", "ngx_alloc_chain_link", "ngx_pstrdup",
    "sqlite3Malloc*", "sqlite3_malloc*", "sqlite3_realloc*", "sqlite3Realloc*",
    "sqlite3DbMalloc*", "sqlite3DbRealloc*", "sqlite3DbStr*",
    "sqlite3MemMalloc", "sqlite3MemRealloc", "dbMallocRawFinish",
    "dbReallocFinish", "mallocWithAlarm", "PyMem_*", "_PyMem_*",
    "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc",
    "_PyObject_Malloc*", "_PyObject_Calloc*", "_PyObject_Realloc*",
    "_PyObject_GC_*", "_PyObject_New*", "_PyObject_MallocWithType*",
    "PyType_GenericAlloc", "_PyType_AllocNoTrack", "gc_alloc*", "pymalloc_*",
    "new_arena", "allocate_from_new_pool*", "arena_map_*", "Perl_safesys*",
    "ruby_xmalloc*", "ruby_xcalloc*", "ruby_xrealloc*", "objspace_xmalloc*",
    "objspace_xrealloc*", "os::malloc*", "os::realloc*", "AllocateHeap*",
    "ReallocateHeap*", "Arena::grow*", "Arena::Amalloc*", "ChunkPool::*",
    "v8::base::Malloc*", "v8::internal::AllocWithRetry*",
    "v8::internal::Zone::*", "node::UncheckedMalloc*",
    "node::UncheckedRealloc*", "_emalloc*", "_ecalloc*", "_erealloc*",
    "_safe_emalloc*", "zend_mm_*", "__zend_malloc*", "do_alloc_pages"};

constexpr std::string_view kSources[] = {
    "/include/c++/",      "/rustc/",
    "/rust/deps/",        "/library/alloc/src/",
    "/library/core/src/", "/library/std/src/",
    "/libstdc++-v3/"};

constexpr std::string_view kStarters[] = {
    "_start",         "__libc_start_*", "start_thread", "clone",
    "clone3",         "__clone*",       "call_init",    "_dl_init",
    "_dl_start_user", "ld-linux*",      "libc.so*"};

}  // namespace

std::span<const std::string_view> AllocatorNames() { return kAllocators; }
std::span<const std::string_view> WrapperNames() { return kWrappers; }
std::span<const std::string_view> WrapperSources() { return kSources; }
std::span<const std::string_view> StarterNames() { return kStarters; }

}  // namespace hakmem::tools
