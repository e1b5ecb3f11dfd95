// Which frames of a stack say something. The stacks are of real programs, as a
// symbolizer names them.

#include "tools/hakmem/frame_policy.h"

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hakmem::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A frame, innermost first: "function", "function at place", or "file+0x12".
std::vector<NamedCall> Calls(const std::vector<std::string>& frames) {
  std::vector<NamedCall> calls;
  for (const std::string& frame : frames) {
    const std::size_t at = frame.find(" at /");
    const bool known = at != std::string::npos;
    calls.push_back({.function = frame.substr(0, at),
                     .text = frame,
                     .place = known ? frame.substr(at + 4) : "",
                     .has_name = frame.find("+0x") == std::string::npos});
  }
  return calls;
}

// The first that is left.
std::string Place(const std::vector<std::string>& frames) {
  const std::vector<NamedCall> calls = Calls(frames);
  return calls.empty() ? "" : calls[PassingOn(calls)].text;
}

TEST(FramePolicyTest, CppFoldsIntoItsCaller) {
  EXPECT_EQ(
      Place(
          {"libhakmem.so.0.1.0+0x1f0b4", "operator new(unsigned long)",
           "std::_Vector_base<int, std::allocator<int> >::_M_allocate("
           "unsigned long) at /usr/include/c++/12/bits/stl_vector.h:378",
           "std::vector<int, std::allocator<int> >::vector(unsigned long, "
           "std::allocator<int> const&)",
           "std::vector<int, std::allocator<int> > Build<int>(int) at /a.cc:1",
           "main"}),
      "std::vector<int, std::allocator<int> > Build<int>(int) at /a.cc:1");
  // gcc leaves the namespace of what it inlines out.
  EXPECT_EQ(Place({"_M_create<Bind(Thing)::<lambda()> > at "
                   "/usr/include/c++/12/bits/std_function.h:161",
                   "function<Bind(Thing)::<lambda()> > at "
                   "/usr/include/c++/12/bits/std_function.h:449",
                   "Bind(Thing) at /a.cc:18", "main"}),
            "Bind(Thing) at /a.cc:18");
  EXPECT_EQ(Place({"std::__allocated_ptr<std::allocator<int> > std::__allocate_"
                   "guarded<std::allocator<int> >(std::allocator<int>&)",
                   "_ZSt11make_sharedI5ThingJEESt10shared_ptrINSt9enable_ifE",
                   "MakeThing()", "main"}),
            "MakeThing()");
  EXPECT_EQ(Place({"__fopen_internal at /./libio/iofopen.c:65",
                   "std::__basic_file<char>::open(char const*, int)",
                   "void std::_Function_base::_Base_manager<Bind(Thing)::"
                   "'lambda'()>::_M_create<X>(std::_Any_data&)",
                   "(anonymous namespace)::Read(char const*)", "main"}),
            "(anonymous namespace)::Read(char const*)");
  EXPECT_EQ(Place({"Node::operator new(unsigned long)", "Tree::Add(int)"}),
            "Tree::Add(int)");
}

TEST(FramePolicyTest, RustFoldsIntoItsCaller) {
  EXPECT_EQ(Place({"alloc::alloc::realloc", "<alloc::alloc::Global>::grow_impl",
                   "<alloc::alloc::Global as core::alloc::Allocator>::grow",
                   "<alloc::raw_vec::RawVecInner<_>>::reserve::do_reserve",
                   "<alloc::vec::Vec<u8> as core::iter::Extend<u8>>::extend",
                   "alloc::str::<impl str>::repeat", "r::remember", "main"}),
            "r::remember");
  EXPECT_EQ(Place({"hashbrown::raw::alloc::inner::do_alloc",
                   "std::collections::hash::map::HashMap<K,V,S>::insert",
                   "<T as core::convert::Into<U>>::into", "server::cache"}),
            "server::cache");
  // A trait of the program's own.
  EXPECT_EQ(
      Place({"alloc::vec::Vec<T,A>::push",
             "<alloc::vec::Vec<alloc::string::String> as r::P>::push", "main"}),
      "<alloc::vec::Vec<alloc::string::String> as r::P>::push");
}

TEST(FramePolicyTest, ProgramsWrappersFoldIntoTheirCallers) {
  EXPECT_EQ(Place({"zmalloc", "createObject", "initServer", "main"}),
            "createObject");
  EXPECT_EQ(Place({"strdup at /./string/strdup.c:42", "zstrdup", "initServer"}),
            "initServer");
  EXPECT_EQ(Place({"ngx_memalign", "ngx_create_pool", "nginx+0x6c8b2",
                   "ngx_http_create_request", "main"}),
            "nginx+0x6c8b2");
  EXPECT_EQ(Place({"AllocSetAlloc", "palloc0", "ExecInitSeqScan", "main"}),
            "ExecInitSeqScan");
  EXPECT_EQ(Place({"arena_map_get", "new_arena", "pymalloc_alloc",
                   "_PyObject_Malloc", "gc_alloc", "_PyObject_GC_New",
                   "PyDict_New", "_PyEval_EvalFrameDefault"}),
            "PyDict_New");
  EXPECT_EQ(Place({"runtime.mallocgc", "runtime.growslice", "main.Remember"}),
            "main.Remember");
  EXPECT_EQ(Place({"Rf_allocVector3", "Rf_shallow_duplicate", "Rf_eval"}),
            "Rf_shallow_duplicate");
  EXPECT_EQ(Place({"Perl_sv_grow", "Perl_pp_repeat", "Perl_runops_standard"}),
            "Perl_pp_repeat");
  EXPECT_EQ(Place({"Perl_more_bodies", "Perl_sv_upgrade", "Perl_av_make"}),
            "Perl_sv_upgrade");
  EXPECT_EQ(Place({"mosquitto__calloc", "retain__store", "main"}),
            "retain__store");
  EXPECT_EQ(Place({"pool_get_from_os", "pool_alloc_nocache", "__pool_alloc",
                   "conn_new", "back_try_conn_req"}),
            "conn_new");
  EXPECT_EQ(
      Place({"long jdk.internal.misc.Unsafe.allocateMemory0(long)",
             "java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)",
             "void Server.remember(java.lang.String)", "Interpreter"}),
      "void Server.remember(java.lang.String)");
  EXPECT_EQ(Place({"g_malloc0", "g_hash_table_new_full", "main"}),
            "g_hash_table_new_full");
}

TEST(FramePolicyTest, WhatAWrapperCallsHasNoNameOfItsOwn) {
  EXPECT_EQ(Place({"libsqlite3.so.0+0xa7504", "sqlite3Malloc",
                   "libsqlite3.so.0+0x3974e", "sqlite3BtreeInsert", "main"}),
            "libsqlite3.so.0+0x3974e");
  EXPECT_EQ(Place({"server+0x2300", "main"}), "server+0x2300");
}

TEST(FramePolicyTest, SomethingIsAlwaysLeft) {
  // Nobody but the library itself: more than the start of a thread.
  EXPECT_EQ(Place({"malloc", "std::thread::_State_impl::_M_run()",
                   "start_thread", "clone3"}),
            "std::thread::_State_impl::_M_run()");
  EXPECT_EQ(Place({"malloc", "libstdc++.so.6+0xa57ba", "call_init", "_dl_init",
                   "_dl_start_user"}),
            "libstdc++.so.6+0xa57ba");
  EXPECT_EQ(Place({"malloc"}), "malloc");
  EXPECT_EQ(Place({}), "");
  // Not what a program has between.
  EXPECT_EQ(Place({"operator new(unsigned long)", "Foo::Foo()",
                   "std::vector<Foo>::resize(unsigned long)", "main"}),
            "Foo::Foo()");
}

TEST(FramePolicyTest, NamesAreFoundInWhatSurroundsThem) {
  for (const auto& [function, name] :
       std::vector<std::pair<std::string_view, std::string_view>>{
           {"malloc", "malloc"},
           {"operator new[](unsigned long, std::nothrow_t const&)",
            "operator new[]"},
           {"std::map<A, B>::operator[](A const&) const",
            "std::map<A, B>::operator[]"},
           {"unsigned long const* a::Find<b::C<int, 2> >(b::C<int, 2>)",
            "a::Find<b::C<int, 2> >"},
           {"Outer::{lambda(int)#1}::operator()(int) const",
            "Outer::{lambda(int)#1}::operator()"},
           {"a::(anonymous namespace)::F()", "a::(anonymous namespace)::F"},
           {"decltype(x->y) a::G<int>(int)", "a::G<int>"},
           {"work(int) [clone .cold]", "work"},
           {"work.part.0 [clone .cold]", "work.part.0"},
           {"<(", "("},
           {"operator", "operator"},
           {"", ""}}) {
    EXPECT_EQ(QualifiedName(function), name) << function;
  }
}

TEST(FramePolicyTest, LinesThatAreAlikeAreToldApartByTheirCallers) {
  // A caller's name may be a part of the name before it.
  EXPECT_THAT(ToldApart({Calls({"KeepAll", "Keep", "main"}),
                         Calls({"KeepAll", "KeepAll", "Load", "main"}),
                         Calls({"Read", "main"})}),
              ElementsAre("KeepAll < Keep", "KeepAll < Load", "Read"));
  // As far as there are callers, three at the most.
  EXPECT_THAT(ToldApart({Calls({"a", "b", "c", "d", "e"}),
                         Calls({"a", "b", "c", "d", "f"}),
                         Calls({"a"}),
                         {}}),
              ElementsAre("a < b < c < d", "a < b < c < d", "a", "(no stack)"));
  // The first name of the same file.
  std::vector<NamedCall> calls = Calls({"x.so+0x1", "other", "own"});
  calls[0].module = calls[2].module = "/x.so";
  EXPECT_THAT(ToldApart({calls}), ElementsAre("own"));
}

TEST(FramePolicyTest, PatternsMatchAnyPartOfAFrame) {
  const NamedCall call = {.function = "Grow(int)",
                          .text = "",
                          .place = "/srv/grow9.cc:12",
                          .module = "/srv/server"};
  for (const char* const text : {"row", "^Grow\\(", "grow\\d\\.cc", "server$",
                                 "(?i)^GROW", "^Shrink|^Grow"}) {
    EXPECT_TRUE(Pattern::Make(text)->Matches(call)) << text;
  }
  for (const char* const text : {"^row", "GROW", "Shrink"}) {
    EXPECT_FALSE(Pattern::Make(text)->Matches(call)) << text;
  }
  EXPECT_FALSE(Pattern::Make("")->Matches(call));
  EXPECT_THAT(Pattern::Make("a(").status().message(), Not(IsEmpty()));
}

TEST(FramePolicyTest, WhatIsIgnoredIsNotFocusedOn) {
  const std::vector<NamedCall> calls = Calls({"grow", "main"});
  FramePolicy policy;
  EXPECT_TRUE(policy.Selects(calls));
  policy.focus = *Pattern::Make("main");
  EXPECT_TRUE(policy.Selects(calls));
  EXPECT_FALSE(policy.Selects(Calls({"start"})));
  policy.ignore = *Pattern::Make("grow");
  EXPECT_FALSE(policy.Selects(calls));
}

}  // namespace
}  // namespace hakmem::tools
