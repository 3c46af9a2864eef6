"""Where the papers' sets come from: a folder, OpenML (here a stand-in on this machine), or nowhere,
and then said.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from sklearn.datasets import _openml

from reproductions import Data, MissingDataError
from reproductions import data as module
from reproductions.data import SOURCES

ARFF = """\
@RELATION wisc
@ATTRIBUTE thickness REAL
@ATTRIBUTE nuclei REAL
@ATTRIBUTE class {benign,malignant}
@DATA
5,1,benign
8,?,malignant
4,10,malignant
1,2,benign
"""
NAME = "breast_cancer_wisconsin_original"


class TestFolder:
    def test_rows(self, tmp_path):
        np.savez(
            tmp_path / "sonar.npz",
            X=np.arange(6, dtype=np.uint8).reshape(3, 2),
            y=np.array(["M", "R", "M"]),
        )
        X, y = Data(tmp_path).rows("sonar")
        assert X.dtype == np.float64
        np.testing.assert_array_equal(X, [[0, 1], [2, 3], [4, 5]])
        assert y.tolist() == ["M", "R", "M"]

    def test_sparse(self, tmp_path):
        parts = {"indices": [0, 2, 1], "indptr": [0, 2, 3], "shape": [2, 3], "y": [1, 2]}
        np.savez(tmp_path / "news_rec.npz", data=[1, 1, 1], data_unnorm=[3, 4, 5], **parts)
        X, y = Data(tmp_path).sparse("news_rec", "data_unnorm")
        np.testing.assert_array_equal(X.toarray(), [[3, 0, 4], [0, 5, 0]])
        assert y.tolist() == [1, 2]

    def test_bundled_sets_need_none(self):
        X, y = Data().rows("balance_scale")
        assert X.shape == (625, 4)
        assert len(np.unique(y)) == 3

    def test_files_are_not_unpickled(self, tmp_path):
        np.savez(tmp_path / "sonar.npz", X=np.array([object()]), y=np.zeros(1))
        with pytest.raises(ValueError, match="allow_pickle"):
            Data(tmp_path).rows("sonar")


class TestMissing:
    def test_names_file_place_and_contents(self, tmp_path):
        with pytest.raises(
            MissingDataError, match=r"put usps\.npz into " + re.escape(str(tmp_path))
        ) as caught:
            Data(tmp_path).rows("usps")
        assert "9,298 x 256" in str(caught.value)
        assert "--download (OpenML 41082)" in str(caught.value)

    def test_without_a_folder(self):
        with pytest.raises(MissingDataError, match="the folder of --data or NEARKIN_DATA"):
            Data().rows("sonar")

    def test_openml_is_not_offered_where_it_has_nothing(self, tmp_path):
        for data in (Data(tmp_path), Data(tmp_path, download=True)):
            with pytest.raises(MissingDataError, match=r"put mushroom\.npz") as caught:
                data.rows("mushroom")
            assert "OpenML" not in str(caught.value)


def _answer(path: str, here: str) -> object:
    """Return what OpenML says to a request, as text or to be made JSON; None if there is no such
    thing.
    """
    if path.endswith(".arff") or "/download/" in path:
        return ARFF
    if "/features/" in path:
        kinds = {"thickness": "numeric", "nuclei": "numeric", "class": "nominal"}
        return {
            "data_features": {
                "feature": [
                    {
                        "index": str(index),
                        "name": name,
                        "data_type": kind,
                        "is_target": str(name == "class").lower(),
                        "number_of_missing_values": str(int(name == "nuclei")),
                        "is_ignore": "false",
                        "is_row_identifier": "false",
                    }
                    for index, (name, kind) in enumerate(kinds.items())
                ]
            }
        }
    if "/qualities/" in path:
        return {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "4.0"}]}}
    if path.endswith("/data/15"):
        return {
            "data_set_description": {
                "id": "15",
                "name": "wisc",
                "version": "1",
                "description": "made up",
                "format": "ARFF",
                "status": "active",
                "file_id": "52350",
                "url": f"{here}data/v1/download/52350/wisc.arff",
                "md5_checksum": hashlib.md5(ARFF.encode()).hexdigest(),
            }
        }
    return None


@pytest.fixture
def openml(monkeypatch, tmp_path) -> Iterator[list[str]]:
    """Answer scikit-learn's requests to OpenML; yield their paths."""
    requested: list[str] = []

    class StandIn(BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            answer = _answer(self.path, here)
            if answer is None:
                self.send_error(412)
                return
            body = gzip.compress(
                (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            )
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    here = f"http://127.0.0.1:{server.server_port}/"
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    # up to 1.6 one prefix for all addresses, later each address whole
    if hasattr(_openml, "_OPENML_PREFIX"):
        monkeypatch.setattr(_openml, "_OPENML_PREFIX", here)
    for what in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        address = getattr(_openml, what)
        monkeypatch.setattr(_openml, what, re.sub("^https://[^/]*/", here, address))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "kept"))
    monkeypatch.setenv("no_proxy", "*")
    yield requested
    server.shutdown()
    thread.join()
    server.server_close()


class TestOpenML:
    def shape(self, monkeypatch, shape):
        monkeypatch.setitem(module.SOURCES, NAME, replace(SOURCES[NAME], shape=shape))

    def test_rows_take_the_form_of_the_file(self, openml, monkeypatch, tmp_path):
        self.shape(monkeypatch, (3, 2))
        X, y = Data(tmp_path, download=True).rows(NAME)
        # without the row that has a gap
        np.testing.assert_array_equal(X, [[5, 1], [4, 10], [1, 2]])
        assert X.dtype == np.float64
        assert y.tolist() == ["benign", "malignant", "benign"]
        n_requested = len(openml)
        assert n_requested == 4
        np.testing.assert_array_equal(Data(download=True).rows(NAME)[0], X)
        assert len(openml) == n_requested  # scikit-learn has kept it

    def test_the_folder_comes_first(self, openml, tmp_path):
        np.savez(tmp_path / f"{NAME}.npz", X=np.ones((2, 1)), y=[0, 1])
        assert Data(tmp_path, download=True).rows(NAME)[0].shape == (2, 1)
        assert not openml

    def test_nothing_is_requested_unbidden(self, openml):
        with pytest.raises(MissingDataError, match="--download"):
            Data().rows(NAME)
        assert not openml

    def test_another_set_under_the_number_is_refused(self, openml):
        with pytest.raises(MissingDataError, match="OpenML 15 holds 3 x 2, not 683 x 9"):
            Data(download=True).rows(NAME)

    def test_a_refusal_is_told(self, openml):
        with pytest.raises(MissingDataError, match=r"sonar: OpenML 40 cannot be had \(.*not found"):
            Data(download=True).rows("sonar")


def test_usps_of_openml_becomes_that_of_the_file():
    X, y = SOURCES["usps"].adapt(np.array([[0.0, 0.5, 1.0]]), np.array(["10"]))
    np.testing.assert_array_equal(X, [[-1, 0, 1]])
    assert y.tolist() == [9]
