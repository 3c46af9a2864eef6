"""The table of hostile inputs that tests/app/test_cli_battery.py tries: what is given to the command,
and how it must end.

A case is the exit code, a piece of what must be printed, the name of a file, its content, and the
arguments. Content is text or bytes, an Arrow table, a dict of arrays, or a function of the bytes of
a sound model. Without arguments, or with options alone, the file is compared on with the target
"kind"; beside it lie new.csv, sound rows with the column "size", and model.safetensors, learned
from them. Arguments that begin with $ are a line of bash, in which `nobody` gives up the rights of
an administrator; those of SIGNALS are run by tests/app/stopped.py.
"""

import datetime
import decimal
import gzip
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array

N = 24
RNG = np.random.default_rng(0)
SIZES = RNG.standard_normal(N).round(3).tolist()
KINDS = [("red", "blue", "green")[i % 3] for i in range(N)]
LONG = "x" * 100_000
DAYS = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=17 * i, hours=i) for i in range(N)]


def table(kinds=KINDS, sizes=SIZES, **more):
    """Return a table of N rows with these labels; fewer cells are repeated."""
    columns = {
        name: [cells[i % len(cells)] for i in range(N)]
        for name, cells in {**more, "kind": kinds}.items()
    }
    return pd.DataFrame({"size": sizes, **columns})


def csv(*labels, sep=",", **more):
    """Return such a table as CSV."""
    return table(labels or KINDS, **more).to_csv(index=False, sep=sep)


def days(form):
    """Return a table with a column of dates or times in a format."""
    return csv(day=[day.strftime(form) for day in DAYS])


def arrow(**more):
    return pa.table({"size": SIZES, "kind": KINDS, **more})


def npz(**arrays):
    return {"X": np.array([SIZES, SIZES[::-1]]).T, "kind": np.array(KINDS), **arrays}


def archive(**members):
    """Return a ZIP archive of these texts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as parts:
        for name, text in members.items():
            parts.writestr(name.replace("_", "."), text)
    return file.getvalue()


def edited(**changes):
    """Return a function that changes fields in the header of a model."""

    def edit(model):
        size = int.from_bytes(model[:8], "little")
        outer = json.loads(model[8 : 8 + size])
        header = json.loads(outer["__metadata__"]["nearkin"]) | changes
        outer["__metadata__"]["nearkin"] = json.dumps(header)
        text = json.dumps(outer).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + model[8 + size :]

    return edit


QUICK = "--quick --methods PCA --no-references --folds 2 --repeats 1"
PLAIN = csv()
MANY = PLAIN + 99 * PLAIN.partition("\n")[2]
COMMAS = table().assign(size=[f"{size:.3f}".replace(".", ",") for size in SIZES])
SPARSE = csr_array(np.array([SIZES, SIZES[::-1]]).T)
PARTS = {
    "data": SPARSE.data,
    "indices": SPARSE.indices,
    "indptr": SPARSE.indptr,
    "shape": np.array(SPARSE.shape),
}
HUGE_HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000, 2), }"
HUGE = archive(X_npy=b"\x93NUMPY\x01\x00v\x00" + HUGE_HEADER.ljust(117) + b"\n", kind_npy=b"")
PREDICT = "predict m.safetensors new.csv"

ENCODINGS = {
    "plain": (0, "24 rows, 1 feature", "t.csv", PLAIN),
    "byte order mark": (0, "24 rows, 1 feature", "t.csv", b"\xef\xbb\xbf" + PLAIN.encode()),
    "UTF-16 with a mark": (0, "24 rows, 1 feature", "t.csv", PLAIN.encode("utf-16")),
    "UTF-16, big-endian": (
        0,
        "24 rows, 1 feature",
        "t.csv",
        b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    ),
    "UTF-16 and tabs, as Excel's Unicode text": (
        0,
        "1 feature",
        "t.txt",
        csv("ä", "b", sep="\t").encode("utf-16"),
    ),
    "UTF-16 without a mark": (0, "read as UTF-16", "t.csv", PLAIN.encode("utf-16-le")),
    "Windows-1252": (0, "Windows-1252", "t.csv", csv("Zürich", "Köln").encode("cp1252")),
    "a byte that Windows-1252 lacks": (
        0,
        "24 bytes read as Windows-1252",
        "t.csv",
        csv("ä", "b").encode("latin-1").replace(b"b", b"\x81"),
    ),
    "CRLF": (0, "24 rows", "t.csv", PLAIN.replace("\n", "\r\n")),
    "CR": (0, "24 rows", "t.csv", PLAIN.replace("\n", "\r")),
    "blank lines": (0, "24 rows", "t.csv", PLAIN.replace("\n", "\n\n")),
    "no line end at the end": (0, "24 rows", "t.csv", PLAIN.rstrip("\n")),
    "random bytes": (2, "", "t.csv", RNG.bytes(5000)),
    "only NUL bytes": (2, "is not a text file", "t.csv", bytes(1000)),
    "a NUL in a cell": (0, "ignored, NUL characters: 8", "t.csv", PLAIN.replace("red", "r\0d")),
    "a NUL in a name": (0, "NUL", "t.csv", PLAIN.replace("size", "si\0ze")),
    "a PNG called CSV": (2, "", "t.csv", b"\x89PNG\r\n\x1a\n" + RNG.bytes(2000)),
    "a ZIP called CSV": (0, "24 rows", "t.csv", archive(a_csv=PLAIN)),
    "a PDF called CSV": (2, "", "t.csv", b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\n"),
    "a web page": (2, "no 'kind'", "t.csv", "<html><body>kind</body></html>"),
    "JSON called CSV": (2, "1 row: too few rows", "t.csv", '[{"size": 1, "kind": "a"}]'),
    "JSON": (2, "1 row: too few rows", "t.json", '[{"size": 1, "kind": "a"}]'),
    "no workbook": (2, "not a readable", "t.xlsx", archive(workbook_xml="<x/>")),
    "no old workbook": (
        2,
        "not a readable workbook",
        "t.xls",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
    ),
    "no suffix": (0, "24 rows", "t", PLAIN),
    "gzip": (0, "24 rows", "t.csv.gz", gzip.compress(PLAIN.encode())),
    "a cut gzip": (2, "t.csv.gz", "t.csv.gz", gzip.compress(PLAIN.encode())[:-20]),
}
LAYOUTS = {
    "empty": (2, "is empty", "t.csv", ""),
    "only spaces": (2, "", "t.csv", "   \n  \n"),
    "one byte": (2, "no 'kind'", "t.csv", "x"),
    "header only": (2, "0 rows", "t.csv", "size,kind\n"),
    "one row": (2, "too few rows", "t.csv", "size,kind\n1,a\n"),
    "one column": (2, "no feature columns", "t.csv", "kind\n" + "\n".join(KINDS)),
    "semicolons": (0, "24 rows, 1 feature", "t.csv", csv(sep=";")),
    "tabs": (0, "24 rows, 1 feature", "t.tsv", csv(sep="\t")),
    "pipes": (0, "24 rows, 1 feature", "t.txt", csv(sep="|")),
    "semicolons and decimal commas": (0, "1 feature", "t.csv", COMMAS.to_csv(index=False, sep=";")),
    "Excel's line on the separator": (0, "24 rows, 1 feature", "t.csv", "sep=;\n" + csv(sep=";")),
    "a separator that was given": (0, "1 feature", "t.csv", csv(sep=";"), "--sep semicolon"),
    "another separator that was given": (2, "no 'kind'", "t.csv", csv(sep=";"), "--sep tab"),
    "a separator of two letters": (2, "--sep", "t.csv", PLAIN, "--sep ab"),
    "decimal commas that were given": (
        0,
        "1 feature",
        "t.csv",
        COMMAS.to_csv(index=False, sep=";"),
        "--decimal ,",
    ),
    "commas inside quotes": (0, "24 rows", "t.csv", csv("a, b", "c;d", sep=";")),
    "everything quoted": (0, "24 rows", "t.csv", table().to_csv(index=False, quoting=1)),
    "an open quote": (
        0,
        "quotes that are never closed, ignored: 1 (line 2)",
        "t.csv",
        PLAIN.replace("red", '"red', 1),
    ),
    "thousands of quotes": (2, "no 'kind'", "t.csv", '"' * 10_001),
    "a long row": (
        0,
        "left out, rows with too many fields: 1 (line 26)",
        "t.csv",
        PLAIN + "1,red,red\n",
    ),
    "a short row": (
        0,
        "rows with too few fields, their last cells missing: 1 (line 26)",
        "t.csv",
        PLAIN + "1\n",
    ),
    "a trailing separator in every line": (
        0,
        "24 rows, 1 feature",
        "t.csv",
        PLAIN.replace("\n", ",\n"),
    ),
    "a title above the header": (
        0,
        "left out, above the header: 'Results of 2024'",
        "t.csv",
        "Results of 2024\n\n" + PLAIN,
    ),
    "two columns of one name": (0, "'size.1'", "t.csv", csv(more=range(N)).replace("more", "size")),
    "columns without names": (0, "24 rows", "t.csv", PLAIN.replace("size", "")),
    "a name of 100,000 letters": (0, "24 rows", "t.csv", PLAIN.replace("size", LONG)),
    "a value of 100,000 letters": (
        0,
        "text of more than 500 characters: more",
        "t.csv",
        csv(more=[LONG, "y"]),
    ),
    "a label of 100,000 letters": (2, "characters", "t.csv", csv(LONG, "y")),
    "100,000 columns": (
        2,
        "too few rows",
        "t.csv",
        ",".join(map(str, range(100_000))) + ",kind\n" + "1," * 100_000 + "a\n",
    ),
    "no such column": (2, "did you mean 'kind'?", "t.csv", PLAIN, "--target kid"),
    "groups that are the target": (2, "give two columns", "t.csv", PLAIN, "--groups kind"),
    "a folder": (2, "is a folder", "t.csv", PLAIN, "compare . --target kind"),
    "no such file": (2, "no such file", "t.csv", PLAIN, "compare nope.csv --target kind"),
}
MISSING = {
    "a missing number": (0, "1 row", "t.csv", csv(more=["", *range(1, N)])),
    "the usual marks of a missing number": (
        0,
        "NA",
        "t.csv",
        csv(more=["NA", "?", "-", "n/a", *range(4, N)]),
    ),
    "missing numbers that are refused": (
        2,
        "'more' (1)",
        "t.csv",
        csv(more=["", *range(1, N)]),
        "--refuse-missing",
    ),
    "a mark of one's own": (0, "-999", "t.csv", csv(more=[-999, *range(1, N)]), "--missing -999"),
    "missing text": (0, "24 rows", "t.csv", csv(more=["", "a", "b"])),
    "a column without a value": (0, "more", "t.csv", csv(more=[""])),
    "no value at all": (2, "no feature columns", "t.csv", table(sizes=np.nan).to_csv(index=False)),
    "labels that are missing": (0, "(16 labelled)", "t.csv", csv("", "a", "b")),
    "no label at all": (2, "0 rows with a label", "t.csv", csv("")),
    "the class None": (0, "3 classes", "t.csv", csv("None", "Mild", "Severe")),
    "the class NA": (0, "3 classes", "t.csv", csv("NA", "DE", "FR")),
    "the class nan": (0, "2 classes", "t.csv", csv("a", "nan")),
    "a category called None": (0, "more (2 values)", "t.csv", csv(more=["None", "Mild"])),
    "a row without a value": (0, "24 rows", "t.csv", PLAIN + ",\n"),
}
LABELS = {
    "labels with spaces": (0, "2 classes", "t.csv", csv("yes", "yes ", "no")),
    "labels 1 and 1.0": (0, "2 classes", "t.csv", csv("1", "1.0", "2")),
    "labels Yes and yes": (0, "Yes", "t.csv", csv("Yes", "yes", "no")),
    "labels only of spaces": (2, "0 rows with a label", "t.csv", csv(" ", "  ")),
    "one class": (2, "one class", "t.csv", csv("a")),
    "a class of a single row": (2, "a single row of the class 'b'", "t.csv", csv(*"a" * 23, "b")),
    "a class for every row": (2, "holds real numbers", "t.csv", csv(*range(N))),
    "labels that are real numbers": (2, "--task regression", "t.csv", csv(0.5, 1.5)),
    "labels that are infinite": (2, "real numbers, not classes", "t.csv", csv("inf", "1")),
    "labels that are dates": (2, "date", "t.csv", csv(*(f"2024-01-{i:02}" for i in range(1, 7)))),
    "labels that are huge integers": (0, "2 classes", "t.csv", csv(2**60, 2**60 + 1)),
    "truth values": (0, "2 classes", "t.csv", csv("TRUE", "False")),
    "labels that command a terminal": (0, "2 classes", "t.csv", csv("\x1b[31mred\x07", "b")),
    "labels that are formulas": (0, "2 classes", "t.csv", csv("=cmd()|'/c calc'!A0", "@b")),
    "labels from right to left, and emoji": (0, "2 classes", "t.csv", csv("\u202eفيل", "🐘")),
    "labels of several lines": (0, "2 classes", "t.csv", csv("a\nb", "c")),
    "numbers in percent": (
        0,
        "from",
        "t.csv",
        csv(*(f"{i}%" for i in range(N))),
        "--task regression",
    ),
    "numbers in euros": (
        0,
        "from",
        "t.csv",
        csv(*(f"€{i}.50" for i in range(N))),
        "--task regression",
    ),
    "numbers that are words": (2, "not a number", "t.csv", PLAIN, "--task regression"),
    "numbers that are all equal": (2, "kind", "t.csv", csv(3.5), "--task regression"),
    "a score of another task": (2, "--score", "t.csv", PLAIN, "--score r2"),
}
VALUES = {
    "percent": (0, "2 features", "t.csv", csv(more=[f"{i * i}.5%" for i in range(N)])),
    "currency": (0, "2 features", "t.csv", csv(more=[f"€{i * i}.50" for i in range(N)])),
    "thousands": (
        0,
        "2 features",
        "t.csv",
        csv(more=[f"{1 + i * i % 9},{i:03}.5" for i in range(N)]),
    ),
    "decimal commas in quotes": (
        0,
        "2 features",
        "t.csv",
        csv(more=[f"{i * i},5" for i in range(N)]),
    ),
    "accounting": (
        0,
        "2 features",
        "t.csv",
        csv(more=[f"({i * i}.50)" if i % 2 else f"{i}.00" for i in range(N)]),
    ),
    "a typographic minus": (
        0,
        "2 features",
        "t.csv",
        csv(more=[f"\N{MINUS SIGN}{i * i}.5" for i in range(N)]),
    ),
    "ZIP codes": (0, "4 features", "t.csv", csv(zip=["01234", "02345", "91234"])),
    "1 and 1.0 among words": (0, "24 rows", "t.csv", csv(more=["1", "1.0", "many"])),
    "numbers of the rows": (0, "ignored, numbers of the rows: no", "t.csv", csv(no=range(N))),
    "identifiers": (0, "ignored", "t.csv", csv(name=[f"person {i}" for i in range(N)])),
    "only identifiers": (
        2,
        "no feature columns",
        "t.csv",
        table(sizes=range(N)).to_csv(index=False),
    ),
    "only constants": (2, "no feature columns", "t.csv", table(sizes=1).to_csv(index=False)),
    "an infinite number": (0, "infinite", "t.csv", csv(more=["inf", *range(1, N)])),
    "1e400": (0, "infinite", "t.csv", csv(more=["1e400", *range(1, N)])),
    "integers of 40 digits": (
        0,
        "2 features",
        "t.csv",
        csv(more=[10**40 + 10**38 * i * i for i in range(N)]),
    ),
    "numbers of all sizes": (
        0,
        "2 features",
        "t.csv",
        csv(more=[float(f"1e{i}") for i in range(-12, 12)]),
    ),
    "numbers whose squares are infinite": (
        2,
        "more",
        "t.csv",
        csv(more=[1e300 * (i % 7) for i in range(N)]),
    ),
    "truth values and numbers": (0, "24 rows", "t.csv", csv(more=[True, 1, 0, False])),
    "words among numbers": (0, "24 rows", "t.csv", csv(more=[1, "one", 2.5, True])),
    "a name like an encoded value": (
        2,
        "more than once",
        "t.csv",
        csv(**{"more": "ab", "more=a": SIZES}),
    ),
    "markup in names": (0, "2 features", "t.csv", csv(**{"[red]<script>": SIZES[::-1]})),
    "the rows twice": (0, "twin", "t.csv", PLAIN + PLAIN.partition("\n")[2]),
    **{
        f"dates as {form}": (0, "day", "t.csv", days(form))
        for form in (
            *(
                "%Y-%m-%d",
                "%Y/%m/%d",
                "%d.%m.%Y",
                "%d/%m/%Y",
                "%m/%d/%Y",
                "%d-%m-%Y",
                "%d %b %Y",
                "%b %d, %Y",
            ),
            *("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f", "%m/%d/%Y %I:%M %p", "%H:%M"),
        )
    },
    "dates that no calendar has": (0, "24 rows", "t.csv", csv(day=["2024-02-30", "2024-02-31"])),
    "days that may be months": (
        0,
        "day",
        "t.csv",
        csv(day=[f"{1 + i % 12:02}/{1 + i // 2:02}/2024" for i in range(N)]),
    ),
}
PARQUET = {
    "Parquet": (0, "24 rows, 1 feature", "t.parquet", arrow()),
    "nulls": (0, "24 rows, 2 features", "t.parquet", arrow(more=[None, *range(1, N)])),
    "truth values with nulls": (
        0,
        "24 rows",
        "t.parquet",
        arrow(more=[*[True, False] * 11, True, None]),
    ),
    "categories with nulls": (
        0,
        "24 rows",
        "t.parquet",
        arrow(more=pa.array(["a", "b", None] * 8).dictionary_encode()),
    ),
    "only nulls": (0, "more", "t.parquet", arrow(more=pa.nulls(N))),
    "NaN": (0, "24 rows", "t.parquet", arrow(more=[np.nan, *SIZES[1:]])),
    "an infinite number in Parquet": (0, "infinite", "t.parquet", arrow(more=[np.inf] * N)),
    "decimals": (
        0,
        "2 features",
        "t.parquet",
        arrow(more=[decimal.Decimal(i * i) / 8 for i in range(N)]),
    ),
    "timestamps in a zone": (
        0,
        "day",
        "t.parquet",
        arrow(day=pa.array(DAYS, pa.timestamp("ns", "UTC"))),
    ),
    "timestamps without a zone": (0, "day", "t.parquet", arrow(day=pa.array(DAYS))),
    "times that no calendar has": (
        0,
        "24 rows",
        "t.parquet",
        arrow(day=pa.array([2**62, 1] * 12, pa.timestamp("us"))),
    ),
    "days": (0, "day", "t.parquet", arrow(day=pa.array(DAYS, pa.date32()))),
    "times of the day": (0, "day", "t.parquet", arrow(day=[datetime.time(i) for i in range(N)])),
    "durations": (
        0,
        "24 rows",
        "t.parquet",
        arrow(more=pa.array([i * i for i in range(N)], pa.duration("s"))),
    ),
    "lists": (0, "3 features", "t.parquet", arrow(more=[[i % 5, i // 2] for i in range(N)])),
    "lists of other lengths": (
        2,
        "'more'",
        "t.parquet",
        arrow(more=[[1.0, 2.0]] * 20 + [[1.0]] * 4),
    ),
    "structs": (2, "'more' (struct<", "t.parquet", arrow(more=[{"a": [{"b": 1}]}] * N)),
    "maps": (
        2,
        "'more' (map<",
        "t.parquet",
        arrow(more=pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64()))),
    ),
    "bytes": (2, "'more' (binary)", "t.parquet", arrow(more=[b"ab"] * N)),
    "no rows in Parquet": (2, "0 rows", "t.parquet", arrow().slice(0, 0)),
    "no columns in Parquet": (2, "a table without columns", "t.parquet", pa.table({})),
    "Parquet with two columns of one name": (
        2,
        "once",
        "t.parquet",
        pa.Table.from_arrays([KINDS] * 2, ["kind"] * 2),
    ),
    "CSV called Parquet": (2, "not a readable Parquet file", "t.parquet", PLAIN),
    "Parquet that is empty": (2, "not a readable Parquet file", "t.parquet", ""),
    "an index of text": (
        0,
        "24 rows",
        "t.parquet",
        pa.Table.from_pandas(table().set_index(pd.Index(map(str, DAYS)))),
    ),
}
NPZ = {
    "NPZ": (0, "24 rows, 2 features", "t.npz", npz()),
    "single precision": (0, "1 feature", "t.npz", npz(X=np.array([SIZES], np.float32).T)),
    "NaN in NPZ": (0, "2 features", "t.npz", npz(X=np.array([[np.nan, *SIZES[1:]], SIZES]).T)),
    "an infinite number in NPZ": (
        2,
        "column 0",
        "t.npz",
        npz(X=np.array([[np.inf, *SIZES[1:]], SIZES]).T),
    ),
    "sparse rows": (0, "2 sparse features", "t.npz", {**PARTS, "kind": np.array(KINDS)}),
    "sparse NaN": (
        2,
        "'data'",
        "t.npz",
        {**PARTS, "data": SPARSE.data * np.nan, "kind": np.array(KINDS)},
    ),
    "sparse rows out of bounds": (
        2,
        "sparse",
        "t.npz",
        {**PARTS, "shape": np.array([N, 1]), "kind": np.array(KINDS)},
    ),
    "pickled objects": (2, "Object arrays", "t.npz", npz(kind=np.array(KINDS, dtype=object))),
    "pickled rows": (2, "NPZ", "t.npz", npz(X=np.array([SIZES, KINDS], dtype=object).T)),
    "text for numbers": (2, "'X' holds", "t.npz", npz(X=np.array([KINDS]).T)),
    "complex numbers": (2, "'X' holds 'complex128'", "t.npz", npz(X=np.full((N, 2), 1j))),
    "images": (2, "of the shape (24, 2, 2)", "t.npz", npz(X=np.zeros((N, 2, 2)))),
    "a vector": (2, "of the shape (24,)", "t.npz", npz(X=np.array(SIZES))),
    "too few labels": (2, "each of 24 rows", "t.npz", npz(kind=np.array(KINDS[1:]))),
    "no labels": (2, "has no 'kind'", "t.npz", {"X": np.ones((N, 2))}),
    "no rows in NPZ": (2, "shape", "t.npz", npz(X=np.ones((0, 2)), kind=np.array([], dtype=str))),
    "other arrays": (2, "'X'", "t.npz", {"kind": np.array(KINDS), "a": np.ones(N)}),
    "too few names": (2, "'feature_names'", "t.npz", npz(feature_names=np.array(["p"]))),
    "CSV called NPZ": (2, "not a readable NPZ archive", "t.npz", PLAIN),
    "an archive of something else": (2, "NPZ", "t.npz", archive(X_npy="1,2", kind_npy="1")),
    "an archive that claims 10^13 rows": (2, "t.npz", "t.npz", HUGE),
}
MODELS = {
    "a sound model": (0, "label,vote", "m.safetensors", lambda model: model, PREDICT),
    "an empty model": (2, "not a nearkin model", "m.safetensors", "", PREDICT),
    "a cut model": (2, "not a nearkin model", "m.safetensors", lambda model: model[:-1], PREDICT),
    "a cut header": (2, "not a nearkin model", "m.safetensors", lambda model: model[:50], PREDICT),
    "a longer model": (
        2,
        "not a nearkin model",
        "m.safetensors",
        lambda model: model + b"\0",
        PREDICT,
    ),
    "a flipped bit": (
        2,
        "damaged",
        "m.safetensors",
        lambda model: model[:-1] + bytes([model[-1] ^ 1]),
        PREDICT,
    ),
    "CSV for a model": (2, "not a nearkin model", "m.safetensors", PLAIN, PREDICT),
    "a PNG for a model": (
        2,
        "not a nearkin model",
        "m.safetensors",
        b"\x89PNG\r\n\x1a\n" + bytes(99),
        PREDICT,
    ),
    "a pickle for a model": (
        2,
        "not a nearkin model",
        "m.safetensors",
        b"\x80\4\x95cos\nsystem\n",
        PREDICT,
    ),
    "an old model": (2, "not a nearkin model", "m.safetensors", archive(schema_json="{}"), PREDICT),
    "a model of the last format": (2, "make it again", "m.safetensors", edited(format=4), PREDICT),
    "a newer model": (2, "install a newer nearkin", "m.safetensors", edited(format=99), PREDICT),
    "a field that is unknown": (2, "not a nearkin model", "m.safetensors", edited(more=1), PREDICT),
    "a format that is no number": (
        2,
        "not a nearkin model",
        "m.safetensors",
        edited(format="x"),
        PREDICT,
    ),
    "a task that is none": (2, "not a nearkin model", "m.safetensors", edited(task="x"), PREDICT),
    "labels of a model that are one": (
        2,
        "not a nearkin model",
        "m.safetensors",
        edited(classes=["a", "a"]),
        PREDICT,
    ),
    "more votes than rows": (
        2,
        "not a nearkin model",
        "m.safetensors",
        edited(n_neighbors=900),
        PREDICT,
    ),
    "a model that is missing": (2, "cannot be read", "t.csv", PLAIN, PREDICT),
    "a model that is a folder": (2, "is not a file", "t.csv", PLAIN, "predict . new.csv"),
    "a model that is a device": (2, "is not a file", "t.csv", PLAIN, "predict /dev/zero new.csv"),
    "a model that is inspected": (0, "24 rows", "t.csv", PLAIN, "inspect model.safetensors"),
}
CHECK = "check t.csv --target kind"
CHECKED = {
    "a table that is checked": (0, "probably", "t.csv", PLAIN, CHECK),
    "a class of a single row that is checked": (
        0,
        "kind of their own, for which no other row votes: 23 (b)",
        "t.csv",
        csv(*"a" * 12, *"d" * 11, "b"),
        CHECK,
    ),
    "a class for every row that is checked": (
        2,
        "merge some classes",
        "t.csv",
        csv(*(f"class {i}" for i in range(N))),
        CHECK,
    ),
    "one class that is checked": (2, "one class", "t.csv", csv("a"), CHECK),
    "labels that are missing where all is checked": (
        0,
        "(16 labelled)",
        "t.csv",
        csv("", "a", "b"),
        CHECK,
    ),
    "real numbers that are checked": (2, "cut them into", "t.csv", csv(0.5, 1.5), CHECK),
    "dates that are checked": (
        2,
        "such as the month.",
        "t.csv",
        csv(*(f"2024-01-{i:02}" for i in range(1, 7))),
        CHECK,
    ),
    "sparse rows that are checked": (
        0,
        "2 sparse features",
        "t.npz",
        {**PARTS, "kind": np.array(KINDS)},
        "check t.npz --target kind",
    ),
    "identifiers that are checked": (
        0,
        "ignored",
        "t.csv",
        csv(name=[f"person {i}" for i in range(N)]),
        CHECK,
    ),
    "gaps that are checked": (0, "kept", "t.csv", csv(more=["", *range(1, N)]), CHECK),
    "markup that is checked": (
        0,
        "Report",
        "t.csv",
        csv("<script>alert(1)</script>", "\x1b[31mred"),
        f"{CHECK} --report r.html",
    ),
    "groups that are checked": (0, "4 groups", "t.csv", csv(who="abcd"), f"{CHECK} --groups who"),
    "groups that are the checked target": (
        2,
        "two columns",
        "t.csv",
        PLAIN,
        f"{CHECK} --groups kind",
    ),
    "no target that is checked": (2, "--target", "t.csv", PLAIN, "check t.csv"),
    "no row to print": (2, "at least 1", "t.csv", PLAIN, f"{CHECK} --rows 0"),
    "a table that is checked and missing": (2, "no such file", "t.csv", PLAIN, "check nope.csv"),
    "a checked table from standard input": (
        0,
        "24 rows",
        "t.csv",
        PLAIN,
        "$ nearkin check - --target kind < t.csv",
    ),
}
NEW = "predict model.safetensors t.csv"
ROWS = {
    "new rows": (0, "label,vote", "t.csv", "size\n1\n", NEW),
    "new rows with the target and more": (0, "ignored", "t.csv", csv(more=SIZES), NEW),
    "new rows without a column": (2, "lacks 'size'", "t.csv", "sizes\n1\n", NEW),
    "a new cell that is text": (0, "size", "t.csv", "size\n1\nbig\n", NEW),
    "a new cell that is infinite": (0, "infinite", "t.csv", "size\n1\ninf\n", NEW),
    "a new cell that is missing": (0, "missing", "t.csv", "size,more\n1,a\n,b\n", NEW),
    "new rows with semicolons": (0, "label,vote", "t.csv", "size;more\n1,5;a\n", NEW),
    "no new rows": (2, "0 rows", "t.csv", "size\n", NEW),
    "new rows with names": (0, "anna", "t.csv", "size,who\n1,anna\n", f"{NEW} --id who"),
    "names that are not there": (2, "'who'", "t.csv", "size\n1\n", f"{NEW} --id who"),
    "a coverage in percent": (2, "such as 0.9", "t.csv", "size\n1\n", f"{NEW} --coverage 90"),
    "sets by a vote of k rows": (2, "nca-tables", "t.csv", "size\n1\n", f"{NEW} --coverage .9"),
    "drift without held-out rows": (2, "nca-tables", "t.csv", "size\n1\n", f"{NEW} --drift"),
    "an output of another kind": (2, ".csv", "t.csv", "size\n1\n", f"{NEW} -o out.doc"),
    "an output in no folder": (2, "another place", "t.csv", "size\n1\n", f"{NEW} -o no/out.csv"),
    "an output that is a folder": (2, "", "t.csv", "size\n1\n", f"{NEW} -o ."),
}
OPTIONS = {
    "no command": (2, "COMMAND", "t.csv", PLAIN, "-q"),
    "an unknown command": (2, "invalid choice", "t.csv", PLAIN, "guess t.csv"),
    "an unknown option": (2, "compare has no argument --fast", "t.csv", PLAIN, "--fast"),
    "no target": (2, "--target", "t.csv", PLAIN, "compare t.csv -q"),
    "one fold": (2, "at least 2", "t.csv", PLAIN, "--folds 1"),
    "more folds than rows": (0, "99 folds reduced", "t.csv", PLAIN, "--folds 99"),
    "a negative budget": (2, "positive", "t.csv", PLAIN, "--time-budget -1"),
    "an unknown method": (2, "--methods", "t.csv", PLAIN, "--methods magic"),
    "a report that is no page": (2, ".html", "t.csv", PLAIN, "--report r.pdf"),
    "a picture in no folder": (2, "another place", "t.csv", PLAIN, "--picture no/p.png"),
    "a folder on a cluster that is none": (
        2,
        "",
        "t.csv",
        PLAIN,
        "compare t.csv --target kind --dask",
    ),
}

COMPARE = f"nearkin compare t.csv --target kind {QUICK}"
ENDINGS = {
    "standard input is closed": (0, "Picture", "t.csv", PLAIN, f"$ {COMPARE} <&-"),
    "standard input is read and closed": (
        2,
        "standard input",
        "t.csv",
        PLAIN,
        "$ nearkin compare - --target kind <&-",
    ),
    "standard input": (
        0,
        "24 rows",
        "t.csv",
        PLAIN,
        f"$ nearkin compare - --target kind {QUICK} < t.csv",
    ),
    "standard output is closed": (0, "", "t.csv", PLAIN, f"$ {COMPARE} >&- && ls *.png"),
    "all three are closed": (0, "", "t.csv", PLAIN, f"$ {COMPARE} <&- >&- 2>&-"),
    "standard output is full": (1, "standard output", "t.csv", PLAIN, f"$ {COMPARE} > /dev/full"),
    "ASCII": (
        0,
        "+-",
        "t.csv",
        csv("\u202e\u0641", "\N{ELEPHANT}"),
        f"$ PYTHONIOENCODING=ascii {COMPARE}",
    ),
    "a reader that leaves": (0, "24 rows", "t.csv", PLAIN, f"$ {COMPARE} | head -1 && ls *.png"),
    "a reader of the help that leaves": (
        0,
        "usage",
        "t.csv",
        PLAIN,
        "$ nearkin compare --help | head -1",
    ),
    "a reader of labels that leaves": (
        0,
        "label",
        "t.csv",
        MANY,
        f"$ nearkin {NEW} | head -1",
    ),
    "no room for the model": (
        2,
        "m.safetensors",
        "t.csv",
        PLAIN,
        f"$ ulimit -f 1; {COMPARE} --save m.safetensors",
    ),
    "no room for the labels": (
        2,
        "out.csv",
        "t.csv",
        MANY,
        f"$ ulimit -f 1; nearkin {NEW} -o out.csv",
    ),
    "no room for standard input": (
        2,
        "standard input",
        "t.csv",
        MANY,
        "$ ulimit -f 1; nearkin compare - < t.csv",
    ),
    "a table of somebody else": (
        2,
        "Permission denied",
        "t.csv",
        PLAIN,
        f"$ chmod 0 t.csv; nobody; {COMPARE}",
    ),
    "a folder of somebody else": (
        0,
        "No picture",
        "t.csv",
        PLAIN,
        f"$ chmod a-w .; nobody; {COMPARE}",
    ),
    "a model of somebody else": (
        2,
        "cannot be read",
        "t.csv",
        PLAIN,
        f"$ chmod 0 model*; nobody; nearkin {NEW}",
    ),
}
SIGNALS = {
    f"SIG{name} while {moment}": (code, says, "t.csv", PLAIN, f"{name}-{moment}")
    for name, code, says in (
        ("INT", 130, "interrupted"),
        ("TERM", 143, "terminated"),
        ("HUP", 129, "closed"),
    )
    for moment in ("loading", "waiting", "reading", "comparing", "writing")
}
