"""Arguments that were mistyped, and what is said of them: one line, the place and the remedy."""

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main

RNG = np.random.default_rng(0)
N = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistyped")
    kinds = ["a", "b"] * (N // 2)
    pd.DataFrame({"size": RNG.standard_normal(N), "Kind": kinds}).to_csv(
        folder / "t.csv", index=False
    )
    vectors = RNG.standard_normal((N, 1200)).astype(np.float32)
    pd.DataFrame({"embedding": list(vectors), "intent": kinds}).to_parquet(folder / "v.parquet")
    wide = pd.DataFrame(vectors, columns=[f"x{j}" for j in range(1200)]).assign(intent=kinds)
    wide.to_parquet(folder / "wide.parquet")
    (folder / "m.safetensors").write_text("")
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("compare t.csv Kind", "compare has no argument Kind: did you mean --target Kind?"),
        (
            "compare t.csv more.csv --target Kind",
            "compare has no argument more.csv (nearkin compare --help)",
        ),
        (
            "compare t.csv --traget Kind",
            "compare has no argument --traget Kind: did you mean --target?",
        ),
        (
            "compare t.csv --target kind",
            "no 'kind' (did you mean 'Kind'?): give --target one of 'size', 'Kind'",
        ),
        ("adapt v.parquet intent", "adapt has no argument intent: did you mean --label intent?"),
        (
            "adapt v.parquet --label intnet",
            "no 'intnet' (did you mean 'intent'?): give --label one of 'intent'.",
        ),
        (
            "adapt wide.parquet --label intnet",
            "no 'intnet' (did you mean 'intent'?): give --label one of 'x0', ",
        ),
        (
            "adapt v.parquet --label intent --pairs t.csv",
            "--label and --pairs each say what to learn from",
        ),
        (
            "adapt v.parquet",
            "say what to learn from, by one of --label COLUMN, --pairs FILE",
        ),
        (
            "migrate v.parquet wide.parquet sku",
            "migrate has no argument sku: did you mean --id sku?",
        ),
        (
            "predict m.safetensors t.csv out.csv",
            "predict has no argument out.csv: did you mean -o out.csv?",
        ),
    ],
)
def test_a_line_says_what_may_be_meant(folder, capsys, arguments, said):
    before = sorted(folder.iterdir())
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, err.count("\n")) == ("", 1)
    assert sorted(folder.iterdir()) == before
