"""The header that tells a build its revision."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

_TEXT = """// The revision that the build was told: --//tools/build:revision.
//
// Owns: its text. Called by: options. Thread-safety: a constant.
#ifndef HAKMEM_ALLOCATOR_CONFIG_REVISION_H_
#define HAKMEM_ALLOCATOR_CONFIG_REVISION_H_

namespace hakmem {{

inline constexpr char kRevision[] = "{}";

}}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_REVISION_H_
"""

def _revision_header_impl(ctx):
    revision = ctx.attr._revision[BuildSettingInfo].value
    if not revision.replace("-", "").replace(".", "").replace("_", "").isalnum():
        fail("--//tools/build:revision=%s is no name of a revision" % revision)
    header = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(header, _TEXT.format(revision))
    return [DefaultInfo(files = depset([header]))]

revision_header = rule(
    implementation = _revision_header_impl,
    attrs = {"_revision": attr.label(default = "//tools/build:revision")},
)
