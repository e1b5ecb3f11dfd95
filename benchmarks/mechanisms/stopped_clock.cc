#include "benchmarks/mechanisms/stopped_clock.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hakmem::bench {
namespace {

// Written by who passes time, read by all.
std::atomic<std::uint64_t> g_now_us{0};

int ReadStoppedClock(clockid_t, timespec* now) {
  const std::uint64_t now_us = g_now_us.load(std::memory_order_relaxed);
  now->tv_sec = static_cast<time_t>(now_us / 1'000'000);
  now->tv_nsec = static_cast<long>(now_us % 1'000'000 * 1000);
  return 0;
}

// The address of the vDSO's function; it has section headers, and lies at 0.
std::uintptr_t FunctionOfVdso(std::uintptr_t base, const char* name) {
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(base);
  if (header->e_machine != EM_X86_64) return 0;
  const auto* const sections =
      reinterpret_cast<const Elf64_Shdr*>(base + header->e_shoff);
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const auto* const symbols =
        reinterpret_cast<const Elf64_Sym*>(base + sections[i].sh_offset);
    const auto* const names = reinterpret_cast<const char*>(
        base + sections[sections[i].sh_link].sh_offset);
    for (std::size_t j = 0; j < sections[i].sh_size / sizeof *symbols; ++j) {
      if (std::strcmp(names + symbols[j].st_name, name) == 0) {
        return base + symbols[j].st_value;
      }
    }
  }
  return 0;
}

}  // namespace

bool StopClock() {
  const std::uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) return false;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  g_now_us.store(static_cast<std::uint64_t>(now.tv_sec) * 1'000'000,
                 std::memory_order_relaxed);
  const std::uintptr_t place = FunctionOfVdso(vdso, "__vdso_clock_gettime");
  const std::uintptr_t page =
      place & ~static_cast<std::uintptr_t>(getpagesize() - 1);
  const std::size_t bytes = 2 * static_cast<std::size_t>(getpagesize());
  // mov rax, ADDRESS; jmp rax
  unsigned char code[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
  const auto target = reinterpret_cast<std::uintptr_t>(&ReadStoppedClock);
  std::memcpy(code + 2, &target, sizeof target);
  if (place == 0 || mprotect(reinterpret_cast<void*>(page), bytes,
                             PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    std::fputs("the vDSO's clock cannot be stopped\n", stderr);
    std::exit(EXIT_FAILURE);
  }
  std::memcpy(reinterpret_cast<void*>(place), code, sizeof code);
  return true;
}

void PassUs(std::uint64_t microseconds) {
  g_now_us.fetch_add(microseconds, std::memory_order_relaxed);
}

}  // namespace hakmem::bench
