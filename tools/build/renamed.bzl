"""Gives symbols of compiled libraries other names."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _renamed(ctx, cc_toolchain, number, library):
    if library == None:
        return None
    output = ctx.actions.declare_file("%s_/%d/%s" % (ctx.label.name, number, library.basename))
    ctx.actions.run(
        executable = cc_toolchain.objcopy_executable,
        arguments = ["-D", "--redefine-syms=" + ctx.file.names.path, library.path, output.path],
        inputs = depset([library, ctx.file.names], transitive = [cc_toolchain.all_files]),
        outputs = [output],
        mnemonic = "RenameSymbols",
    )
    return output

def _renamed_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    linker_inputs = []
    number = 0
    for given in ctx.attr.library[CcInfo].linking_context.linker_inputs.to_list():
        libraries = []
        for library in given.libraries:
            number += 1
            libraries.append(cc_common.create_library_to_link(
                actions = ctx.actions,
                feature_configuration = features,
                cc_toolchain = cc_toolchain,
                static_library = _renamed(ctx, cc_toolchain, number, library.static_library),
                pic_static_library = _renamed(ctx, cc_toolchain, number, library.pic_static_library),
                alwayslink = library.alwayslink,
            ))
        linker_inputs.append(cc_common.create_linker_input(
            owner = ctx.label,
            libraries = depset(libraries),
            user_link_flags = depset(given.user_link_flags),
            additional_inputs = depset(given.additional_inputs),
        ))
    return [CcInfo(linking_context = cc_common.create_linking_context(
        linker_inputs = depset(linker_inputs, order = "topological"),
    ))]

# A library and all that it needs, with the symbols that `names` lists ("OLD
# NEW" on each line) renamed, in definitions and references alike. So hakmem's
# own calls of memcpy, written down or made by the compiler, become calls of
# something that is not exported, and a function of another name is exported as
# memcpy: a linker knows but one symbol of a name.
renamed_library = rule(
    implementation = _renamed_library_impl,
    attrs = {
        "library": attr.label(mandatory = True, providers = [CcInfo]),
        "names": attr.label(mandatory = True, allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
