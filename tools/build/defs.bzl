"""The rules that every package of hakmem uses."""

load("//tools/build:copts.bzl", "COLD_COPTS", "CONSUMED_COPTS", "LIBRARY_COPTS", "PRODUCT_LINKOPTS", "TEST_COPTS", "TEST_LIBRARY_COPTS", "UNIT_TEST_COPTS")
load("//tools/build:renamed.bzl", "renamed_library")

# Each value of Config (allocator/config/config.h) and the product's file.
VARIANTS = {
    "release": "libhakmem.so",
    "tracing": "libhakmem-tracing.so",
    "hardened": "libhakmem-hardened.so",
    "debug": "libhakmem-debug.so",
}

# Those that export memcpy and its relatives (Config::check_copies).
COPYING_VARIANTS = ["hardened", "debug"]

# A sanitizer has a memcpy of its own.
_SANITIZED = "//tools/build:sanitized_build"

_GTEST = [
    "@com_google_googletest//:gtest",
    "@com_google_googletest//:gtest_main",
]

def _include_each_impl(ctx):
    sources = []
    for header in ctx.files.hdrs:
        source = ctx.actions.declare_file("%s_/%s.cc" % (ctx.label.name, header.basename))

        # Twice: the guard has to hold, too.
        ctx.actions.write(source, 2 * ("#include \"%s\"\n" % header.short_path))
        sources.append(source)
    return [DefaultInfo(files = depset(sources))]

_include_each = rule(
    implementation = _include_each_impl,
    attrs = {"hdrs": attr.label_list(allow_files = True)},
)

def _library_copts(testonly):
    # "@": the build is hakmem's own.
    if native.repository_name() != "@":
        return CONSUMED_COPTS
    return TEST_LIBRARY_COPTS if testonly else LIBRARY_COPTS

def hakmem_cc_library(name, hdrs = [], deps = [], copts = [], testonly = False, cold = False, target_compatible_with = [], **kwargs):
    """A library of the allocator; each of its headers must compile alone.

    The allocator's rules (no exceptions, no RTTI, no dynamic initialisation,
    all conversions explicit) hold unless it is testonly. `cold`: its sources
    are none of a warm path.
    """
    if cold:
        copts = COLD_COPTS + copts
    native.cc_library(
        name = name,
        hdrs = hdrs,
        copts = _library_copts(testonly) + copts,
        linkstatic = True,
        testonly = testonly,
        target_compatible_with = target_compatible_with,
        deps = deps,
        **kwargs
    )
    if hdrs:
        # As many compilations as the rest of the library takes; so at night.
        _include_each(
            name = name + "_each_header",
            hdrs = hdrs,
            testonly = testonly,
            tags = ["nightly"],
            target_compatible_with = target_compatible_with,
            visibility = ["//visibility:private"],
        )
        native.cc_library(
            name = name + "_headers_alone",
            srcs = [":" + name + "_each_header"],
            copts = _library_copts(testonly) + copts,
            linkstatic = True,
            testonly = testonly,
            tags = ["nightly"],
            target_compatible_with = target_compatible_with,
            visibility = ["//visibility:private"],
            deps = [":" + name],
        )

def _absl(names):
    return ["@com_google_absl//absl/" + name for name in names]

def hakmem_cc_test(name, srcs = None, deps = [], absl = [], copts = [], size = "small", **kwargs):
    """A googletest, NAME.cc if there is one; googletest and its main() are linked in."""
    all_deps = deps + _absl(absl)
    native.cc_test(
        name = name,
        size = size,
        srcs = native.glob([name + ".cc"]) if srcs == None else srcs,
        copts = UNIT_TEST_COPTS + copts,
        deps = all_deps + [dep for dep in _GTEST if dep not in all_deps],
        **kwargs
    )

def hakmem_program_test(name, programs, srcs = None, args = [], data = [], size = "small", tags = ["nosan"], **kwargs):
    """NAME.py, or the script in `srcs`, which is given the paths of these programs and files, then `args`."""
    native.sh_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".py"],
        args = ["$(location %s)" % program for program in programs] + args,
        data = data + programs,
        tags = tags,
        **kwargs
    )

def hakmem_cc_binary(name, copts = [], **kwargs):
    """A program: a test's helper, an example, a tool or a benchmark."""
    native.cc_binary(
        name = name,
        copts = TEST_COPTS + copts,
        **kwargs
    )

def hakmem_tool_library(name, parts = [], srcs = [], hdrs = [], deps = [], absl = [], copts = [], **kwargs):
    """A part of a tool: it may use abseil, exceptions and the C++ library. A part X is X.h and X.cc."""
    native.cc_library(
        name = name,
        srcs = srcs + native.glob([part + ".cc" for part in parts]),
        hdrs = hdrs + native.glob([part + ".h" for part in parts]),
        copts = TEST_COPTS + copts,
        linkstatic = True,
        deps = deps + _absl(absl),
        **kwargs
    )

def hakmem_variant_test(name, srcs, hdrs = [], deps = [], copts = [], tags = [], size = "small", linkopts = [], **kwargs):
    """A googletest of the product: one test per variant, with it as malloc.

    `name` is a test_suite of name_release, name_tracing, and so on. The sources
    are compiled once. Sanitizers bring a malloc of their own, so their runs
    leave these tests out (tag "nosan").
    """
    library = name + "_cases"
    native.cc_library(
        name = library,
        testonly = True,
        srcs = srcs + hdrs,
        copts = TEST_COPTS + copts,
        linkstatic = True,
        tags = ["nosan"],
        deps = deps + [dep for dep in _GTEST if dep not in deps],
        alwayslink = True,
        visibility = ["//visibility:private"],
    )
    for variant in VARIANTS:
        native.cc_test(
            name = "%s_%s" % (name, variant),
            size = size,
            linkopts = linkopts + ["-pthread"],
            malloc = "//allocator:hakmem_" + variant,
            tags = tags + ["nosan", variant],
            deps = [":" + library],
            **kwargs
        )
    native.test_suite(
        name = name,
        tags = ["manual"],
        tests = [":%s_%s" % (name, variant) for variant in VARIANTS],
    )

def hakmem_variant_binary(name, variants = VARIANTS, tags = [], copts = [], **kwargs):
    """A program per variant, name_VARIANT, with that variant as its malloc."""
    for variant in variants:
        native.cc_binary(
            name = "%s_%s" % (name, variant),
            copts = TEST_COPTS + copts,
            malloc = "//allocator:hakmem_" + variant,
            tags = tags + ["nosan"],
            **kwargs
        )

def _unless_sanitized(plain, sanitized):
    return select({
        _SANITIZED: sanitized,
        "//conditions:default": plain,
    })

def hakmem_products(library_package, exports, copy_names):
    """Per variant: the shared library, preload_VARIANT and hakmem_VARIANT.

    Args:
      library_package: its targets are named after the variants.
      exports: the linker's version script, which names the versions of symbols.
      copy_names: what these rename (renamed.bzl).
    """
    for variant, file_name in VARIANTS.items():
        library = "%s:%s" % (library_package, variant)
        deps = [library]
        if variant in COPYING_VARIANTS:
            renamed_library(
                name = variant + "_renamed",
                library = library,
                names = copy_names,
                tags = ["nosan"],
            )
            deps = _unless_sanitized([variant + "_renamed"], deps)
        native.cc_binary(
            name = file_name,
            additional_linker_inputs = [exports],
            linkshared = True,
            visibility = ["//visibility:public"],
            # A sanitizer's runtime must be the program's first library.
            target_compatible_with = _unless_sanitized([], ["//tools/build:a_program_cannot_preload_a_library_with_sanitizers"]),
            # With the revision.
            stamp = 1,
            linkopts = PRODUCT_LINKOPTS + ["-Wl,-soname=" + file_name, "-Wl,--version-script=$(location %s)" % exports],
            tags = ["nosan"],
            deps = deps + ["//allocator/base:revision_stamp"],
        )
        native.alias(
            name = "preload_" + variant,
            actual = ":" + file_name,
            visibility = ["//visibility:public"],
        )
        native.cc_library(
            name = "hakmem_" + variant,
            linkopts = ["-pthread"],
            visibility = ["//visibility:public"],
            deps = deps,
        )
