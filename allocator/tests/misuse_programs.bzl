"""Programs that commit one misuse each, and a test of them for each variant."""

load("//tools/build:defs.bzl", "VARIANTS", "hakmem_cc_binary")

def misuse_programs(name, header, runner, exclude = [], copts = [], linkopts = []):
    """A program for each source of the package; NAME_VARIANT runs them all.

    Args:
      name: of the tests.
      header: what the sources share.
      runner: uses misuse_runs.py; it is called with the variant, its library and all programs. The
        sources lie beside these; they say what to expect.
      exclude: sources of the package that are none of these programs.
      copts: of the programs.
      linkopts: of the programs.
    """
    sources = native.glob(["*.cc"], exclude = exclude)
    programs = [source[:-len(".cc")] for source in sources]
    for program in programs:
        hakmem_cc_binary(
            name = program,
            testonly = True,
            srcs = [
                header,
                program + ".cc",
            ],
            # What they do is what compilers warn of.
            copts = copts + [
                "-fno-builtin",
                "-w",
            ],
            linkopts = linkopts + ["-pthread"],
            tags = ["nosan"],
            deps = ["//allocator/tests:opaque"],
        )
    for variant in VARIANTS:
        native.sh_test(
            name = "%s_%s" % (name, variant),
            size = "medium",
            srcs = [runner],
            args = [
                variant,
                "$(location //allocator:preload_%s)" % variant,
            ] + ["$(location :%s)" % program for program in programs],
            data = sources + [
                "//allocator/tests:misuse_runs.py",
                "//allocator/tests:shards.py",
                "//allocator:preload_" + variant,
            ] + [":" + program for program in programs],
            shard_count = 2,
            tags = ["nosan"],
        )
