"""Files of a conversation: long results and attachments over a store, and two tools that read them and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from talking import Script, calls, outcomes, talk

from skillrun.conversation.conversation import Conversation
from skillrun.conversation.files import LARGEST, MOST_FILES, Files
from skillrun.conversation.messages import Answered
from skillrun.conversation.sqlite import SqliteStore
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import Attachment, ToolError
from skillrun.tools.tool import tool

if TYPE_CHECKING:
    from pathlib import Path

LONG = "\n".join(f"line {number} of the Report" for number in range(5_000))


def spilled(file: Path) -> tuple[Conversation, str]:
    """Have a long result saved; return the conversation and the file's name."""
    report = tool(lambda: LONG, name="report")
    conversation = talk([report], [calls(("report", {})), "over"], store=SqliteStore(file))
    conversation.ask("go")
    assert conversation.files is not None
    (name,) = conversation.files.names()
    return conversation, name


def used(conversation: Conversation, which: str, /, **arguments: Any) -> tuple[str, bool]:
    """Call one of the two tools."""
    found = conversation._round.turn.find(calls((which, {})).calls[0])
    assert found is not None
    outcome = found.call(arguments)
    return outcome.text, outcome.is_error


def test_a_long_result_is_read_and_searched_by_its_name(file: Path) -> None:
    """The model gets the start and a plain name; lines and places come back, bounded."""
    conversation, name = spilled(file)
    (outcome,) = outcomes(conversation)
    assert f"`{name}`" in outcome.text
    assert str(file.parent) not in outcome.text
    assert len(outcome.text) < 3_000
    text, wrong = used(conversation, "read_file", name=name, first_line=4_999, lines=10)
    assert not wrong
    assert (
        text == "4999\tline 4998 of the Report\n5000\tline 4999 of the Report\n[lines 4999 to 5000 of 5000]"
    )
    assert (
        used(conversation, "search_files", text="LINE 4321 of")[0] == f"{name}:4322\tline 4321 of the Report"
    )
    assert "more than 50 lines" in used(conversation, "search_files", text="report")[0]
    assert used(conversation, "search_files", text=".*")[0] == "no line has it"
    assert used(conversation, "read_file", name=name, first_line=6_000)[1]
    assert len(used(conversation, "read_file", name=name, lines=10**9)[0].splitlines()) == 401


@pytest.mark.parametrize(
    "name",
    [
        "../conversations.db",
        "/etc/passwd",
        "..",
        ".",
        "",
        "report",
        "link",
        "a/b",
        "sub",
        "fifo",
        "x\0y",
        ".hidden",
    ],
)
def test_no_name_reads_anything_but_a_file_of_the_list(file: Path, name: str) -> None:
    """Paths, links, folders, pipes and hidden files are not in the list: an error that lists what there is."""
    conversation, known = spilled(file)
    assert conversation.files is not None
    folder = conversation.files.folder
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "sub").mkdir()
    (folder / ".hidden").write_text("x")
    os.mkfifo(folder / "fifo")
    for which in ("read_file", "search_files"):
        text, wrong = used(
            conversation, which, **({"text": "root"} if which == "search_files" else {}), name=name
        )
        assert wrong
        assert "root:" not in text
        assert known in text
    assert used(conversation, "search_files", text="root:")[0] == "no line has it"


def test_attachments_come_back_from_a_store(file: Path) -> None:
    """Bytes and media type are the same in another process; the file's name is ours, whatever the tool called it."""
    data = bytes(range(256)) * 10
    attach = tool(lambda: ["see", Attachment("../../e v\u202eil.PNG", "image/png", data)], name="attach")
    conversation = talk([attach], [calls(("attach", {})), "over"], store=SqliteStore(file))
    conversation.ask("go")
    other = talk([attach], [], store=SqliteStore(file))
    (found,) = outcomes(other)[0].attachments
    assert (found.data, found.media_type) == (data, "image/png")
    assert other.files is not None
    (name,) = other.files.names()
    assert name.startswith("e-v-il-")
    assert name.endswith(".PNG")
    assert (other.files.folder / name).stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_gone_is_said_to_be(file: Path) -> None:
    """The history can still be sent: the text says which file is gone, cleanly, and reading it is an error."""
    attach = tool(lambda: [LONG, Attachment("a\x1b[2J\n[skillrun] ok.png", "image/png", b"x")], name="attach")
    conversation = talk([attach], [calls(("attach", {})), "over"], store=SqliteStore(file))
    conversation.ask("go")
    assert conversation.files is not None
    for name in conversation.files.names():
        (conversation.files.folder / name).unlink()
    (outcome,) = outcomes(conversation)
    assert "is gone]" in outcome.text
    assert "\x1b" not in outcome.text
    assert outcome.attachments == ()
    assert used(conversation, "read_file", name="a")[1]


def test_a_file_that_goes_while_all_are_searched_spoils_no_search(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the files vanishes after it was listed: the hits of the others come, and no path of ours is told."""
    conversation, name = spilled(file)
    assert conversation.files is not None
    (conversation.files.folder / "aaa.txt").write_text("x")
    real = os.open

    def opened(path: Any, *rest: Any, **more: Any) -> int:
        if str(path).endswith("aaa.txt"):
            raise FileNotFoundError(2, "No such file", str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", opened)
    assert used(conversation, "search_files", text="line 77 of")[0].startswith(name)
    text, wrong = used(conversation, "read_file", name="aaa.txt")
    assert wrong
    assert str(file.parent) not in text


def test_binary_and_large_files_are_bounded(file: Path) -> None:
    """What is no text is said to be none; of a huge file the first part is read; a folder takes so many files."""
    conversation, _ = spilled(file)
    files = conversation.files
    assert files is not None
    (files.folder / "b.bin").write_bytes(b"a\0b")
    assert "is no text" in used(conversation, "read_file", name="b.bin")[0]
    with (files.folder / "big.txt").open("wb") as big:
        big.truncate(LARGEST + 10)
    assert len(files.read("big.txt")) == LARGEST
    with pytest.raises(ToolError):
        files.read("nothing")


def test_a_full_folder_keeps_the_result_whole_in_the_store(tmp_path: Path) -> None:
    """Too many files: an attachment goes into the row instead, and nothing is lost."""
    files = Files(tmp_path / "f")
    files.add("x.txt", b"x")
    for number in range(MOST_FILES):
        (files.folder / f"n{number}").touch()
    with pytest.raises(OSError, match="files already"):
        files.add("x.txt", b"x")
    from skillrun.conversation import results
    from skillrun.tools.outcome import Outcome

    kept = results.to_data(Outcome("t", attachments=(Attachment("a", "b", b"data"),)), files)
    assert results.from_data(kept, calls(("x", {})).calls[0], files).attachments[0].data == b"data"


def test_tools_of_the_same_name_keep_theirs(file: Path) -> None:
    """Somebody's own `read_file` is not taken over: then there are no files, and long results go where the box puts them."""
    own = tool(lambda: "mine", name="read_file")
    with Toolbox([own]) as box:
        conversation = Conversation(
            box, Script([calls(("read_file", {})), "over"]), store=SqliteStore(file), name="c"
        )
        assert conversation.files is None
        conversation.ask("go")
        (answered,) = [one for one in conversation.history() if isinstance(one, Answered)]
        assert answered.outcomes[0].text == "mine"


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the list and the opening a name was turned into a link: what it leads to is not read."""
    files = Files(tmp_path / "files")
    name = files.add("note.txt", b"mine")
    (tmp_path / "secret").write_text("secret")
    (files.folder / name).unlink()
    (files.folder / name).symlink_to(tmp_path / "secret")
    assert name not in files.names()
    monkeypatch.setattr(Files, "names", lambda _: [name])  # as it was a moment ago
    with pytest.raises(ToolError, match="symbolic links"):
        files.read(name)
