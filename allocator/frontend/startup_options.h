// The options of this process, read once from its environment.
//
// Owns: the parsed options. Called by: the core through Host::options, and the
// statistics at exit.
// Thread-safety: the first call is made by the core while it initialises,
// under its lock; afterwards the value is read-only.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_STARTUP_OPTIONS_H_
#define HAKMEM_ALLOCATOR_FRONTEND_STARTUP_OPTIONS_H_

namespace hakmem {

struct HeapOptions;
struct Options;
struct OptionPages;

// OptionTables, as the table of all tables has them.
extern OptionPages g_option_pages;

// Reads the options and, when HAKMEM_SHOW_CONFIG asks for it, prints them.
// May run before libc is initialised.
const HeapOptions& StartupOptions();

// The same; afterwards nobody can write them.
const HeapOptions& SealedStartupOptions();

// The options as they are. Before StartupOptions has run all are zero: what is
// read as early is to have that as its default.
const Options& CurrentOptions();

// Whether the environment says how many allocations are guarded.
bool AreGuardsAskedFor();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_STARTUP_OPTIONS_H_
