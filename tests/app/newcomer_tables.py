"""Ten tables as people have them, invented: python -m tests.app.newcomer_tables FOLDER writes them.

Each is a data frame of numbers, dates and text, and how somebody saved it: separator, encoding, and
the style of its cells. Beside it lie new rows without the target, in Parquet, with a missing cell
and a word that was not learned from.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

N = 60
N_NEW = 5


@dataclass
class Saved:
    """A data frame, and how it was saved.

    `says` are pieces of what `nearkin compare` must say of it, `styles` how cells are written, by
    column.
    """

    frame: pd.DataFrame
    target: str
    says: list[str]
    file: str
    sep: str = ","
    encoding: str = "utf-8"
    styles: dict[str, Callable[[object], str]] = field(default_factory=dict)
    missing: str = ""
    index: bool = False
    line_end: str = "\n"
    ending: str = ""  # of every line

    @property
    def data(self) -> bytes:
        """Return the content of the file."""
        cells = self.frame.copy()
        for name, style in self.styles.items():
            cells[name] = [
                self.missing if pd.isna(cell) else style(cell) for cell in self.frame[name]
            ]
        if self.index:
            cells.index = pd.RangeIndex(1, len(cells) + 1) if self.missing == "NA" else cells.index
        text = cells.to_csv(
            sep=self.sep, na_rep=self.missing, index=self.index, date_format="%Y-%m-%d"
        )
        lines = text.splitlines()
        return "".join(line + self.ending + self.line_end for line in lines).encode(self.encoding)

    @property
    def new_rows(self) -> pd.DataFrame:
        """Return rows without the target: the first lacks a number, the last has a word that was
        not learned from.
        """
        rows = self.frame.drop(columns=self.target)[-N_NEW:].reset_index(drop=True)
        number = next(name for name in rows if rows[name].dtype.kind == "f")
        words = [name for name in rows if rows[name].dtype.kind not in "fibM"]
        rows.loc[0, number] = np.nan
        rows.loc[N_NEW - 1, words[-1:]] = "never seen"
        return rows


def table(seed, classes, **columns):
    """Return a data frame of N rows; columns are functions of a generator and of the class of each
    row, or cells.
    """
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.arange(N) % len(classes))
    cells = {
        name: column(rng, code) if callable(column) else column for name, column in columns.items()
    }
    return pd.DataFrame(cells), np.array(classes)[code]


def around(center, spread, digits=2, missing=()):
    """Return a column of numbers that grow with the class, with missing cells in some rows."""

    def column(rng, code):
        cells = (center + spread * (code + rng.standard_normal(len(code)))).round(digits)
        cells[list(missing)] = np.nan
        return cells

    return column


def words(*values, missing=()):
    def column(rng, code):
        cells = rng.choice(values, len(code)).astype(object)
        cells[list(missing)] = None
        return cells

    return column


def days(step):
    return pd.Timestamp("2024-01-05") + pd.to_timedelta(np.arange(N) * step, unit="h")


def spreadsheet():
    """A German spreadsheet: semicolons, decimal commas, Windows-1252, an empty column at the end."""
    frame, y = table(
        1,
        ["gut", "mäßig", "schlecht"],
        **{"Länge": around(12.5, 1), "Gewicht": around(80.25, 9), "Straße": words("Nord", "Süd")},
    )
    comma = "{:.2f}".format
    styles = dict.fromkeys(["Länge", "Gewicht"], lambda cell: comma(cell).replace(".", ","))
    says = [
        "60 rows, 4 features from 3 columns, 3 classes of 20",
        "Windows-1252",
        "semicolons",
        "decimal commas",
        "ignored, empty: Unnamed: 4",
    ]
    frame = frame.assign(**{"Qualität": y})
    return Saved(
        frame,
        "Qualität",
        says,
        "spreadsheet.csv",
        ";",
        "cp1252",
        styles,
        line_end="\r\n",
        ending=";",
    )


def survey():
    """A survey: the answers None and NA are answers, blank cells are missing."""
    frame, y = table(
        2,
        ["None", "Mild", "Severe"],
        age=around(40, 5, 0, missing=[3, 8]),
        country=words("NA", "DE", "FR", missing=[5]),
        income=around(2000, 100, 0, missing=[1, 2, 4]),
    )
    styles = {"income": "{:.0f}".format, "age": "{:.0f}".format}
    says = ["3 classes of 20", "missing values", "country=NA", "age (2 rows)", "income (3 rows)"]
    return Saved(
        frame.assign(severity=y), "severity", says[:2] + says[3:], "survey.csv", styles=styles
    )


def sales():
    """Sales: American dates, dollars with thousands, percent, ZIP codes."""
    frame, y = table(
        3,
        ["yes", "no"],
        order_date=days(31),
        amount=around(2500, 900),
        discount=around(0.2, 0.05, 3),
        zip=words("01234", "02139", "94103"),
    )
    styles = {
        "order_date": lambda day: f"{day:%m/%d/%Y}",
        "amount": lambda cell: f"-${-cell:,.2f}" if cell < 0 else f"${cell:,.2f}",
        "discount": lambda cell: f"{cell:.1%}",
    }
    frame["order_date"] = frame["order_date"].dt.normalize()
    says = ["2 classes of 30", "read as numbers", "read as dates: order_date", "zip (3 values)"]
    return Saved(frame.assign(returned=y), "returned", says, "sales.csv", styles=styles)


def hospital():
    """Three visits of every patient, and a third of the rows entered twice."""
    frame, y = table(
        4,
        ["flu", "cold"],
        temperature=around(38, 0.5, 1),
        pulse=around(80, 5, 0),
        ward=words("A", "B"),
    )
    frame = frame.assign(patient_id=np.arange(N) // 3 + 700, diagnosis=y)
    frame = pd.concat([frame, frame[::3]], ignore_index=True)
    return Saved(frame, "diagnosis", ["80 rows", "twin", "--groups patient_id"], "hospital.csv")


def sensors():
    """A log with a time stamp and a zone every 19 hours, and gaps."""
    frame, y = table(
        5,
        ["idle", "busy"],
        time=days(19),
        temperature=around(20, 2, missing=range(10, 14)),
        humidity=around(0.5, 0.1),
    )
    styles = {"time": lambda time: f"{time:%Y-%m-%dT%H:%M:%SZ}"}
    says = ["2 classes of 30", "read as dates: time", "temperature (4 rows)"]
    return Saved(frame.assign(state=y), "state", says, "sensors.csv", styles=styles)


def churn():
    """Customers: identifiers, a 0/1 column, and a column of numbers of which some are blank."""
    frame, y = table(
        6,
        ["No", "Yes"],
        customerID=[f"{i * 7919 % 10000:04}-QX{chr(65 + i % 26)}{i}" for i in range(N)],
        SeniorCitizen=lambda rng, code: rng.integers(0, 2, N),
        MonthlyCharges=around(60, 10),
        TotalCharges=around(1500, 300, missing=[7, 30]),
        Contract=words("Month-to-month", "One year", "Two year"),
    )
    says = [
        "2 classes of 30",
        "ignored, text that differs in every row: customerID",
        "TotalCharges (2 rows)",
    ]
    return Saved(
        frame.assign(Churn=y), "Churn", says, "churn.csv", styles={"TotalCharges": str}, missing=" "
    )


def r_export():
    """What write.csv of R writes: row names, everything else quoted, NA."""
    frame, y = table(
        7,
        ["setosa", "virginica"],
        length=around(5, 1, missing=[0, 9]),
        width=around(3, 0.5),
        site=words("lake", "wood"),
    )
    says = ["2 classes of 30", "ignored, numbers of the rows", "length (2 rows)", "'NA'"]
    return Saved(frame.assign(species=y), "species", says, "r_export.csv", missing="NA", index=True)


def pandas_export():
    """What to_csv of pandas writes, with the index."""
    frame, y = table(
        8, ["a", "b", "c"], x=around(0, 1, 6), y=around(0, 2, 6), flag=words("True", "False")
    )
    says = ["60 rows, 3 features, 3 classes of 20", "ignored, numbers of the rows: Unnamed: 0"]
    frame["flag"] = frame["flag"] == "True"
    return Saved(frame.assign(kind=y), "kind", says, "pandas_export.csv", index=True)


def unicode_text():
    """What Excel calls Unicode text: UTF-16 and tabs."""
    frame, y = table(
        9,
        ["はい", "いいえ"],
        **{"年齢": around(40, 9, 0), "身長": around(1.7, 0.1), "都市": words("東京", "大阪")},
    )
    says = ["2 classes of 30", "separated by tabs"]
    return Saved(
        frame.assign(**{"回答": y}),
        "回答",
        says,
        "unicode_text.txt",
        "\t",
        "utf-16",
        line_end="\r\n",
    )


def leak():
    """A column that is filled in only when the answer is known."""
    frame, y = table(10, ["paid", "overdue"], amount=around(100, 20), days_open=around(20, 5, 0))
    frame["reminder_fee"] = np.where(y == "paid", 0.0, 7.5)
    says = [
        "2 classes of 30",
        "suspicious: reminder_fee (100.0% of the rows) alone predicts outcome",
    ]
    return Saved(frame.assign(outcome=y), "outcome", says, "leak.csv")


TABLES = (
    *(
        spreadsheet,
        survey,
        sales,
        hospital,
        sensors,
        churn,
        r_export,
        pandas_export,
        unicode_text,
        leak,
    ),
)


def write_tables(folder):
    """Write all tables and their new rows, and return the tables by name."""
    saved = {make.__name__: make() for make in TABLES}
    for name, table in saved.items():
        (folder / table.file).write_bytes(table.data)
        table.new_rows.to_parquet(folder / f"{name}-new.parquet", index=False)
    return saved


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]))
