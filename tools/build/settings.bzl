"""What a build may set: numbers that the allocator's lowest layer reads."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

def _build_settings_impl(ctx):
    first_refill = ctx.attr._first_refill[BuildSettingInfo].value
    defines = ["HAK_BUILD_FIRST_REFILL=%d" % first_refill] if first_refill else []
    return [CcInfo(compilation_context = cc_common.create_compilation_context(defines = depset(defines)))]

build_settings = rule(
    implementation = _build_settings_impl,
    attrs = {"_first_refill": attr.label(default = "//tools/build:first_refill")},
    provides = [CcInfo],
)

def _first_refill_transition_impl(_settings, attr):
    return {"//tools/build:first_refill": attr.first_refill}

_first_refill_transition = transition(
    implementation = _first_refill_transition_impl,
    inputs = [],
    outputs = ["//tools/build:first_refill"],
)

def _with_first_refill_impl(ctx):
    # Among a test's files the library would have the same place as the one without.
    output = ctx.actions.declare_file(ctx.label.name + ".so")
    ctx.actions.run_shell(
        command = "cp $1 $2",
        arguments = [ctx.files.library[0].path, output.path],
        inputs = ctx.files.library,
        outputs = [output],
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output]))]

# A library as it is with another value of a setting: for a test.
with_first_refill = rule(
    implementation = _with_first_refill_impl,
    attrs = {
        "first_refill": attr.int(mandatory = True),
        "library": attr.label(cfg = _first_refill_transition, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
