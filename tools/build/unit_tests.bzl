"""hakmem_unit_tests: the googletests of one package, compiled a few at a time.

Most of what compiling a test takes is reading googletest, the C++ library and
the allocator's templates. So several sources are compiled as one, and all are
linked into one program, NAME_program. Each source still is a test of its own, in
a process of its own: `bazel test //allocator/superslab:zone_test`.
"""

load("//tools/build:copts.bzl", "UNIT_TEST_COPTS")

# How many sources are one.
_TOGETHER = 8

# A source's own helpers stay its own: its unnamed namespace lies in one that is named after the source.
_COMBINE = """
set -euo pipefail
out=$1
shift
for source in "$@"; do
  name=$(basename "$source" .cc)
  printf '#line 1 "%s"\\n' "$source"
  sed -e "s/^namespace {$/namespace $name { namespace {/" -e 's/^}  \\/\\/ namespace$/}}  \\/\\/ namespace/' "$source"
done >"$out"
"""

def _combined_sources_impl(ctx):
    outs = []
    sources = ctx.files.srcs
    for first in range(0, len(sources), _TOGETHER):
        out = ctx.actions.declare_file("%s_%d.cc" % (ctx.label.name, first // _TOGETHER))
        some = sources[first:first + _TOGETHER]
        ctx.actions.run_shell(
            command = _COMBINE,
            arguments = [out.path] + [source.path for source in some],
            inputs = some,
            outputs = [out],
            mnemonic = "CombineTests",
        )
        outs.append(out)
    return [DefaultInfo(files = depset(outs))]

_combined_sources = rule(
    implementation = _combined_sources_impl,
    attrs = {"srcs": attr.label_list(allow_files = [".cc"])},
)

def _file_test_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.executable.program, is_executable = True)
    return [DefaultInfo(executable = out, runfiles = ctx.attr.program[DefaultInfo].default_runfiles)]

# The tests of one source: allocator/testing/unit_test_main.cc chooses them by its path, the first argument.
_file_test = rule(
    implementation = _file_test_impl,
    test = True,
    attrs = {"program": attr.label(executable = True, cfg = "target", mandatory = True)},
)

def hakmem_unit_tests(srcs, deps, medium = [], shard_counts = {}, tags = []):
    """One test for each source, named after it.

    Args:
      srcs: NAME_test.cc, each with all but its includes in namespace hakmem.
      deps: of all.
      medium: those that take longer, by name.
      shard_counts: by name, how many processes share a test's cases.
      tags: of all.
    """
    for name in medium + shard_counts.keys():
        if name + ".cc" not in srcs:
            fail("there is no %s.cc" % name)
    _combined_sources(
        name = "unit_tests",
        srcs = srcs,
        testonly = True,
        visibility = ["//visibility:private"],
    )
    native.cc_binary(
        name = "unit_tests_program",
        srcs = [":unit_tests"],
        testonly = True,
        copts = UNIT_TEST_COPTS,
        tags = tags,
        visibility = ["//visibility:private"],
        deps = deps + [
            "//allocator/testing:unit_test_main",
            "@com_google_googletest//:gtest",
        ],
    )
    for source in srcs:
        name = source[:-len(".cc")]
        _file_test(
            name = name,
            program = ":unit_tests_program",
            args = ["--source=%s/%s" % (native.package_name(), source)],
            size = "medium" if name in medium else "small",
            shard_count = shard_counts.get(name),
            tags = tags,
        )
