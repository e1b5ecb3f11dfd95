#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tools/hakmem/top_processes.h"

namespace hakmem::tools {
namespace {

const std::string kId(64, 'a');

TEST(ProcessOriginTest, AServiceOfTheSystem) {
  const ProcessOrigin origin = OriginIn("0::/system.slice/redis.service\n");
  EXPECT_EQ(origin.cgroup, "/system.slice/redis.service");
  EXPECT_EQ(origin.unit, "redis.service");
  EXPECT_EQ(origin.container_id, "");
}

TEST(ProcessOriginTest, TheInnermostUnitIsToldAndGroupsBelowItAreNone) {
  EXPECT_EQ(
      OriginIn("0::/user.slice/user@1.service/app.slice/a.service/x\n").unit,
      "a.service");
  EXPECT_EQ(OriginIn("0::/user.slice\n").unit, "");
  EXPECT_EQ(OriginIn("0::/.service\n").unit, "");
}

TEST(ProcessOriginTest, ContainersOfEachKind) {
  for (const std::string& group :
       {"/docker/" + kId, "/system.slice/docker-" + kId + ".scope",
        "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope",
        "/kubepods/burstable/pod1/" + kId,
        "/machine.slice/libpod-" + kId + ".scope/container",
        "/kubepods.slice/crio-" + kId + ".scope"}) {
    EXPECT_EQ(OriginIn("0::" + group + "\n").container_id, kId) << group;
  }
  EXPECT_EQ(OriginIn("0::/lxc.payload.web/init\n").container_id, "web");
}

TEST(ProcessOriginTest, WhatOnlyLooksLikeAContainer) {
  EXPECT_EQ(OriginIn("0::/a-" + kId + "b.scope\n").container_id, "");
  EXPECT_EQ(OriginIn("0::/a-" + kId.substr(1) + ".scope\n").container_id, "");
}

TEST(ProcessOriginTest, OfVersion1TheLineThatTellsMost) {
  EXPECT_EQ(OriginIn("3:memory:/\n2:cpu:/a\n1:name=systemd:/b.scope\n").cgroup,
            "/b.scope");
  EXPECT_EQ(OriginIn("3:memory:/docker/x\n0::/\n").cgroup, "/docker/x");
  EXPECT_EQ(OriginIn("0::/\n").cgroup, "/");
}

TEST(ProcessOriginTest, PathsMayHaveColonsAndTextsMayBeEmpty) {
  EXPECT_EQ(OriginIn("0::/a:b\n").cgroup, "/a:b");
  EXPECT_EQ(OriginIn("").cgroup, "");
  EXPECT_EQ(OriginIn("nothing").cgroup, "");
}

TEST(ProcessOriginTest, OfThisProcess) {
  EXPECT_TRUE(
      OriginOf(static_cast<std::uint64_t>(::getpid())).cgroup.starts_with('/'));
}

}  // namespace
}  // namespace hakmem::tools
