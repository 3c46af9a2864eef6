"""Judgements in the files of other tools, all read alike; rankings that other tools check."""

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.files.judgements import grades_of_clicks, grades_of_scores, read_judgements
from nearkin.app.files.readers import Reading
from nearkin.app.vectors.reading import is_judgement, read_vectors
from nearkin.vectors import comparison as adaptation
from nearkin.vectors import judged_matrix

RNG = np.random.default_rng(0)
N, P = 60, 5
NAMES = [f"d{i}" for i in range(N)]
QUERIES = [f"q{i}" for i in range(20)]
TOPIC = RNG.normal(size=(10, 2))
D = np.hstack([TOPIC[np.arange(N) % 10], 3 * RNG.normal(size=(N, P - 2))]).astype(np.float32)
Q = np.hstack([TOPIC[np.arange(20) % 10], 3 * RNG.normal(size=(20, P - 2))]).astype(np.float32)
# every query has two relevant documents and one that is not
ROWS = [
    (f"q{q}", f"d{(q % 10 + 10 * place + (place == 2)) % N}", int(place < 2))
    for q in range(20)
    for place in range(3)
]
RELEVANT = {q: [d for one, d, grade in ROWS if one == q and grade] for q in QUERIES}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(adaptation, "SETTINGS", [adaptation.SETTINGS[0] | {"max_iter": 4}])
    monkeypatch.setattr(adaptation, "CHOICE_QUERIES", 1)
    np.savez("d.npz", X=D, name=np.array(NAMES))
    np.savez("q.npz", X=Q, name=np.array(QUERIES))
    return tmp_path


def frame(*names):
    return pd.DataFrame(ROWS, columns=list(names))


def beir(path="beir"):
    """A folder whose texts are in the order of the vectors, while names are in none."""
    (folder := Path(path) / "qrels").mkdir(parents=True)
    frame("query-id", "corpus-id", "score").to_csv(folder / "train.tsv", sep="\t", index=False)
    (folder / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td9\t1\n")
    for file, names in (("corpus", NAMES), ("queries", QUERIES)):
        texts = [{"_id": name, "text": "words\u2028 and more"} for name in names]
        lines = [json.dumps(text, ensure_ascii=False) for text in texts]
        Path(path, f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def lines(path, pattern, rows=ROWS):
    Path(path).write_text("".join(pattern.format(*row) + "\n" for row in rows))
    return path


def triplets():
    """Rows of an anchor, a positive and a negative; every negative comes twice, which is once."""
    unlike = {q: d for q, d, grade in ROWS if not grade}
    return [(q, d, unlike[q]) for q, d, grade in ROWS if grade]


def ranx():
    return {q: {d: grade for one, d, grade in ROWS if one == q} for q in QUERIES}


def written(path, write):
    write(path)
    return path


def to_json(found):
    return lambda path: Path(path).write_text(json.dumps(found))


def json_lines(table):
    return lambda path: table.to_json(path, orient="records", lines=True)


POSITIVES = pd.DataFrame(triplets(), columns=["anchor", "positive", "negative_1"])
CLICKS = pd.DataFrame(
    [(q, d, 1, grade) for q, d, grade in ROWS], columns=["query", "document", "shown", "clicked"]
)
LISTS = pd.DataFrame(
    [(q, RELEVANT[q], [d for one, d, grade in ROWS if one == q and not grade]) for q in QUERIES],
    columns=["query", "pos", "neg"],
)
ESCI = pd.DataFrame(ROWS, columns=["query_id", "product_id", "esci_label"]).assign(
    example_id=range(len(ROWS)),
    query="words",
    product_locale="us",
    esci_label=["IE"[grade] for *_, grade in ROWS],
)
FORMS = {
    "BEIR": beir,
    "BEIR file": lambda: beir() + "/qrels/train.tsv",
    "TREC qrels": lambda: lines("a.qrels", "{} 0 {} {}"),
    "TREC qrels, tabs": lambda: lines("a.tsv", "{}\t0\t{}\t{}"),
    "ranx JSON": lambda: written("a.json", to_json(ranx())),
    "ranx Parquet": lambda: written("a.parquet", frame("q_id", "doc_id", "score").to_parquet),
    "CSV": lambda: written("a.csv", lambda path: frame("x", "y", "z").to_csv(path, index=False)),
    "named CSV": lambda: written(
        "a.csv", lambda path: frame("query", "doc_id", "label")[["label", "doc_id", "query"]]
        .to_csv(path, index=False),
    ),
    "triplets CSV": lambda: written("a.csv", lambda path: POSITIVES.to_csv(path, index=False)),
    "triplets Parquet": lambda: written("a.parquet", POSITIVES.to_parquet),
    "triplets JSON lines": lambda: written("a.jsonl", json_lines(POSITIVES)),
    "sentences": lambda: written("a.parquet", frame("sentence1", "sentence2", "score").to_parquet),
    "JSON lines": lambda: written("a.jsonl", json_lines(frame("query-id", "corpus-id", "score"))),
    "a list in JSON": lambda: written(
        "a.json", lambda path: frame("query", "document", "grade").to_json(path, orient="records")
    ),
    "click log": lambda: written("a.csv", lambda path: CLICKS.to_csv(path, index=False)),
    "CSV without a header": lambda: lines("a.csv", "{},{},{}"),
    "tabs without a header": lambda: lines("a.tsv", "{}\t{}\t{}"),
    "lists in JSON lines": lambda: written("a.jsonl", json_lines(LISTS)),
    "lists in Parquet": lambda: written("a.parquet", LISTS.to_parquet),
    "lists in CSV": lambda: written("a.csv", lambda path: LISTS.to_csv(path, index=False)),
    "triples of names": lambda: lines("a.csv", "{},{},{}", [("a", "b", "c"), *triplets()]),
    "triples without a header": lambda: lines("a.csv", "{},{},{}", triplets()),
    "ESCI": lambda: written("a.parquet", ESCI.to_parquet),
    "ESCI in words": lambda: written(
        "a.csv", lambda path: ESCI.replace({"E": "Exact", "I": "Irrelevant"}).to_csv(path)
    ),
}  # fmt: skip


def matrix(source):
    queries, documents = (read_vectors(name, ids="name") for name in ("q.npz", "d.npz"))
    is_row = partial(is_judgement, queries, documents)
    judged = read_judgements(source, reading=Reading(is_row=is_row))
    at = queries.rows_of(judged.left, source), documents.rows_of(judged.right, source)
    return judged_matrix(*at, judged.grades, (len(Q), len(D)))


@pytest.fixture
def expected():
    q, d, grades = zip(*ROWS, strict=True)
    at = np.array([QUERIES.index(one) for one in q]), np.array([NAMES.index(one) for one in d])
    return judged_matrix(*at, np.array(grades, dtype=float), (len(Q), len(D)))


def assert_same(found, expected):
    for R in (found, expected):
        R.sort_indices()
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


class TestForms:
    @pytest.mark.parametrize("form", FORMS)
    def test_hold_the_same(self, form, expected):
        assert expected.nnz == 60
        assert (expected.data == 0).sum() == 20  # are stored
        assert_same(matrix(FORMS[form]()), expected)

    def test_packed(self, expected):
        text = Path(FORMS["TREC qrels"]()).read_bytes()
        Path("a.txt.gz").write_bytes(gzip.compress(text))
        assert_same(matrix("a.txt.gz"), expected)

    @pytest.mark.parametrize("pairs", ["anchor", "query"])
    def test_relevant_ones_alone(self, pairs, expected):
        found = {"queries": {}, "corpus": {}, "relevant_docs": RELEVANT, "mode": "text"}
        llama = matrix(written("a.json", to_json(found)))
        POSITIVES.rename(columns={"anchor": pairs})[[pairs, "positive"]].to_parquet("a.parquet")
        expected.data[expected.data == 0] = -1  # no place for a zero
        expected = expected.maximum(0)
        expected.eliminate_zeros()
        assert_same(llama, expected)
        assert_same(matrix("a.parquet"), expected)

    def test_several_negatives_of_which_some_are_missing(self):
        table = POSITIVES.assign(negative_2=[NAMES[3], None] * 20)
        table.to_parquet("a.parquet")
        judged = read_judgements("a.parquet")
        assert (judged.grades == 0).sum() == 60
        assert (judged.grades == 1).sum() == 40

    def test_names_in_the_order_of_the_vectors(self, expected):
        judged = read_judgements(beir(), names=True)
        queries, documents = read_vectors("q.npz"), read_vectors("d.npz")
        at = (
            queries.named(judged.queries, "").rows_of(judged.left, ""),
            documents.named(judged.documents, "").rows_of(judged.right, ""),
        )
        assert_same(judged_matrix(*at, judged.grades, (len(Q), len(D))), expected)
        with pytest.raises(TableError, match="names 20 rows, but d has 60"):
            documents.named(judged.queries, "a file")

    def test_numbers_of_rows_in_text(self):
        rows = [(q[1:], d[1:], grade) for q, d, grade in ROWS]
        judged = read_judgements(lines("a.qrels", "{} 0 {} {}", rows))
        assert read_vectors("d.npz").rows_of(judged.right, "").tolist() == [int(r[1]) for r in rows]

    def test_whole_numbers_of_json_keep_all_digits_and_lines_end_at_line_feeds_alone(self):
        name = 2**60 + 1
        text = [{"query": name, "positive": d, "text": "a\u2028b"} for d in (1, 2.0)]
        Path("a.jsonl").write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in text))
        judged = read_judgements("a.jsonl")
        assert judged.left.tolist() == [name, name]
        assert read_vectors("d.npz").rows_of(judged.right, "").tolist() == [1, 2]

    def test_words_of_esci_are_gains(self):
        words = ["Exact", "partial", "SUBSTITUTE", "complement", "Irrelevant"]
        rows = [("q", f"d{row}", word) for row, word in enumerate(words)]
        frame = pd.DataFrame(rows, columns=["query_id", "product_id", "label"])
        frame.to_csv("a.csv", index=False)
        judged = read_judgements("a.csv")
        assert judged.grades.tolist() == [1, 0.5, 0.1, 0.01, 0]
        assert "grade: label, exact 1, partial 0.5, substitute 0.1, complement 0.01" in judged.note

    def test_pairs_of_numbers_without_a_header(self):
        rows = read_vectors("d.npz")
        reading = Reading(is_row=partial(is_judgement, rows, rows))
        for pairs in ([(3, 4), (0, 1)], [(0, 1), (3, 4)]):
            lines("a.csv", "{},{}", pairs)
            if pairs[0] == (0, 1):  # as pandas calls columns without names
                with pytest.raises(TableError, match="begins with numbers: add a header"):
                    read_judgements("a.csv", reading=reading)
            else:
                judged = read_judgements("a.csv", reading=reading)
                assert [*zip(judged.left, judged.right, strict=True)] == pairs

    def test_are_said(self):
        assert read_judgements(FORMS["TREC qrels"]()).note == (
            "TREC qrels: 60 judgements, 20 of them not relevant"
        )

    @pytest.mark.parametrize(
        ("header", "said"),
        [
            ("query,document,shown,clicked", "query: query, document: document, shown: shown, clicked: clicked"),
            ("query_id,item_id,position,impressions,clicks", "query: query_id, document: item_id, shown: impressions, clicked: clicks; not used: position"),
            ("query_id,item_id,shown,clicked", "query: query_id, document: item_id, shown: shown, clicked: clicked"),
            ("Rank,qid,Product ID,Clicks,Views,user", "query: qid, document: Product ID, shown: Views, clicked: Clicks; not used: Rank, user"),
            ("day,price,clicks,sku,position,impressions,query", "query: query, document: sku, shown: impressions, clicked: clicks; not used: day, price, position"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
    def test_click_logs_by_what_their_columns_are_called(self, header, said, suffix, expected):
        names = header.split(",")
        table = pd.DataFrame(5, range(len(ROWS)), names)
        kinds = {"query": ("query", "query_id", "qid"), "shown": ("shown", "impressions", "Views")}
        kinds["clicked"] = ("clicked", "clicks", "Clicks")
        kinds["document"] = ("document", "item_id", "Product ID", "sku")
        for kind, cells in CLICKS.items():
            table[next(name for name in names if name in kinds[kind])] = cells
        path = f"log.{suffix}"
        write = {
            "csv": lambda path: table.to_csv(path, index=False),
            "parquet": table.to_parquet,
            "jsonl": json_lines(table),
        }[suffix]
        assert_same(matrix(written(path, write)), expected)
        assert read_judgements(path).note == (
            f"click log of 60 rows ({said}): 60 judgements, 20 of them not relevant"
        )

    @pytest.mark.parametrize(
        ("header", "row", "grades", "said"),
        [
            ("a,b,position,grade", "q0,d1,7,2", [2], "first: a, second: b, grade: grade; not used: position"),
            ("a,b,rank", "q0,d1,7", [1], "first: a, second: b; not used: rank"),
            ("query_id,item_id,match", "q0,d1,yes\nq0,d2,No", [1, 0], "query: query_id, document: item_id, grade: match"),
            ("a,b,match", "q0,d1,TRUE\nq0,d2,false", [1, 0], "first: a, second: b, grade: match"),
            ("query,document,title,grade", "q0,d1,words,3", [3], "query: query, document: document, grade: grade; not used: title"),
            ("query,document,position", "q0,d1,7", [1], "query: query, document: document; not used: position"),
            ("a,b,c,d", "q0,d1,3,9", [3], "first: a, second: b, grade: c; not used: d"),
        ],
    )  # fmt: skip
    def test_a_place_is_no_grade_and_what_is_not_used_is_said(self, header, row, grades, said):
        Path("a.csv").write_text(f"{header}\n{row}\n")
        judged = read_judgements("a.csv")
        assert judged.grades.tolist() == grades
        assert judged.note.startswith(f"table ({said}): ")


class TestTeacher:
    SCORES = pd.DataFrame(
        {
            "q_id": ["a"] * 30 + ["b"] * 2,
            "doc_id": [*(f"d{i}" for i in range(30)), "d1", "d2"],
            "score": [-30, *np.arange(29) / 8, 0, 1],
        }
    )

    def forms(self):
        yield lines("a.run", "{} Q0 {} 1 {} tag", self.SCORES.to_numpy().tolist())
        nested = {q: dict(zip(t["doc_id"], t["score"], strict=True)) for q, t in self.SCORES.groupby("q_id")}  # fmt: skip
        yield written("a.json", to_json(nested))
        yield written("a.parquet", self.SCORES.to_parquet)
        yield written("a.csv", lambda path: self.SCORES.to_csv(path, index=False))

    def test_the_softmax_of_scores_over_what_was_scored(self):
        scores = self.SCORES["score"].to_numpy()
        within = scores - np.repeat([scores[:30].mean(), scores[30:].mean()], [30, 2])
        T = np.sqrt(np.mean(within**2))
        expected = np.exp(scores / T)
        for path in self.forms():
            judged = read_judgements(path)
            assert "scores" in judged.form
            for query in "ab":
                at = judged.left == query
                share = judged.grades[at] / judged.grades[at].sum()
                softmax = expected[at] / expected[at].sum()
                np.testing.assert_allclose(share, softmax, atol=0.01)
                assert judged.grades[at].max() == 1

    def test_neither_shift_nor_unit_of_scores_counts(self):
        queries, scores = self.SCORES["q_id"].to_numpy(), self.SCORES["score"].to_numpy()
        found = grades_of_scores(queries, scores)
        shift = np.where(queries == "a", 5.0, -2.0)
        np.testing.assert_allclose(grades_of_scores(queries, 3 * scores + shift), found)
        assert found[0] == 0
        np.testing.assert_array_equal(grades_of_scores(queries, np.zeros(32)), 1)


class TestClicks:
    def test_rates_are_smoothed_and_relative_to_the_query(self):
        log = [("a", "u", 10, 4), ("a", "v", 1, 1), ("a", "w", 9, 0), ("b", "u", 20, 1)]
        never_shown = ("b", "w", 0, 0)
        found = grades_of_clicks(*map(np.array, zip(*log, never_shown, strict=True)))
        rate = 6 / 40
        u, v = (4 + rate) / 11, (1 + rate) / 2
        np.testing.assert_allclose(found["grade"], [u / v, 1, 0, 1])

    def test_a_log_of_single_showings_is_added_up(self):
        whole = pd.DataFrame(
            [("a", "u", 3, 1), ("a", "v", 2, 2)], columns=["query", "document", "shown", "clicked"]
        )
        single = pd.DataFrame(
            [("a", "u", c) for c in (1, 0, 0)] + [("a", "v", 1)] * 2,
            columns=["query", "document", "clicked"],
        )
        whole.to_csv("whole.csv", index=False)
        single.to_csv("single.csv", index=False)
        one, other = read_judgements("whole.csv"), read_judgements("single.csv")
        np.testing.assert_allclose(one.grades, other.grades)
        assert one.right.tolist() == other.right.tolist()

    def test_counts_without_showings_are_relative_to_each_other(self):
        Path("a.csv").write_text("query,item,rank,clicks\na,u,1,9\na,v,2,3\nb,u,1,1\n")
        judged = read_judgements("a.csv")
        rate = 13 / 27  # of the whole log, each row as nine showings
        np.testing.assert_allclose(judged.grades, [1, (3 + rate) / (9 + rate), 1])
        assert "3 rows, assumed to be shown equally often" in judged.note


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.qrels", "words that say nothing at all of it", "judgements in no known format"),
            ("a.txt", "q 0 d 1\nq 0 d\nq 0 e 1", "grade is missing|does not go on like one"),
            ("a.txt", "q 0 d 1\nq 0 d x", "does not go on like one"),
            ("a.txt", "q Q0 d 1 .5 tag\nq 0 d 1", "does not go on like one|missing"),
            ("a.json", '{"q": {"d": 1}', "not readable JSON"),
            ("a.json", '{"q": {"d": "x"}}', "no known form|give two"),
            ("a.json", "[1, 2]", "no known format"),
            ("a.json", '{"queries": {}, "corpus": {}, "relevant_docs": {}}', "is empty"),
            ("a.csv", "anchor,positive,negative\na,,b\nc,d,e\n", "document is missing"),
            ("a.csv", "query,document,score\na,b,\nc,d,1\n", "grade is missing|without missing"),
            ("a.csv", "query,document,score\na,b,good\nc,d,bad\n", "must hold grades"),
            ("a.json", '[{"query": "a", "document": "b", "grade": [1]}]', "must hold grades"),
            ("a.csv", "query,document,title\na,b,words\n", "drop the column if it holds no grades"),
            ("a.csv", "query,document,shown,clicked\na,b,1,2\n", "at most one click per"),
            ("a.csv", "query,document,shown,clicked\na,b,9,\nc,d,9,1\n", "without missing"),
            ("a.csv", "query\na\n", "one column"),
            ("a.csv", "a,b,clicks\nq,d,1\n", "is not a click log: call its columns"),
            ("a.csv", "query,document,shown\nq,d,1\n", "is not a click log: call its columns"),
            ("a.csv", "query,document,x,y\nq,d,1,2\n", "which column holds the grades, x, y"),
            ("a.csv", "1,2\n3,4\n", "begins with numbers"),
        ],
    )
    def test_files(self, name, content, message):
        Path(name).write_text(content)
        with pytest.raises(TableError, match=message):
            read_judgements(name)

    def test_folders(self):
        Path("empty").mkdir()
        with pytest.raises(TableError, match="no qrels/"):
            read_judgements("empty")
        beir()
        Path("beir/qrels/train.tsv").rename("beir/qrels/dev.tsv")
        with pytest.raises(TableError, match="name one of them"):
            read_judgements("beir")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["d.npz", "--label", "name", "--run", "runs"], "give --pairs or --relevance"),
            (["d.npz", "--pairs", "a.csv", "--run", "."], "exists"),
            (["d.npz", "--pairs", "a.csv", "--run", "none/runs"], "no folder can be made there"),
        ],
    )
    def test_runs(self, words, message, capsys):
        FORMS["CSV"]()
        assert main(["adapt", *words]) == 2
        assert message in capsys.readouterr().err


FILES = ("d.npz", "--queries", "q.npz", "--sizes", "2")


def adapted(*words):
    assert main(["adapt", *FILES, *words]) == 0


class TestCommand:
    @pytest.mark.long
    def test_forms_give_the_same_output(self, capsys):
        table = []
        for words in (
            ("--relevance", beir()),
            ("--id", "name", "--relevance", FORMS["TREC qrels"]()),
            ("--id", "name", "--relevance", FORMS["triplets Parquet"]()),
        ):
            adapted(*words)
            found = capsys.readouterr().out.splitlines()
            table.append([line[:-20] for line in found if line.startswith(("raw", "adapter 2 "))])
        assert table[0]
        assert table[0] == table[1] == table[2]

    @pytest.mark.long
    def test_what_is_not_judged_is_said_to_count_as_wrong(self, capsys):
        adapted("--id", "name", "--relevance", FORMS["click log"](), "--report", "a.html")
        out, page = capsys.readouterr().out, Path("a.html").read_text()
        assert "click log of 60 rows (query: query, document: document, shown: shown" in out
        assert "held-out queries (20) reach" in out
        assert "no cosine that reaches 90, 95, 99 %. `nearkin match` uses more" in out
        for text in (out, page):
            assert "only the results of a search were judged, as with clicks" in text

    def test_names_of_two_files_are_in_columns_of_one_name(self, capsys):
        np.savez("q.npz", X=Q, query_id=np.array(QUERIES))
        for column in ("name", "query_id"):
            words = ("--id", column, "--relevance", FORMS["CSV"]())
            assert main(["adapt", *FILES, *words]) == 2
            err = capsys.readouterr().err
            assert "if the files call it differently, rename it in one" in err
            assert err.count("\n") == 1

    def test_names_for_runs_are_checked_before_the_fits(self, capsys, monkeypatch):
        monkeypatch.setattr("nearkin.app.vectors.adapt.compare_vectors", None)
        np.savez("d.npz", X=D, name=np.array(["d 0", *NAMES[1:]]))
        words = ("--id", "name", "--relevance", FORMS["CSV"](), "--run", "runs")
        rows = Path(words[3]).read_text().replace("d0\n", "d 0\n").replace("d0,", "d 0,")
        Path(words[3]).write_text(rows)
        assert main(["adapt", *FILES, *words]) == 2
        assert "'d 0' is not a name for --run, where blanks end a name" in capsys.readouterr().err

    @pytest.mark.long
    def test_a_run_that_fails_leaves_adapter_and_page(self, monkeypatch):
        def failing(*_):
            raise TableError("a full disk")

        monkeypatch.setattr("nearkin.app.vectors.adapt.write_runs", failing)
        words = ("--id", "name", "--relevance", FORMS["CSV"](), "--run", "runs")
        written = ("--save", "a.safetensors", "--report", "a.html", "--take", "adapter 2")
        assert main(["adapt", *FILES, *words, *written]) == 2
        assert {"a.safetensors", "a.html"} <= {path.name for path in Path().iterdir()}

    @pytest.mark.long
    def test_pairs_with_negatives(self, capsys):
        order = np.arange(N)
        like = [(f"d{i}", f"d{(i + 10) % N}", 1) for i in order[:20]]
        unlike = [(f"d{i}", f"d{(i + 15) % N}", 0) for i in order[:20]]
        lines("a.csv", "{},{},{}", [("sentence1", "sentence2", "label"), *like, *unlike])
        words = ("--id", "name", "--pairs", "a.csv", "--sizes", "2", "--run", "runs")
        assert main(["adapt", "d.npz", *words]) == 0
        assert "20 of them not relevant" in capsys.readouterr().out
        for run in Path("runs").glob("r*.trec"):
            table = pd.read_csv(run, sep=" ", header=None)
            assert (table[0] != table[2]).all()  # no row finds itself

    def test_runs_are_those_that_were_scored(self):
        pytrec_eval = pytest.importorskip("pytrec_eval")
        rows = [(q, d, 3 * grade - (q > "q3") * grade) for q, d, grade in ROWS]
        files = ("--id", "name", "--relevance", lines("a.qrels", "{} 0 {} {}", rows))
        with pytest.MonkeyPatch.context() as patch:
            found = []
            compare = adaptation.compare_vectors

            def compared(*words, **options):
                found.append(compare(*words, **options))
                return found[0]

            patch.setattr("nearkin.app.vectors.adapt.compare_vectors", compared)
            adapted(*files, "--take", "adapter 2 int8", "--run", "runs")
        with open("runs/qrels.trec") as file:
            qrels = pytrec_eval.parse_qrel(file)
        names = {
            "P_1": "precision@1",
            "P_10": "precision@10",
            "recall_100": "recall@100",
            "ndcg_cut_10": "nDCG@10",
            "map": "MAP",
            "recip_rank": "MRR",
        }
        ways = {one.way.name: one for one in found[0].results}
        assert sorted(path.name for path in Path("runs").iterdir()) == [
            "adapter-2-int8.trec",
            "qrels.trec",
            "raw.trec",
        ]
        for way in ("raw", "adapter 2 int8"):
            with open(f"runs/{way.replace(' ', '-')}.trec") as file:
                run = pytrec_eval.parse_run(file)
            scores = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
            for theirs, ours in names.items():
                # quarters of five queries each: the mean of the splits is that of the queries
                mean = np.mean([one[theirs] for one in scores.values()])
                assert ways[way].scores["queries"][ours] == pytest.approx(mean, abs=1e-9)
