#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/serve_answers.h"

namespace hakmem::tools {
namespace {

HeapSite Site(std::uint64_t address, std::uint64_t live,
              std::uint64_t allocated) {
  HeapSite site;
  site.addresses = {address};
  site.figures.live = {.samples = 1, .blocks = 1, .bytes = live};
  site.figures.allocated = {.samples = 1, .blocks = 1, .bytes = allocated};
  return site;
}

HeapProfile ProfileOf(std::uint64_t pid, std::vector<HeapSite> sites) {
  HeapProfile profile;
  profile.pid = pid;
  profile.mappings = {{.module = 0, .base = 0x1000}};
  profile.sites = std::move(sites);
  for (const HeapSite& site : profile.sites) profile.totals += site.figures;
  return profile;
}

HeapProfiles Profile(std::vector<HeapSite> sites) {
  HeapProfiles profiles;
  profiles.last.push_back(ProfileOf(7, std::move(sites)));
  return profiles;
}

TEST(ServeProfileTest, OnlyWhatHasChangedIsLeft) {
  const HeapProfiles before = Profile({Site(1, 10, 10), Site(2, 20, 20)});
  HeapProfiles after =
      Profile({Site(1, 10, 10), Site(2, 50, 70), Site(3, 5, 5)});
  ASSERT_TRUE(KeepChanges(before, after).ok());
  ASSERT_EQ(after.last[0].sites.size(), 2U);
  EXPECT_EQ(after.last[0].sites[0].figures.live.bytes, 30U);
  EXPECT_EQ(after.last[0].sites[0].figures.allocated.bytes, 50U);
  EXPECT_EQ(after.last[0].sites[1].figures.live.bytes, 5U);
}

TEST(ServeProfileTest, WhatWasFreedIsBelowZero) {
  const HeapProfiles before = Profile({Site(1, 30, 30)});
  HeapProfiles after = Profile({Site(1, 10, 30)});
  ASSERT_TRUE(KeepChanges(before, after).ok());
  EXPECT_EQ(
      static_cast<std::int64_t>(after.last[0].sites[0].figures.live.bytes),
      -20);
  EXPECT_EQ(after.last[0].sites[0].figures.allocated.bytes, 0U);
}

TEST(ServeProfileTest, AProgramThatWasExecutedAnewIsNotCompared) {
  const HeapProfiles before = Profile({Site(1, 30, 30)});
  HeapProfiles after = Profile({Site(1, 30, 30)});
  after.last[0].mappings[0].base = 0x2000;
  EXPECT_TRUE(absl::IsFailedPrecondition(KeepChanges(before, after)));
}

TEST(ServeProfileTest, AProcessOfOneProfileAloneIsLeftOut) {
  HeapProfiles before = Profile({Site(1, 30, 30)});
  before.last.insert(before.last.begin(), ProfileOf(6, {Site(1, 90, 90)}));
  HeapProfiles after = Profile({Site(1, 35, 35)});
  after.last.insert(after.last.begin(), ProfileOf(8, {Site(1, 90, 90)}));
  ASSERT_TRUE(KeepChanges(before, after).ok());
  ASSERT_EQ(after.last.size(), 1U);
  EXPECT_EQ(after.last[0].pid, 7U);
  EXPECT_EQ(after.last[0].sites[0].figures.live.bytes, 5U);
}

}  // namespace
}  // namespace hakmem::tools
