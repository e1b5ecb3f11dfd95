#!/usr/bin/env python3
"""Writes what a release is made of, as SPDX 2.3 in JSON.

usage: tools/sbom.py VERSION FILE... >SBOM

The files are the release's; what goes into them besides hakmem's own sources is
what is pinned, and what the crate is built with. SOURCE_DATE_EPOCH is the
time that is told.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys

import linked_libraries

ROOT = pathlib.Path(__file__).resolve().parent.parent
PINNING = ("WORKSPACE", "third_party/repositories.bzl")
# Of each archive that these pin: its license, and what it is to hakmem.
ARCHIVES = {
    "bazel_skylib": ("Apache-2.0", "BUILD_DEPENDENCY_OF"),
    "com_google_absl": ("Apache-2.0", "STATIC_LINK"),
    "com_github_nlohmann_json": ("MIT", "STATIC_LINK"),
    "com_github_yhirose_cpp_httplib": ("MIT", "STATIC_LINK"),
    "com_google_googletest": ("BSD-3-Clause", "TEST_DEPENDENCY_OF"),
    "com_github_google_benchmark": ("Apache-2.0", "TEST_DEPENDENCY_OF"),
}


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def workspace_text():
    return "".join((ROOT / path).read_text(encoding="utf-8") for path in PINNING)


def archives(workspace):
    """(name, version, address, sha256) of each http_archive and http_file."""
    found = []
    for part in re.findall(r"^ *http_(?:archive|file)[(,]$(.*?)^ *\)", workspace, re.MULTILINE | re.DOTALL):
        fields = dict(re.findall(r'^ +(\w+) = "([^"]*)"', part, re.MULTILINE))
        address = re.search(r'urls = \["([^"]*)"', part)[1]
        found.append((fields["name"], re.search(r"(\d[\d.]*\d)(?:\.tar|/)", address)[1], address, fields["sha256"]))
    return found


def package(name, version, address, license_name, **more):
    return {"SPDXID": identifier("Package-" + name), "name": name, "versionInfo": version, "downloadLocation": address,
            "filesAnalyzed": False, "licenseConcluded": license_name, "licenseDeclared": license_name,
            "copyrightText": "NOASSERTION", **more}


def checksums(path):
    data = path.read_bytes()
    # SPDX asks for SHA-1 as well.
    return [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, data).hexdigest()} for name in ("sha1", "sha256")]


def related(one, how, other):
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def sbom(version, paths, workspace, seconds):
    ours = package("hakmem", version, "NOASSERTION", "Apache-2.0")
    packages = [ours]
    relations = [related("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    for name, number, address, digest in archives(workspace):
        license_name, how = ARCHIVES[name]
        theirs = package(name, number, address, license_name, checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        packages.append(theirs)
        pair = (theirs["SPDXID"], how, ours["SPDXID"]) if how.endswith("_OF") else (ours["SPDXID"], how, theirs["SPDXID"])
        relations.append(related(*pair))
    for debian, source, name, license_name in linked_libraries.LIBRARIES:
        theirs = package(source, linked_libraries.version(debian), "NOASSERTION", license_name, comment=name + ", in the command alone")
        packages.append(theirs)
        relations.append(related(ours["SPDXID"], "STATIC_LINK", theirs["SPDXID"]))
    compiler = package("cc", "1", "NOASSERTION", "MIT OR Apache-2.0", comment="Rust's crate; compiles the crate of hakmem")
    packages.append(compiler)
    relations.append(related(compiler["SPDXID"], "BUILD_DEPENDENCY_OF", ours["SPDXID"]))
    files = []
    for path in sorted(paths):
        files.append({"SPDXID": identifier("File-" + path.name), "fileName": "./" + path.name, "checksums": checksums(path),
                      "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION"})
        relations.append(related(files[-1]["SPDXID"], "GENERATED_FROM", ours["SPDXID"]))
    # Unique to what is described, as SPDX wants it, and the same for the same.
    unique = hashlib.sha256("".join(file["checksums"][1]["checksumValue"] for file in files).encode()).hexdigest()
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "hakmem-" + version,
            "documentNamespace": "https://spdx.org/spdxdocs/hakmem-%s-%s" % (version, unique),
            "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: hakmem-tools-sbom"]},
            "packages": packages, "files": files, "relationships": relations}


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    json.dump(sbom(sys.argv[1], [pathlib.Path(path) for path in sys.argv[2:]], workspace_text(), seconds), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
