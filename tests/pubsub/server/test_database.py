"""The database file: what was committed survives a kill, whoever else opens the file."""

import subprocess
import sys
from pathlib import Path

from penstock.pubsub.server.database import open_database

SERVER = """
import os, sys
from pathlib import Path
from penstock.pubsub.server.database import open_database, transaction
directory = Path(sys.argv[1])
writer, reader = open_database(directory), open_database(directory)
print("open", flush=True)
sys.stdin.readline()
with transaction(writer):
    writer.execute("INSERT INTO accounts (name) VALUES ('late')")
print("written", flush=True)
sys.stdin.readline()
"""


def test_another_process_that_closes_the_file_takes_nothing_away(tmp_path: Path) -> None:
    # two connections in one process: closing any other descriptor of the file would drop its locks
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "open\n"
        open_database(tmp_path).close()
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n"
        open_database(tmp_path).close()
        process.kill()
    connection = open_database(tmp_path)
    assert connection.execute("SELECT name FROM accounts").fetchall() == [("late",)]
    connection.close()
