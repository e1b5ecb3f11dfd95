#!/usr/bin/env python3
"""Tests of the list of what a release is made of."""
import hashlib
import pathlib
import tempfile
import unittest

import sbom


class SbomTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "hakmem-1.2.3.tar.gz"
        self.file.write_bytes(b"an archive")
        self.document = sbom.sbom("1.2.3", [self.file], sbom.workspace_text(), 1_700_000_000)

    def test_has_each_archive_of_the_workspace(self):
        self.assertEqual(len(sbom.ARCHIVES), sbom.workspace_text().count("sha256 ="))
        named = {package["name"]: package for package in self.document["packages"]}
        for name in sbom.ARCHIVES:
            self.assertRegex(named[name]["versionInfo"], r"^\d+\.\d")
            self.assertEqual(len(named[name]["checksums"][0]["checksumValue"]), 64)

    def test_has_each_library_that_is_linked_into_the_command(self):
        named = {package["name"]: package for package in self.document["packages"]}
        self.assertRegex(named["elfutils"]["licenseConcluded"], "LGPL-3.0")
        self.assertIn({"spdxElementId": "SPDXRef-Package-hakmem", "relationshipType": "STATIC_LINK",
                       "relatedSpdxElement": "SPDXRef-Package-elfutils"}, self.document["relationships"])

    def test_relations_lead_somewhere(self):
        known = {"SPDXRef-DOCUMENT"} | {each["SPDXID"] for kind in ("packages", "files") for each in self.document[kind]}
        for relation in self.document["relationships"]:
            self.assertIn(relation["spdxElementId"], known)
            self.assertIn(relation["relatedSpdxElement"], known)
        for one in known:
            self.assertRegex(one, r"^SPDXRef-[A-Za-z0-9.-]+$")

    def test_tells_files_by_their_content(self):
        file, = self.document["files"]
        self.assertIn({"algorithm": "SHA256", "checksumValue": hashlib.sha256(b"an archive").hexdigest()}, file["checksums"])
        self.assertEqual(self.document["creationInfo"]["created"], "2023-11-14T22:13:20Z")


if __name__ == "__main__":
    unittest.main()
