//! Compiles the amalgamated source that packaging puts into `native`.
use std::path::{Path, PathBuf};
use std::process::Command;

fn has_feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

/// As the makefile of the source release has them.
const FLAGS: &[&str] = &[
    "-std=c++20",
    "-fPIC",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    "-ftls-model=initial-exec",
    "-fno-lto",
    "-fomit-frame-pointer",
    "-fno-plt",
    "-fno-stack-protector",
    "-ffunction-sections",
    "-fdata-sections",
];

/// Returns and indirect branches that the processor can check.
fn checked_branches() -> Option<&'static str> {
    match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => Some("-fcf-protection=full"),
        Ok("aarch64") => Some("-mbranch-protection=standard"),
        _ => None,
    }
}

fn compile(source: &Path, variant: &str, exceptions: bool) -> PathBuf {
    let object = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"))
        .join(source.file_name().expect("a file"))
        .with_extension("o");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .opt_level(2)
        .warnings(false)
        .define(&format!("HAKMEM_BUILD_{variant}"), None);
    // CXXFLAGS stand behind all that cc is told, and a distribution's ask for link-time
    // optimisation, of which objcopy knows nothing: so ours come after both.
    let done = build
        .get_compiler()
        .to_command()
        .args(FLAGS)
        .args(checked_branches())
        .arg(if exceptions {
            "-fexceptions"
        } else {
            "-fno-exceptions"
        })
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status()
        .is_ok_and(|status| status.success());
    assert!(done, "hakmem: {} does not compile", source.display());
    object
}

fn rename(object: &Path, names: &Path) {
    let tools = std::env::var("OBJCOPY")
        .map_or(vec!["objcopy".into(), "llvm-objcopy".into()], |tool| {
            vec![tool]
        });
    let done = tools.iter().any(|tool| {
        let mut command = Command::new(tool);
        command
            .arg(format!("--redefine-syms={}", names.display()))
            .arg(object);
        command.status().is_ok_and(|status| status.success())
    });
    assert!(
        done,
        "hakmem: cannot rename symbols; objcopy of binutils is needed, or name one by OBJCOPY"
    );
}

fn main() {
    let native =
        PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("native");
    let source = native.join("hakmem.cc");
    assert!(
        source.exists(),
        "hakmem: native/hakmem.cc is not there: tools/package_crate.sh makes this crate whole"
    );
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    assert!(os == "linux", "hakmem is for Linux alone");
    let variant = match (has_feature("DEBUG"), has_feature("HARDENED")) {
        (true, _) => "DEBUG",
        (_, true) => "HARDENED",
        _ => "RELEASE",
    };
    let objects = [
        compile(&source, variant, false),
        compile(&native.join("hakmem_new.cc"), variant, true),
    ];
    let names = match (has_feature("OVERRIDE"), variant) {
        (false, _) => Some("prefixed_names.txt"),
        (true, "RELEASE") => None,
        // They have a memcpy of their own, under a name of its own until now.
        (true, _) => Some("copy_names.txt"),
    };
    if let Some(names) = names {
        objects
            .iter()
            .for_each(|object| rename(object, &native.join(names)));
    }
    let mut archive = cc::Build::new();
    archive
        .cpp(true)
        .cpp_link_stdlib(None)
        .objects(&objects)
        .compile("hakmem");
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-env-changed=OBJCOPY");
    println!("cargo:include={}", native.display());
}
