"""The pictures of the walks: `python docs/walks.py` runs the code that their pages show, and keeps
what it saves in `docs/images/start`.
"""

import re
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent
PICTURES = {  # of each page: what its code saves, and the name of the picture
    "picture.md": ("digits.png", "digits_map.png"),
    "table.md": ("columns.png", "columns.png"),
}

for page, (saved, name) in PICTURES.items():
    text = (FOLDER / "start" / page).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with TemporaryDirectory() as folder, chdir(folder):
        for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            exec(block, names)
            if Path(saved).exists():
                break
        picture = Path(saved).read_bytes()
    (FOLDER / "images" / "start" / name).write_bytes(picture)
