"""The download of SuiteSparse matrices, from a folder in place of the network."""

import io
import tarfile

import pytest

from vitruvian.common.errors import UserError, WorkError
from vitruvian.sparse import collection


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a function that puts a file into a packed archive of the collection."""
    monkeypatch.setattr(collection, "_SITE", (tmp_path / "site").as_uri())

    def put(short: str, text: str, name: str | None = None) -> None:
        entry = collection.MATRICES[short]
        folder = tmp_path / "site" / entry.group
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / f"{entry.name}.tar.gz", "w:gz") as archive:
            for path, content in (("note.txt", b"?"), (f"{name or entry.name}.mtx", text.encode())):
                member = tarfile.TarInfo(f"{entry.name}/{path}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    return put


def test_a_matrix_is_unpacked_once(site, tmp_path):
    text = "%%MatrixMarket matrix coordinate real symmetric\n%\n17361 17361 178896\n1 1 1\n"
    site("gy", text)
    path = collection.fetch("gy", tmp_path / "new")
    assert path == tmp_path / "new" / "gyro_m.mtx" and path.read_text() == text
    path.write_text("kept")
    assert collection.fetch("gyro_m", tmp_path / "new").read_text() == "kept"
    assert [each.name for each in path.parent.iterdir()] == ["gyro_m.mtx"]


def test_mistakes_leave_nothing_behind(site, tmp_path):
    target = tmp_path / "new"
    with pytest.raises(WorkError, match=r"G2_circuit\.tar\.gz cannot be fetched to .*No such file"):
        collection.fetch("g2", target)
    site("g2", "%%MatrixMarket\n3 3 1\n")
    with pytest.raises(
        WorkError, match=r"150102 rows and 438388 entries, .* not the sizes '3 3 1'"
    ):
        collection.fetch("AMD/G2_circuit", target)
    site("g2", "", name="other")
    with pytest.raises(WorkError, match=r"must contain G2_circuit\.mtx, and it does not"):
        collection.fetch("g2", target)
    assert not target.exists() or not [*target.iterdir()]
    with pytest.raises(
        UserError, match=r"must be one of ca, .* not 'road_us'; the nearest is road"
    ):
        collection.fetch("road_us")


def test_the_listing_names_each_matrix_with_its_address():
    text = collection.listing()
    assert len(text.splitlines()) == 10 and "DIMACS10/europe_osm" in text
    assert all(
        url in text and url.startswith("https:")
        for url in map(collection.url, collection.MATRICES.values())
    )
